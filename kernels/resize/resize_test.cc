#include "kernels/resize/resize.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "ir/op.h"
#include "ir/ops/register_all.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"

namespace fuselage::resize {
namespace {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

// The same logical tensor in another layout.
Tensor InLayout(const Tensor& tensor, Layout layout) {
  TensorType type = tensor.type();
  if (type.rank() != 4 || type.layout == layout) return tensor;
  type.layout = layout;
  Tensor result(type);
  const Shape& s = type.shape;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int64_t n = i / (s[1] * s[2] * s[3]), c = i / (s[2] * s[3]) % s[1], h = i / s[3] % s[2], w = i % s[3];
    result.Set(kernels::Index(type, n, c, h, w), tensor.At(kernels::Index(tensor.type(), n, c, h, w)));
  }
  return result;
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, HasTheBitsOfScalar) {
  for (const int64_t inner : {1, 7, 8, 9, 15, 17, 33, 100}) {
    for (const int taps : {1, 2, 4}) {
      kernels::GuardedMemory from(4 * inner * 5, 4), wanted(4 * inner, 4), found(4 * inner, 8);
      for (int64_t i = 0; i < inner * 5; ++i) from.as<float>()[i] = std::ldexp(0.37f + i % 17, static_cast<int>(i % 9));
      const int32_t index[] = {4, 0, 2, 1};
      const float weight[] = {0.31f, 0.77f, -0.13f, 0.05f};
      scalar::Run({taps, inner}, from.as<float>(), index, weight, wanted.as<float>());
      GetParam().run({taps, inner}, from.as<float>(), index, weight, found.as<float>());
      ASSERT_EQ(std::memcmp(wanted.data(), found.data(), 4 * inner), 0) << inner << " of " << taps << " taps";
      ASSERT_TRUE(found.guards_intact());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

class ResizeKernel : public ::testing::Test {
 protected:
  ResizeKernel() { ops::RegisterAll(ops_); }

  // On one thread and three, in both layouts: the reference but for rounding, and always the same bits.
  void ExpectReference(DType dtype, const Shape& shape, const AttributeMap& attributes, double tolerance) {
    const ir::OpSchema& schema = *ops_.FindOrNull("resize");
    const std::vector<Tensor> x = {SeededTensor({dtype, shape, std::nullopt, Layout::kRowMajor}, 3)};
    const ir::Type type(x[0].type());
    const auto result = ir::Infer(schema, attributes, {&type});
    ASSERT_TRUE(result.ok()) << result.status();
    const auto wanted = ir::Evaluate(schema, attributes, {&x}, *result);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    kernels::KernelDesc desc;
    desc.op = "resize";
    for (const ir::AttributeSpec& spec : schema.attributes) {
      const auto it = attributes.find(spec.name);
      desc.attributes.emplace(spec.name, it != attributes.end() ? it->second : *spec.default_value);
    }
    for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
      if (layout == Layout::kNhwc && shape.size() != 4) continue;
      const Tensor input = InLayout(x[0], layout);
      TensorType output = (*wanted)[0].type();
      output.layout = layout;
      desc.inputs = {input.type()};
      desc.outputs = {output};
      std::vector<Tensor> found;
      for (const int threads : {1, 3}) {
        desc.threads = threads;
        const auto kernel = Create(desc);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        kernels::TestThreads parallel(threads);
        auto run = kernels::RunKernel(**kernel, {&input}, &parallel);
        ASSERT_TRUE(run.ok()) << run.status();
        found.push_back(*std::move(run));
      }
      EXPECT_TRUE(found[0].SameBytes(found[1]));
      const Tensor laid_out = InLayout((*wanted)[0], layout);
      for (int64_t i = 0; i < laid_out.num_elements(); ++i) {
        ASSERT_NEAR(found[0].At(i), laid_out.At(i), tolerance) << "element " << i << " of " << ToString(shape);
      }
    }
  }

  ir::OpRegistry ops_;
};

TEST_F(ResizeKernel, EveryModeEqualsTheReference) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}) {
      for (const Ints& sizes : {Ints{9, 3}, Ints{1, 13}, Ints{6, 5}, Ints{2, 2}}) {
        AttributeMap attributes = {
            {"dims", Ints{2, -1}}, {"sizes", sizes}, {"mode", mode}, {"coordinates", coordinates}};
        if (std::string(coordinates) == "tf_crop_and_resize") {
          attributes.emplace("roi", Reals{-0.25, 0.5, 0.75, 1.25});
          attributes.emplace("extrapolation_value", 2.0);
        }
        const double tolerance = std::string(mode) == "nearest" ? 0 : 3e-6;
        ExpectReference(DType::kF32, {2, 3, 6, 5}, attributes, tolerance);
        attributes.emplace("antialias", true);
        attributes.emplace("exclude_outside", true);
        ExpectReference(DType::kF32, {2, 3, 6, 5}, attributes, tolerance);
      }
    }
  }
}

TEST_F(ResizeKernel, NearestOfEveryElementSize) {
  for (const DType dtype : {DType::kBool, DType::kU8, DType::kI16, DType::kI32, DType::kI64, DType::kF64}) {
    for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
      ExpectReference(dtype, {1, 4, 5, 6}, {{"dims", Ints{2, 3}}, {"sizes", Ints{8, 12}}, {"nearest_mode", rounding}},
                      0);
    }
  }
}

TEST_F(ResizeKernel, AnyAxes) {
  const AttributeMap all = {{"dims", Ints{0, 1, 2}}, {"sizes", Ints{3, 2, 9}}, {"mode", "linear"}};
  ExpectReference(DType::kF32, {2, 5, 4}, all, 2e-6);
  ExpectReference(DType::kF32, {1, 1, 2, 3, 4}, {{"dims", Ints{2, 3, 4}}, {"sizes", Ints{4, 6, 8}}, {"mode", "linear"}},
                  2e-6);
  ExpectReference(DType::kF32, {7}, {{"dims", Ints{0}}, {"sizes", Ints{3}}, {"mode", "linear"}, {"scales", Reals{0.5}}},
                  2e-6);
  ExpectReference(DType::kF32, {1, 2, 1, 1}, {{"dims", Ints{2, 3}}, {"sizes", Ints{5, 3}}, {"mode", "cubic"}}, 2e-6);
  ExpectReference(DType::kF32, {3, 2}, {{"dims", Ints{}}, {"sizes", Ints{}}}, 0);
  ExpectReference(DType::kF32, {3, 2}, {{"dims", Ints{1}}, {"sizes", Ints{0}}}, 0);
  ExpectReference(DType::kF32, {2, 64, 40, 40}, {{"dims", Ints{2, 3}}, {"sizes", Ints{80, 80}}, {"mode", "linear"}},
                  2e-6);
}

TEST_F(ResizeKernel, Declines) {
  kernels::KernelDesc desc;
  desc.op = "resize";
  desc.attributes = {{"mode", Attribute("linear")}};
  desc.inputs = {TensorType{DType::kF16, {4}, std::nullopt, Layout::kRowMajor}};
  desc.outputs = {TensorType{DType::kF16, {8}, std::nullopt, Layout::kRowMajor}};
  EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::resize
