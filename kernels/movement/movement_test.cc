#include "kernels/movement/movement.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/op.h"
#include "ir/ops/register_all.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::movement {
namespace {

using Ints = std::vector<int64_t>;

TensorType Of(DType dtype, Shape shape) { return {dtype, std::move(shape), std::nullopt, Layout::kRowMajor}; }

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

struct Case {
  const char* op;
  std::vector<Shape> inputs;
  AttributeMap attributes;
};

std::vector<Case> Cases() {
  return {
      {"permute", {{2, 3, 4}}, {{"dims", Ints{2, 0, 1}}}},
      {"permute", {{2, 3, 4, 5}}, {{"dims", Ints{0, 2, 3, 1}}}},
      {"permute", {{2, 1, 4, 5}}, {{"dims", Ints{-1, 1, 0, 2}}}},
      {"permute", {{}}, {{"dims", Ints{}}}},
      {"slice", {{5, 6}}, {{"starts", Ints{1, -2}}, {"ends", Ints{4, 100}}}},
      {"slice", {{2, 5, 3, 3}}, {{"starts", Ints{4}}, {"ends", Ints{-100}}, {"axes", Ints{1}}, {"steps", Ints{-2}}}},
      {"slice", {{4, 4}}, {{"starts", Ints{100}}, {"ends", Ints{0}}, {"axes", Ints{-1}}, {"steps", Ints{-1}}}},
      {"slice", {{4, 4}}, {{"starts", Ints{2}}, {"ends", Ints{2}}, {"axes", Ints{0}}}},
      {"slice", {{4}}, {{"starts", Ints{1}}, {"ends", Ints{4}}, {"axes", Ints{0}}, {"steps", Ints{1000}}}},
      {"split", {{2, 7, 3, 2}}, {{"sizes", Ints{3, 0, 4}}, {"dim", 1}}},
      {"split", {{7, 2}}, {{"sizes", Ints{1, 6}}, {"dim", -2}}},
      {"cat", {{2, 1, 3, 2}, {2, 4, 3, 2}, {2, 0, 3, 2}}, {{"dim", 1}}},
      {"cat", {{3, 2}, {3, 5}}, {{"dim", -1}}},
      {"cat", {{100, 200}, {60, 200}}, {{"dim", 0}}},
      {"pad", {{2, 3, 2, 2}}, {{"pads", Ints{0, 1, 2, 3, 1, 0, 0, 1}}, {"value", 7.0}}},
      {"pad", {{3}}, {{"pads", Ints{0, 0}}}},
      {"pad", {{0, 2}}, {{"pads", Ints{1, 0, 1, 0}}}},
  };
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
        values.push_back({SeededTensor(Of(dtype, shape), values.size() + 1)});
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
          kernels::KernelDesc desc;
          desc.op = test.op;
          desc.threads = threads;
          for (const ir::AttributeSpec& spec : schema.attributes) {
            const auto it = test.attributes.find(spec.name);
            desc.attributes.emplace(spec.name, it != test.attributes.end() ? it->second : *spec.default_value);
          }
          std::vector<Tensor> inputs;
          std::vector<kernels::ConstBuffer> in;
          for (const auto& value : values) {
            inputs.push_back(InLayout(value[0], layout));
            desc.inputs.push_back(inputs.back().type());
          }
          for (const Tensor& input : inputs) in.push_back({input.raw_data(), input.byte_size()});
          std::vector<kernels::GuardedMemory> memory;
          memory.reserve(type->elements().size());
          std::vector<kernels::Buffer> out;
          for (TensorType output : type->elements()) {
            if (output.rank() == 4) output.layout = layout;
            desc.outputs.push_back(output);
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
  desc.outputs = {Of(DType::kF32, {5})};
  desc.attributes = {{"pads", Attribute(Ints{1, 1})}, {"mode", Attribute("reflect")}, {"value", Attribute(0.0)}};
  EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
  desc.attributes.find("mode")->second = Attribute("constant");
  desc.attributes.find("pads")->second = Attribute(Ints{3, -1});
  EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::movement
