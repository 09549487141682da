#include "kernels/movement/movement.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/op.h"
#include "ir/ops/register_all.h"
#include "kernels/core/testing/testing.h"
#include "kernels/movement/movement_cases.h"

namespace fuselage::movement {
namespace {

// The same logical tensor in another layout.
Tensor InLayout(const Tensor& tensor, Layout layout) {
  TensorType type = tensor.type();
  if (type.rank() != 4 || type.layout == layout) return tensor;
  type.layout = layout;
  Tensor result(type);
  const Shape& s = type.shape;
  const int64_t bytes = ByteSize(type.dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int64_t n = i / (s[1] * s[2] * s[3]), c = i / (s[2] * s[3]) % s[1], h = i / s[3] % s[2], w = i % s[3];
    std::memcpy(static_cast<char*>(result.raw_data()) + kernels::Index(type, n, c, h, w) * bytes,
                static_cast<const char*>(tensor.raw_data()) + kernels::Index(tensor.type(), n, c, h, w) * bytes, bytes);
  }
  return result;
}

// Bit for bit the reference, for elements of one to eight bytes, in both layouts, on one thread and three.
TEST(Movement, EqualsTheReference) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  Register(kernels);
  for (const Case& test : Cases()) {
    const ir::OpSchema& schema = *ops.FindOrNull(test.op);
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kI64}) {
      std::vector<std::vector<Tensor>> values;
      std::vector<ir::Type> types;
      for (const Shape& shape : test.inputs) {
        values.push_back({SeededTensor(TypeOf(test, dtype, shape), values.size() + 1)});
        types.emplace_back(values.back()[0].type());
      }
      std::vector<const std::vector<Tensor>*> operands;
      std::vector<const ir::Type*> operand_types;
      for (size_t i = 0; i < values.size(); ++i) {
        operands.push_back(&values[i]);
        operand_types.push_back(&types[i]);
      }
      const auto type = ir::Infer(schema, test.attributes, operand_types);
      ASSERT_TRUE(type.ok()) << test.op << type.status();
      const auto wanted = ir::Evaluate(schema, test.attributes, operands, *type);
      ASSERT_TRUE(wanted.ok()) << wanted.status();

      const bool any_layout = kernels.FindOrNull(test.op)->layout == kernels::LayoutRule::kSame;
      for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
        if (layout == Layout::kNhwc && (!any_layout || test.inputs[0].size() != 4)) continue;
        for (const int threads : {1, 3}) {
          kernels::KernelDesc desc = Desc(test, schema, dtype, layout);
          desc.threads = threads;
          std::vector<Tensor> inputs;
          std::vector<kernels::ConstBuffer> in;
          for (const auto& value : values) inputs.push_back(InLayout(value[0], layout));
          for (const Tensor& input : inputs) in.push_back({input.raw_data(), input.byte_size()});
          std::vector<kernels::GuardedMemory> memory;
          memory.reserve(desc.outputs.size());
          std::vector<kernels::Buffer> out;
          for (const TensorType& output : desc.outputs) {
            memory.emplace_back(output.byte_size());
            out.push_back({memory.back().data(), output.byte_size()});
          }
          const auto kernel = Create(desc);
          ASSERT_TRUE(kernel.ok()) << test.op << kernel.status();
          kernels::TestThreads parallel(threads);
          ASSERT_TRUE((*kernel)->Run(in, out, {&parallel, {}}).ok());
          for (size_t i = 0; i < out.size(); ++i) {
            const Tensor laid_out = InLayout((*wanted)[i], layout);
            EXPECT_TRUE(memory[i].guards_intact()) << test.op;
            EXPECT_TRUE(out[i].bytes == 0 || std::memcmp(out[i].data, laid_out.raw_data(), out[i].bytes) == 0)
                << test.op << " of " << ToString(inputs[0].type()) << ", result " << i;
          }
        }
      }
    }
  }
}

bool Takes(const kernels::KernelDesc& desc) {
  kernels::KernelRegistry kernels;
  Register(kernels);
  return kernels.FindOrNull(desc.op)->takes_placements(desc);
}

// Operands that lie as `desc` has them: the result is that of dense ones.
void ExpectTakes(const kernels::KernelDesc& desc, const std::vector<const Tensor*>& inputs) {
  EXPECT_TRUE(Takes(desc));
  kernels::KernelDesc dense = desc;
  dense.input_placements.clear();
  dense.output_placement = kernels::Placement();
  const auto wanted = kernels::RunKernel(**Create(dense), inputs);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  const auto kernel = Create(desc);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  kernels::TestThreads threads(3);
  const auto found = kernels::RunPlacedKernel(**kernel, desc, inputs, &threads);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->SameBytes(*wanted));
}

