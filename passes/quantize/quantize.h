// Calibrates, and inserts quantize/dequantize pairs in front of the ops that have a quantized form:
//
//   y = conv2d(x, w)   =>   y = conv2d(dequantize(quantize(x)), w')      w' i8 with a scale for each output channel
//
// One pair for each edge into a quantized op. An op whose quantized form has no float result gets pairs on the edges to
// its float readers too. Values that only move or select (views, slices of what is read as codes alone, max pools)
// share the parameters of where they come from, and what a concat joins shares one range, so that all of them run on
// codes. Transposed convolutions become convolutions first (transposed.h). A graph that has quantizes already is taken
// as it is.
//
// Ranges come from the runner's samples, or from the environment's cache folder where it has those of the same graph,
// samples (Runner::DataKey) and method; a file there that cannot be believed is calibrated anew.
//
// Sums of values in which a few features are far larger than the others stay in FP32, and linears that read such values
// give each row a scale of its own (outliers.h).
//
// With precision FASTEST, what is faster in FP32 stays there (precision.h). A linear whose weight another quantizer has
// left in four bits keeps these codes, and is quantized per token (FourBitGroups in weight_grid.h).
//
// Declines: a layer that the options keep in FP32; operands that are not f32; weights that are computed, not finite,
// or shared with a layer that stays in FP32; a graph output that only codes could feed (unless quantize_outputs); what
// has no products, or only moves elements, among ops in FP32; statistics that only floats are made of, and what scales
// by one that has no quantized form (a norm that normalize does not know stays exact).
// Errors: no calibration data (UsageError: the caller's mistake); NaN or infinity in a sample.
#ifndef FUSELAGE_PASSES_QUANTIZE_QUANTIZE_H_
#define FUSELAGE_PASSES_QUANTIZE_QUANTIZE_H_

#include <string>

#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::quantize {

class Quantize : public passes::Pass {
 public:
  // `runner` gives the calibration samples; null: Run fails where there is something to calibrate. `cache_folder`
  // empty: nothing is kept. `profiler`: for precision FASTEST.
  Quantize(QuantizeOptions options, passes::Runner* runner, std::string cache_folder = "",
           passes::Profiler* profiler = nullptr)
      : options_(std::move(options)), runner_(runner), cache_folder_(std::move(cache_folder)), profiler_(profiler) {}

  absl::string_view name() const override { return "quantize"; }
  passes::NumericContract numeric_contract() const override {
    // Codes, and the few numbers of four bits, through a few layers.
    const bool four_bits = options_.weights() == QuantizeOptions::MXFP4 || options_.weights() == QuantizeOptions::INT4;
    const double tolerance = four_bits ? 1.0 / 8 : 1.0 / 32;
    return {passes::NumericContract::kQuantizes, tolerance};
  }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  QuantizeOptions options_;
  passes::Runner* runner_;
  std::string cache_folder_;
  passes::Profiler* profiler_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_QUANTIZE_H_
