// From ranges to quantization parameters, and from float weights to int8 codes (docs: arithmetic.md, "Quantization").
#ifndef FUSELAGE_PASSES_QUANTIZE_SCALES_H_
#define FUSELAGE_PASSES_QUANTIZE_SCALES_H_

#include <vector>

#include "ir/base/tensor.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::quantize {

// A closed interval of real values.
struct Range {
  double min = 0;
  double max = 0;
};

// The smallest that holds both.
Range Union(Range a, Range b);

// How one activation is stored.
struct Codes {
  DType dtype = DType::kU8;
  float scale = 1;
  int32_t zero_point = 0;
};

// `scale` for an attribute: the double with the shortest text that still rounds to it (0.1 for 0.1f).
double Spelled(float scale);

// The codes that cover `range`, after it was widened to include 0. The scale is always a normal float: a range without
// extent gets 1.
Codes ActivationCodes(Range range, QuantizeOptions::Activations activations);

struct WeightRequest {
  const Tensor* weight = nullptr;  // f32, finite, with output channels along channel_axis.
  const Tensor* bias = nullptr;    // f32 [output channels], or null.
  float input_scale = 0;           // The activation's that the weight meets; the smallest where there are several.
  QuantizeOptions::Weights mode = QuantizeOptions::PER_CHANNEL;
  int channel_axis = 0;
};

// The magnitude of the largest code of a weight: 127, 63 or, of INT4, 7. MXFP4's are no steps.
int LargestCode(QuantizeOptions::Weights mode);

// Symmetric scales, max|w| / LargestCode, for each output channel (or one). Kernels keep the bias as an int32 in steps
// of input_scale * scale, so a channel whose weights are tiny beside its bias (folding a batch norm makes such) gets
// the smallest scale with which the bias stays below 2^30 steps; what that costs is below the bias's own rounding in
// float. A channel of zeros takes the largest scale of the others, or 1.
std::vector<float> WeightScales(const WeightRequest& request);

// i8 codes clamp(rne(w / s), -LargestCode, LargestCode), with the scales in the type. One scale: per tensor, otherwise
// along the axis of the channels.
Tensor QuantizeWeight(const Tensor& weight, const std::vector<float>& scales, QuantizeOptions::Weights mode,
                      int channel_axis = 0);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_SCALES_H_