// A cat of channels of wider tensors, into channels of a wider one.
TEST(Movement, CatTakesEvenPlacements) {
  using kernels::Placement;
  const auto codes = [](int64_t channels) {
    return kernels::Codes(DType::kI8, {2, channels, 3, 5}, 0.1f, 3, Layout::kNhwc);
  };
  kernels::KernelDesc desc;
  desc.op = "cat";
  desc.inputs = {codes(4), codes(1), codes(7)};
  desc.outputs = {codes(12)};
  desc.attributes = {{"dim", Attribute(1)}};
  const Tensor a = SeededTensor(codes(4), 1), b = SeededTensor(codes(1), 2), c = SeededTensor(codes(7), 3);
  desc.input_placements = {Placement{kernels::Blocking::kNone, 0, 9}, Placement(), {kernels::Blocking::kNone, 0, 8}};
  desc.output_placement.pixel_bytes = 20;
  ExpectTakes(desc, {&a, &b, &c});
  desc.input_placements[1].halo = 1;
  EXPECT_FALSE(Takes(desc));
  desc.input_placements[1].halo = 0;
  desc.output_placement.blocking = kernels::Blocking::kPhasePlanes;
  EXPECT_FALSE(Takes(desc));
}

// A crop of channels of a wider tensor, into channels of a wider one.
TEST(Movement, SliceTakesEvenPlacements) {
  kernels::KernelDesc desc;
  desc.op = "slice";
  desc.inputs = {kernels::Codes(DType::kU8, {2, 16, 4, 5}, 0.1f, 3, Layout::kNhwc)};
  desc.outputs = {kernels::Codes(DType::kU8, {2, 16, 2, 4}, 0.1f, 3, Layout::kNhwc)};
  desc.attributes = {{"starts", Attribute(Ints{1, 1})},
                     {"ends", Attribute(Ints{3, 5})},
                     {"axes", Attribute(Ints{2, 3})},
                     {"steps", Attribute(Ints{})}};
  const Tensor x = SeededTensor(desc.input(0), 1);
  desc.input_placements = {kernels::Placement{kernels::Blocking::kNone, 0, 17}};
  desc.output_placement.pixel_bytes = 20;
  ExpectTakes(desc, {&x});
}

// Depth to space into channels of a wider tensor: 3 of 5 from each pixel on.
TEST(Movement, PermuteTakesPixelsFurtherApart) {
  kernels::KernelDesc desc;
  desc.op = "permute";
  desc.inputs = {TensorType{DType::kU8, {2, 4, 5, 2, 2, 3}, PerTensor(0.1f, 3), Layout::kRowMajor}};
  desc.outputs = {kernels::Codes(DType::kU8, {2, 3, 8, 10}, 0.1f, 3, Layout::kNhwc)};
  desc.attributes = {{"dims", Attribute(Ints{0, 1, 3, 2, 4, 5})}};
  const Tensor x = SeededTensor(desc.input(0), 1);
  desc.output_placement.pixel_bytes = 5;
  ExpectTakes(desc, {&x});
  desc.output_placement.halo = 1;
  EXPECT_FALSE(Takes(desc));
  desc.output_placement.halo = 0;
  desc.attributes = {{"dims", Attribute(Ints{0, 1, 3, 2, 5, 4})}};
  EXPECT_FALSE(Takes(desc)) << "a pixel of two axes";
}

TEST(Movement, MergesAxes) {
  const auto axes = Simplified({{2, 12, 12}, {1, 5, 5}, {3, 4, 4}, {4, 1, 1}});
  ASSERT_EQ(axes.size(), 1u);
  EXPECT_EQ(axes[0].size, 24);
  const auto permuted = Simplified({{4, 1, 6}, {2, 12, 3}, {3, 4, 1}});
  ASSERT_EQ(permuted.size(), 2u);
  EXPECT_EQ(permuted[1].size, 6);
  EXPECT_EQ(permuted[1].from, 4);
}

TEST(Movement, Declines) {
  kernels::KernelDesc desc;
  desc.op = "pad";
  desc.inputs = {Of(DType::kF32, {3})};
  desc.outputs = {Of(DType::kF32, {100'003})};
  desc.attributes = {{"pads", Attribute(Ints{0, 100'000})}, {"mode", Attribute("wrap")}, {"value", Attribute(0.0)}};
  EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::movement
