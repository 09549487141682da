#include "passes/quantize/scales.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace fuselage::quantize {
namespace {

constexpr double kSmallestScale = std::numeric_limits<float>::min();  // Normal.
constexpr double kLargestBias = 0x1p30;                               // In steps; the accumulator needs the rest.
// A channel this much below the largest is lost in the output's rounding; its scale need not underflow.
constexpr double kSmallestRelativeScale = 0x1p-40;

int32_t ZeroPoint(double steps, IntegerRange range) {
  return static_cast<int32_t>(
      std::clamp(std::nearbyint(steps), static_cast<double>(range.min), static_cast<double>(range.max)));
}

// Calls f(channel, first, last) for each run of elements of one channel.
template <typename F>
void ForEachRun(const Shape& shape, int channel_axis, F f) {
  int64_t outer = 1, inner = 1;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (axis < channel_axis) outer *= shape[axis];
    if (axis > channel_axis) inner *= shape[axis];
  }
  const int64_t channels = shape[channel_axis];
  for (int64_t i = 0; i < outer * channels; ++i) f(i % channels, i * inner, (i + 1) * inner);
}

}  // namespace

double Spelled(float scale) {
  const double decimal = std::strtod(ShortestText(scale).c_str(), nullptr);
  return static_cast<float>(decimal) == scale ? decimal : scale;
}

Range Union(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

Codes ActivationCodes(Range range, QuantizeOptions::Activations activations) {
  const double min = std::min(range.min, 0.0), max = std::max(range.max, 0.0);
  Codes codes;
  codes.dtype = activations == QuantizeOptions::U8_AFFINE ? DType::kU8 : DType::kI8;
  const bool symmetric = activations == QuantizeOptions::I8_SYMMETRIC;
  codes.scale = static_cast<float>(symmetric ? std::max(-min, max) / 127 : (max - min) / 255);
  if (!std::isnormal(codes.scale)) codes.scale = 1;
  if (symmetric) return codes;
  const IntegerRange limits = RangeOf(codes.dtype);
  codes.zero_point = ZeroPoint(static_cast<double>(limits.min) - min / codes.scale, limits);
  return codes;
}

int LargestCode(QuantizeOptions::Weights mode) {
  switch (mode) {
    case QuantizeOptions::PER_CHANNEL_7_BITS: return 63;
    case QuantizeOptions::INT4: return 7;
    default: return 127;
  }
}

std::vector<float> WeightScales(const WeightRequest& request) {
  const Tensor& weight = *request.weight;
  const int64_t channels = weight.dim(request.channel_axis);
  const float* values = weight.data<float>();
  std::vector<float> magnitudes(channels, 0);
  ForEachRun(weight.shape(), request.channel_axis, [&](int64_t c, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) magnitudes[c] = std::max(magnitudes[c], std::fabs(values[i]));
  });
  std::vector<double> scales(channels, 0), from_bias(channels, 0);
  double largest = 0;
  for (int64_t c = 0; c < channels; ++c) {
    scales[c] = double{magnitudes[c]} / LargestCode(request.mode);
    largest = std::max(largest, scales[c]);
    if (request.bias != nullptr && request.input_scale > 0) {
      from_bias[c] = std::fabs(request.bias->At(c)) / (request.input_scale * kLargestBias);
    }
  }
  if (request.mode == QuantizeOptions::PER_TENSOR) {
    scales = {largest};
    from_bias = {channels == 0 ? 0.0 : *std::max_element(from_bias.begin(), from_bias.end())};
  }
  std::vector<float> result;
  for (size_t c = 0; c < scales.size(); ++c) {
    double scale = scales[c] > 0 ? scales[c] : largest > 0 ? largest : 1;
    scale = std::max({scale, from_bias[c], largest * kSmallestRelativeScale, kSmallestScale});
    result.push_back(static_cast<float>(std::min<double>(scale, std::numeric_limits<float>::max())));
  }
  return result;
}

Tensor QuantizeWeight(const Tensor& weight, const std::vector<float>& scales, QuantizeOptions::Weights mode,
                      int channel_axis) {
  TensorType type{DType::kI8, weight.shape(), std::nullopt, Layout::kRowMajor};
  const bool per_channel = mode != QuantizeOptions::PER_TENSOR;
  type.quant = per_channel ? PerAxis(channel_axis, scales) : PerTensor(scales[0]);
  Tensor codes(std::move(type));
  const float largest = static_cast<float>(LargestCode(mode));
  const float* from = weight.data<float>();
  int8_t* to = codes.data<int8_t>();
  ForEachRun(weight.shape(), channel_axis, [&](int64_t c, int64_t first, int64_t last) {
    const float scale = scales[per_channel ? c : 0];
    for (int64_t i = first; i < last; ++i) {
      to[i] = static_cast<int8_t>(std::clamp(std::nearbyint(from[i] / scale), -largest, largest));
    }
  });
  return codes;
}

}  // namespace fuselage::quantize
