#include "passes/conv_bn/fold.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/types/span.h"
#include "ir/base/quant_params.h"

namespace fuselage::conv_bn {
namespace {

// Elements of the kernel: weights of one pair of output and input channel lie together.
int64_t KernelSize(const Tensor& weight) {
  int64_t size = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) size *= weight.dim(axis);
  return size;
}

bool AllFinite(const Tensor& f32) {
  const absl::Span<const float> values = f32.values<float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// Codes times factors[c], in output channel c. A factor of 0 is one of the codes.
Tensor ScaledCodes(const Tensor& codes, const std::vector<double>& factors) {
  const int64_t channels = codes.dim(0), per_channel = codes.num_elements() / channels;
  const std::vector<float>& scales = codes.type().quant->scales;
  std::vector<float> scaled;
  Tensor result(DType::kI8, codes.shape());
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = scales[scales.size() == 1 ? 0 : c];
    scaled.push_back(factors[c] == 0 ? scale : static_cast<float>(scale * std::abs(factors[c])));
    const int sign = factors[c] == 0 ? 0 : factors[c] < 0 ? -1 : 1;
    for (int64_t k = c * per_channel; k < (c + 1) * per_channel; ++k) {
      result.data<int8_t>()[k] = static_cast<int8_t>(sign * codes.data<int8_t>()[k]);
    }
  }
  TensorType type = result.type();
  type.quant = PerAxis(0, std::move(scaled));
  result.set_type(std::move(type));
  return result;
}

}  // namespace

Affine AffineOf(const BatchNormStatistics& bn) {
  Affine affine;
  for (int64_t c = 0; c < bn.mean->num_elements(); ++c) {
    const double gamma = bn.weight == nullptr ? 1 : bn.weight->At(c);
    const double scale = gamma / std::sqrt(bn.variance->At(c) + bn.eps);
    affine.scale.push_back(scale);
    affine.shift.push_back((bn.bias == nullptr ? 0 : bn.bias->At(c)) - bn.mean->At(c) * scale);
  }
  return affine;
}

Folded FoldAfter(const Layer& layer, const Affine& affine) {
  const Tensor& weight = *layer.weight;
  const int64_t outer = weight.dim(0), inner = weight.dim(1), kernel = KernelSize(weight);
  const int64_t channels = static_cast<int64_t>(affine.scale.size());
  const bool codes = weight.type().quant.has_value();
  Folded folded{codes ? ScaledCodes(weight, affine.scale) : Tensor(DType::kF32, weight.shape()),
                Tensor(DType::kF32, Shape{channels})};
  for (int64_t i = 0; i < outer && !codes; ++i) {
    // In a transposed convolution dimension 0 is the input channel; its group holds `inner` output channels.
    const int64_t first_of_group = layer.transposed ? i / (outer / layer.groups) * inner : 0;
    for (int64_t j = 0; j < inner; ++j) {
      const int64_t channel = layer.transposed ? first_of_group + j : i;
      for (int64_t k = (i * inner + j) * kernel; k < (i * inner + j + 1) * kernel; ++k) {
        folded.weight.data<float>()[k] = static_cast<float>(weight.At(k) * affine.scale[channel]);
      }
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    const double bias = layer.bias == nullptr ? 0 : layer.bias->At(c);
    folded.bias.data<float>()[c] = static_cast<float>(bias * affine.scale[c] + affine.shift[c]);
  }
  return folded;
}

Folded FoldBefore(const Layer& layer, const Affine& affine) {
  const Tensor& weight = *layer.weight;
  const int64_t outer = weight.dim(0), inner = weight.dim(1), kernel = KernelSize(weight);
  if (weight.type().quant) {
    std::vector<double> factors;
    for (int64_t o = 0; o < outer; ++o) factors.push_back(affine.scale[o / (outer / layer.groups)]);
    return {ScaledCodes(weight, factors), layer.bias == nullptr ? Tensor(DType::kF32, Shape{outer}) : *layer.bias};
  }
  Folded folded{Tensor(DType::kF32, weight.shape()), Tensor(DType::kF32, Shape{outer})};
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t first_input = o / (outer / layer.groups) * inner;
    double bias = layer.bias == nullptr ? 0 : layer.bias->At(o);
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t channel = first_input + i;
      for (int64_t k = (o * inner + i) * kernel; k < (o * inner + i + 1) * kernel; ++k) {
        folded.weight.data<float>()[k] = static_cast<float>(weight.At(k) * affine.scale[channel]);
        bias += weight.At(k) * affine.shift[channel];
      }
    }
    folded.bias.data<float>()[o] = static_cast<float>(bias);
  }
  return folded;
}

Folded Sum(const Layer& a, const Layer& b, const std::vector<int64_t>& first_tap, double factor) {
  const int64_t outer = a.weight->dim(0), inner = a.weight->dim(1), taps = KernelSize(*a.weight);
  const int64_t b_inner = b.weight->dim(1), b_taps = KernelSize(*b.weight);
  std::vector<int64_t> tap_of(b_taps);  // Of a's taps.
  for (int64_t tap = 0; tap < b_taps; ++tap) {
    int64_t rest = tap, stride = 1;
    for (int axis = a.weight->rank() - 1; axis >= 2; --axis) {
      tap_of[tap] += (first_tap[axis - 2] + rest % b.weight->dim(axis)) * stride;
      rest /= b.weight->dim(axis);
      stride *= a.weight->dim(axis);
    }
  }
  Folded sum{*a.weight, Tensor(DType::kF32, Shape{outer})};
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t first_input = o / (outer / b.groups) * b_inner - o / (outer / a.groups) * inner;
    for (int64_t i = 0; i < b_inner; ++i) {
      float* weights = sum.weight.data<float>() + (o * inner + first_input + i) * taps;
      for (int64_t tap = 0; tap < b_taps; ++tap) {
        float& weight = weights[tap_of[tap]];
        weight = static_cast<float>(weight + factor * b.weight->At((o * b_inner + i) * b_taps + tap));
      }
    }
    const double bias = (a.bias == nullptr ? 0 : a.bias->At(o)) + (b.bias == nullptr ? 0 : factor * b.bias->At(o));
    sum.bias.data<float>()[o] = static_cast<float>(bias);
  }
  return sum;
}

Folded Depthwise(const Affine& affine) {
  const int64_t channels = static_cast<int64_t>(affine.scale.size());
  Tensor ones(DType::kF32, Shape{channels, 1, 1, 1});
  std::fill_n(ones.data<float>(), channels, 1.0f);
  return FoldAfter({&ones, nullptr, channels}, affine);
}

int64_t ChannelThatNegates(const Layer& layer, const Affine& affine) {
  if (!layer.weight->type().quant) return -1;
  const absl::Span<const int8_t> codes = layer.weight->values<int8_t>();
  const size_t per_channel = codes.size() / affine.scale.size();
  for (size_t c = 0; c < affine.scale.size(); ++c) {
    const absl::Span<const int8_t> channel = codes.subspan(c * per_channel, per_channel);
    if (affine.scale[c] < 0 && std::find(channel.begin(), channel.end(), -128) != channel.end()) {
      return static_cast<int64_t>(c);
    }
  }
  return -1;
}

bool IsValid(const Folded& folded) {
  const TensorType& type = folded.weight.type();
  if (!AllFinite(folded.bias)) return false;
  return type.quant ? CheckQuantParams(*type.quant, type.dtype, type.shape).ok() : AllFinite(folded.weight);
}

}  // namespace fuselage::conv_bn
