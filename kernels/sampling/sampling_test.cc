// Against the reference, which works in double.
#include "kernels/sampling/sampling.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/op.h"
#include "ir/ops/register_all.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::sampling {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor Values(Shape shape, uint64_t seed, DType dtype = DType::kF32) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

class SamplingKernel : public ::testing::Test {
 protected:
  SamplingKernel() { ops::RegisterAll(ops_); }

  absl::StatusOr<Tensor> Reference(const std::string& op, const std::vector<Tensor>& operands,
                                   const AttributeMap& attributes) {
    std::vector<ir::Type> types;
    std::vector<std::vector<Tensor>> values;
    for (const Tensor& operand : operands) {
      types.emplace_back(operand.type());
      values.push_back({operand});
    }
    std::vector<const ir::Type*> type_pointers;
    std::vector<const std::vector<Tensor>*> value_pointers;
    for (size_t i = 0; i < operands.size(); ++i) {
      type_pointers.push_back(&types[i]);
      value_pointers.push_back(&values[i]);
    }
    const ir::OpSchema& schema = *ops_.FindOrNull(op);
    ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(schema, attributes, type_pointers));
    ASSIGN_OR_RETURN(std::vector<Tensor> results, ir::Evaluate(schema, attributes, value_pointers, type));
    return std::move(results[0]);
  }

  // The kernel's result on so many threads.
  absl::StatusOr<Tensor> Run(const std::string& op, const std::vector<Tensor>& operands, const AttributeMap& attributes,
                             const TensorType& output, int threads) {
    kernels::KernelDesc desc;
    desc.op = op;
    desc.threads = threads;
    for (const ir::AttributeSpec& spec : ops_.FindOrNull(op)->attributes) {
      const auto it = attributes.find(spec.name);
      desc.attributes.emplace(spec.name, it != attributes.end() ? it->second : *spec.default_value);
    }
    std::vector<const Tensor*> inputs;
    for (const Tensor& operand : operands) {
      desc.inputs.push_back(operand.type());
      inputs.push_back(&operand);
    }
    desc.outputs = {output};
    ASSIGN_OR_RETURN(const auto kernel, op == "roi_align" ? CreateRoiAlign(desc) : CreateGridSample(desc));
    kernels::TestThreads parallel(threads);
    return kernels::RunKernel(*kernel, inputs, &parallel);
  }

  void ExpectReference(const std::string& op, const std::vector<Tensor>& operands, const AttributeMap& attributes) {
    const auto wanted = Reference(op, operands, attributes);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const auto one = Run(op, operands, attributes, wanted->type(), 1),
               three = Run(op, operands, attributes, wanted->type(), 3);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_TRUE(three.ok()) << three.status();
    EXPECT_TRUE(one->SameBytes(*three));
    for (int64_t i = 0; i < wanted->num_elements(); ++i) {
      ASSERT_NEAR(one->At(i), wanted->At(i), 1e-5) << op << " element " << i << " of " << ToString(wanted->type());
    }
  }

  ir::OpRegistry ops_;
};

TEST_F(SamplingKernel, EveryModeOfGridSample) {
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align_corners : {false, true}) {
        const AttributeMap attributes = {{"mode", mode}, {"padding_mode", padding}, {"align_corners", align_corners}};
        ExpectReference("grid_sample", {Values({2, 3, 5, 4}, 1), Values({2, 6, 7, 2}, 2)}, attributes);
        ExpectReference("grid_sample", {Values({1, 2, 3, 4, 5}, 3), Values({1, 3, 2, 5, 3}, 4)}, attributes);
        ExpectReference("grid_sample", {Values({1, 1, 1, 1}, 5), Values({1, 1, 16, 2}, 6)}, attributes);
        Tensor far = Values({1, 1, 20, 2}, 7);
        for (int64_t i = 0; i < far.num_elements(); ++i) far.data<float>()[i] *= 4;
        far.data<float>()[3] = kNan;
        far.data<float>()[8] = -kInfinity;
        far.data<float>()[17] = 1e30f;
        ExpectReference("grid_sample", {Values({1, 4, 6, 3}, 8), far}, attributes);
      }
    }
  }
}

// Boxes inside, across the edges, beyond them, upside down and empty, of two images.
TEST_F(SamplingKernel, RoiAlign) {
  const Tensor boxes = Tensor::Of<float>(
      {7, 4}, {0, 0, 4, 3, 1.5f, 0.25f, 5, 4, -3, -2, 2, 9, 40, 40, 50, 44, 4, 3, 1, 1, 2, 2, 2, 2, 0, 0, 11, 9});
  const Tensor x = Values({2, 5, 6, 7}, 1);
  for (const DType dtype : {DType::kI32, DType::kI64}) {
    Tensor batch(dtype, {7});
    for (int i = 0; i < 7; ++i) batch.Set(i, i % 4 - 2);
    for (const char* mode : {"avg", "max"}) {
      for (const bool aligned : {false, true}) {
        for (const int ratio : {0, 1, 3}) {
          ExpectReference("roi_align", {x, boxes, batch},
                          {{"output_height", 3},
                           {"output_width", 2},
                           {"sampling_ratio", ratio},
                           {"spatial_scale", 0.75},
                           {"aligned", aligned},
                           {"mode", mode}});
        }
      }
    }
  }
}

TEST_F(SamplingKernel, ErrorsOfTheRun) {
  const Tensor x = Values({1, 2, 4, 4}, 1);
  const TensorType output = kernels::Floats({1, 2, 1, 1});
  const auto error = [&](std::vector<float> box, int64_t image) {
    const std::vector<Tensor> operands = {x, Tensor::Of<float>({1, 4}, box), Tensor::Of<int64_t>({1}, {image})};
    const std::string wanted(Reference("roi_align", operands, {}).status().message());
    const absl::Status found = Run("roi_align", operands, {}, output, 1).status();
    EXPECT_THAT(wanted, HasSubstr(std::string(found.message())));
    return std::string(found.message());
  };
  EXPECT_THAT(error({0, 0, 1, 1}, 1), HasSubstr("found index 1, wanted one in [-1, 1)"));
  EXPECT_THAT(error({0, -kInfinity, 1, 1}, 0), HasSubstr("found a box from -inf"));
  EXPECT_THAT(error({0, 0, 1e9f, 1}, 0), HasSubstr("at most 4096 places"));
}

TEST_F(SamplingKernel, Declines) {
  const Tensor x = Values({1, 2, 4, 4}, 1, DType::kF64), grid = Values({1, 2, 2, 2}, 2, DType::kF64);
  EXPECT_EQ(Run("grid_sample", {x, grid}, {}, {DType::kF64, {1, 2, 2, 2}, std::nullopt, Layout::kRowMajor}, 1)
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Run("roi_align", {x, Values({1, 4}, 1), Tensor::Of<int64_t>({1}, {0})}, {},
                {DType::kF64, {1, 2, 1, 1}, std::nullopt, Layout::kRowMajor}, 1)
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::sampling
