#include "passes/smooth_quant/smooth_quant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::smooth_quant {
namespace {

using ::testing::HasSubstr;

class SmoothQuantTest : public ::testing::Test {
 protected:
  SmoothQuantTest() { ops::RegisterAll(ops_); }

  // A norm whose channel 3 is 2^spread times as large as it would be, and read by weights as much smaller.
  std::unique_ptr<ir::Graph> Network(int spread) {
    std::unique_ptr<ir::Graph> graph = *ir::Parse(R"(graph @n {
  param @k.weight: f32[24,32] = seed(1)
  param @n.weight: f32[32] = seed(2)
  param @q.bias: f32[16] = seed(3)
  param @q.weight: f32[16,32] = seed(4)
  module @k = linear(weight=@k.weight)
  module @n = rms_norm(normalized_shape=[32], weight=@n.weight)
  module @q = linear(bias=@q.bias, weight=@q.weight)
  %x: f32[3,20,32] = placeholder
  %n: f32[3,20,32] = call_module @n(%x)
  %q: f32[3,20,16] = call_module @q(%n)
  %k: f32[3,20,24] = call_module @k(%n)
  output(%q, %k)
})",
                                                  ops_);
    // Multiplies every `stride`-th weight from the third on by 2^exponent.
    const auto scale = [&](const char* path, int64_t stride, int exponent) {
      ir::Module* module = graph->FindModuleOrNull(path);
      Tensor weight = *graph->FindParameterOrNull(module->parameters.at("weight"))->tensor;
      for (int64_t i = 3; i < weight.num_elements(); i += stride) {
        weight.data<float>()[i] = std::ldexp(weight.data<float>()[i], exponent);
      }
      std::map<std::string, std::string> parameters = module->parameters;
      parameters["weight"] = graph->AddParameter("scaled", std::make_shared<const Tensor>(std::move(weight)));
      EXPECT_OK(graph->UpdateModule(module, module->op->name, module->attributes, parameters));
    };
    scale("n", 32, spread);
    scale("q", 32, -spread);
    scale("k", 32, -spread);
    return graph;
  }

  double QuantizedSnr(const ir::Graph& graph, const QuantizeOptions& options) {
    const std::unique_ptr<ir::Graph> quantized = graph.Clone();
    passes::Remarks remarks;
    EXPECT_OK(quantize::Quantize(options, &runner_).Run(*quantized, remarks));
    const std::vector<Tensor> inputs = quantize::SeededInputs(graph, 7);  // Of no calibration sample.
    const std::vector<Tensor> wanted = *interpreter::Run(graph, inputs), found = *interpreter::Run(*quantized, inputs);
    return std::min(Compare(wanted[0], found[0]).snr_db, Compare(wanted[1], found[1]).snr_db);
  }

  ir::OpRegistry ops_;
  quantize::SeededRunner runner_;
};

// What one large channel takes from the others' codes comes back, and no bit of the FP32 network changes.
TEST_F(SmoothQuantTest, GivesBackWhatAnOutlierTook) {
  for (const bool per_token : {false, true}) {
    QuantizeOptions options;
    SmoothQuantOptions smooth;
    if (per_token) options.add_per_token("*");
    smooth.set_per_token(per_token);
    const std::unique_ptr<ir::Graph> plain = Network(0), graph = Network(7);
    const double wanted = QuantizedSnr(*plain, options), lost = QuantizedSnr(*graph, options);
    EXPECT_LT(lost, wanted - 6);
    const std::vector<Tensor> inputs = quantize::SeededInputs(*graph, 7);
    const std::vector<Tensor> before = *interpreter::Run(*graph, inputs);
    passes::Remarks remarks;
    EXPECT_OK(SmoothQuant(smooth, &runner_).Run(*graph, remarks));
    EXPECT_OK(graph->Verify());
    const std::vector<Tensor> after = *interpreter::Run(*graph, inputs);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(after[i].SameBytes(before[i]));
    EXPECT_GT(QuantizedSnr(*graph, options), wanted - 1) << remarks.ToString();
  }
}

TEST_F(SmoothQuantTest, NeedsSamples) {
  const std::unique_ptr<ir::Graph> graph = Network(7);
  passes::Remarks remarks;
  EXPECT_THAT(SmoothQuant({}, nullptr).Run(*graph, remarks).status().ToString(), HasSubstr("needs calibration data"));
}

}  // namespace
}  // namespace fuselage::smooth_quant
