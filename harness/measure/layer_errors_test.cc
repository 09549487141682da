#include "harness/measure/layer_errors.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "kernels/register_all.h"

namespace fuselage::harness {
namespace {

using ::testing::ElementsAre;

constexpr char kFloat[] = R"(graph @g {
  param @a.weight: f32[2,2] = [1, 0, 0, 1]
  param @b.weight: f32[2,2] = [1, 0, 0, 0.5]
  param @c.weight: f32[2,2] = [1, 0, 0, 1]
  module @a = linear(weight=@a.weight)
  module @b = linear(weight=@b.weight)
  module @c = linear(weight=@c.weight)
  %x: f32[1,2] = placeholder
  %a: f32[1,2] = call_module @a(%x)
  %b: f32[1,2] = call_module @b(%a)
  %c: f32[1,2] = call_module @c(%b)
  output(%c)
}
)";

// The range of %a, -1 to 1.55, is too small for what comes; all others fit.
constexpr char kInt8[] = R"(graph @g {
  param @a.weight: i8[2,2]<scale=0.01> = [100, 0, 0, 100]
  param @b.weight: i8[2,2]<axis=0, scale=[0.01, 0.005]> = [100, 0, 0, 100]
  param @c.weight: i8[2,2]<scale=0.01> = [100, 0, 0, 100]
  module @a = int8.linear(out_scale=0.01, out_zero_point=100, weight=@a.weight)
  module @b = int8.linear(out_scale=0.02, out_zero_point=128, weight=@b.weight)
  module @c = int8.linear(out_dtype=f32, weight=@c.weight)
  module @x_q = int8.quantize(out_scale=0.02, out_zero_point=128)
  %x: f32[1,2] = placeholder
  %x_q: u8[1,2]<scale=0.02, zp=128> = call_module @x_q(%x) from(x)
  %a: u8[1,2]<scale=0.01, zp=100> = call_module @a(%x_q)
  %b: u8[1,2]<scale=0.02, zp=128> = call_module @b(%a)
  %c: f32[1,2] = call_module @c(%b)
  output(%c)
}
)";

TEST(LayerErrors, ShowWhichLayerIsToBlame) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> baseline, ir::Parse(kFloat, ops));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> quantized, ir::Parse(kInt8, ops));
  runtime::ThreadPool pool(2);
  const compiler::EngineOptions engine;
  const std::vector<Tensor> inputs = {Tensor::Of<float>({4, 2}, {-2, -1, -0.5, 0, 0.5, 1, 1.5, 2})};
  ASSERT_OK_AND_ASSIGN(LayerErrors errors,
                       MeasureLayerErrors({*baseline, engine}, {*quantized, engine}, inputs, kernels, &pool));
  ASSERT_OK(errors.local);
  ASSERT_EQ(errors.layers.size(), 3);
  const Results::Quantization &a = errors.layers["a"].quantization, &b = errors.layers["b"].quantization,
                              &c = errors.layers["c"].quantization;

  EXPECT_NEAR(a.range_low(), -1, 1e-6);
  EXPECT_NEAR(a.range_high(), 1.55, 1e-6);
  EXPECT_EQ(a.value_min(), -2);
  EXPECT_EQ(a.value_max(), 2);
  EXPECT_EQ(a.clipped_percent(), 25);
  EXPECT_EQ(a.histogram(0), 1);
  EXPECT_EQ(a.histogram(a.histogram_size() - 1), 1);
  EXPECT_NEAR(a.local().max_abs(), 1, 1e-6);
  EXPECT_EQ(a.local().snr_db(), a.accumulated().snr_db()) << "nothing is before it";
  EXPECT_THAT(a.weight_ranges(), ElementsAre(1, 1));

  EXPECT_EQ(b.clipped_percent(), 0);
  EXPECT_THAT(b.weight_ranges(), ElementsAre(1, 0.5));

  EXPECT_FALSE(c.has_range_low()) << "floats";
  EXPECT_LT(c.local().max_abs(), 0.011) << "half a step of its operand";
  EXPECT_GT(c.local().cosine(), 0.9999);
  EXPECT_NEAR(c.accumulated().max_abs(), 1, 0.011) << "what %a lost";
  EXPECT_EQ(errors.layers["c"].snr_db, c.accumulated().snr_db());
}

// The range of %y is that of the maxima.
TEST(LayerErrors, NoneOfALayerThatOnlyAMaxPoolReads) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> baseline, ir::Parse(R"(graph @g {
  param @conv.weight: f32[1,1,1,1] = [1]
  module @conv = conv2d(weight=@conv.weight)
  module @max = max_pool2d(kernel_size=[2, 2], stride=[2, 2])
  %x: f32[1,1,2,2] = placeholder
  %y: f32[1,1,2,2] = call_module @conv(%x)
  %z: f32[1,1,1,1] = call_module @max(%y)
  output(%z)
})",
                                                                            ops));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> quantized, ir::Parse(R"(graph @g {
  param @conv.weight: i8[1,1,1,1]<scale=0.01> = [100]
  module @conv = int8.conv2d(out_scale=0.01, out_zero_point=0, weight=@conv.weight)
  module @max = int8.max_pool2d(kernel_size=[2, 2], stride=[2, 2])
  module @x_q = int8.quantize(out_scale=0.02, out_zero_point=128)
  module @z_dq = int8.dequantize()
  %x: f32[1,1,2,2] = placeholder
  %x_q: u8[1,1,2,2]<scale=0.02, zp=128> = call_module @x_q(%x) from(x)
  %y: u8[1,1,2,2]<scale=0.01> = call_module @conv(%x_q)
  %z: u8[1,1,1,1]<scale=0.01> = call_module @max(%y)
  %z_dq: f32[1,1,1,1] = call_module @z_dq(%z) from(z)
  output(%z_dq)
})",
                                                                             ops));
  runtime::ThreadPool pool(1);
  const compiler::EngineOptions engine;
  const std::vector<Tensor> inputs = {Tensor::Of<float>({1, 1, 2, 2}, {-2, -1, 1, 2})};
  ASSERT_OK_AND_ASSIGN(LayerErrors errors,
                       MeasureLayerErrors({*baseline, engine}, {*quantized, engine}, inputs, kernels, &pool));
  ASSERT_EQ(errors.layers.size(), 1);
  EXPECT_NEAR(errors.layers["z"].quantization.local().max_abs(), 0, 1e-6);
}

TEST(LayerErrors, WithoutAFloatInputThereIsNoLocalError) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> quantized, ir::Parse(kInt8, ops));
  std::string text = kFloat;  // %a goes by another name.
  for (size_t at; (at = text.find("%a")) != std::string::npos;) text.replace(at, 2, "%other");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> baseline, ir::Parse(text, ops));
  runtime::ThreadPool pool(1);
  const compiler::EngineOptions engine;
  const std::vector<Tensor> inputs = {Tensor::Of<float>({1, 2}, {0.5, 1})};
  ASSERT_OK_AND_ASSIGN(LayerErrors errors,
                       MeasureLayerErrors({*baseline, engine}, {*quantized, engine}, inputs, kernels, &pool));
  ASSERT_EQ(errors.layers.size(), 2);
  EXPECT_FALSE(errors.layers["b"].quantization.has_local());
  EXPECT_TRUE(errors.layers["c"].quantization.has_local());
}

}  // namespace
}  // namespace fuselage::harness
