#include "passes/equalization/channel_scales.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/wide_math.h"

namespace fuselage::equalization {
namespace {

// r^(i/8) by square roots, which are exact to the last bit everywhere.
double EighthPower(double r, int i) {
  double power = 1;
  for (int bit = 8; bit > 0; bit /= 2, r = std::sqrt(r)) {
    if (i & bit) power *= r;
  }
  return power;
}

struct Pair {
  double squares = 0, largest = 0;  // Of the weights of one output and one input channel.
};

Pair PairOf(const Tensor& weight, int64_t pair, int64_t kernel) {
  Pair found;
  for (float w : weight.values<float>().subspan(pair * kernel, kernel)) {
    found.squares += static_cast<double>(w) * w;
    found.largest = std::max(found.largest, static_cast<double>(std::fabs(w)));
  }
  return found;
}

int64_t KernelSize(const Tensor& weight) {
  const int64_t pairs = weight.dim(0) * weight.dim(1);
  return pairs == 0 ? 0 : weight.num_elements() / pairs;
}

// For each input channel the largest weight that any output has for it, beside what that output reaches: the same
// whatever the layers around scale.
std::vector<double> RelativeWeights(absl::Span<const Reader> readers, int64_t channels) {
  std::vector<double> largest(channels);
  for (const Reader& reader : readers) {
    const int64_t inner = reader.weight->dim(1), outer = reader.weight->dim(0), kernel = KernelSize(*reader.weight);
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t first = o / (outer / reader.groups) * inner;
      std::vector<double> weights(inner);
      double signal = 0;
      for (int64_t i = 0; i < inner; ++i) {
        const Pair pair = PairOf(*reader.weight, o * inner + i, kernel);
        weights[i] = pair.largest;
        signal += pair.squares * reader.input->mean_square(first + i);
      }
      if (signal == 0) continue;
      for (int64_t i = 0; i < inner; ++i) {
        largest[first + i] = std::max(largest[first + i], weights[i] / std::sqrt(signal));
      }
    }
  }
  return largest;
}

double MeanLogNoise(absl::Span<const Reader> readers, absl::Span<const int> exponents) {
  double noise = 0;
  for (const Reader& reader : readers) noise += LogNoise(reader, exponents);
  return noise / readers.size();
}

}  // namespace

absl::Status ChannelStatistics::Add(const Tensor& value) {
  int64_t inner = 1;
  for (int axis = axis_ + 1; axis < value.rank(); ++axis) inner *= value.dim(axis);
  const absl::Span<const float> values = value.values<float>();
  const int64_t channels = this->channels(), rows = channels * inner == 0 ? 0 : value.num_elements() / inner;
  for (int64_t row = 0; row < rows; ++row) {
    Channel& channel = channels_[row % channels];
    for (int64_t i = row * inner; i < (row + 1) * inner; ++i) {
      const double x = values[i];
      if (!std::isfinite(x)) return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", x));
      channel.min = std::min(channel.min, x);
      channel.max = std::max(channel.max, x);
      channel.squares += x * x;
    }
  }
  if (channels > 0) count_ += value.num_elements() / channels;
  return absl::OkStatus();
}

double ChannelStatistics::magnitude(int64_t c) const { return std::max(max(c), -min(c)); }

int NearestExponent(double x) {
  int exponent;
  const double mantissa = std::frexp(x, &exponent);  // In [1/2, 1).
  return mantissa < std::sqrt(0.5) ? exponent - 1 : exponent;
}

int CeilingExponent(double x) {
  int exponent;
  return std::frexp(x, &exponent) == 0.5 ? exponent - 1 : exponent;
}

double LogNoise(const Reader& reader, absl::Span<const int> exponents) {
  const ChannelStatistics& input = *reader.input;
  double min = 0, max = 0;
  for (int64_t c = 0; c < input.channels(); ++c) {
    min = std::min(min, std::ldexp(input.min(c), -exponents[c]));
    max = std::max(max, std::ldexp(input.max(c), -exponents[c]));
  }
  const double input_step = (max - min) / 255;
  const Tensor& weight = *reader.weight;
  const int64_t outer = weight.dim(0), inner = weight.dim(1), kernel = KernelSize(weight);
  double sum = 0;
  int64_t outputs = 0;
  for (int64_t o = 0; o < outer; ++o) {
    double weights = 0, inputs = 0, signal = 0, largest = 0;
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t c = o / (outer / reader.groups) * inner + i;
      const Pair pair = PairOf(weight, o * inner + i, kernel);
      const double square = input.mean_square(c);
      weights += std::ldexp(pair.squares, 2 * exponents[c]);
      inputs += std::ldexp(square * kernel, -2 * exponents[c]);
      signal += pair.squares * square;
      largest = std::max(largest, std::ldexp(pair.largest, exponents[c]));
    }
    if (signal == 0) continue;
    const double weight_step = largest / 127;
    sum += wide::Log((input_step * input_step * weights + weight_step * weight_step * inputs) / 12 / signal);
    ++outputs;
  }
  return outputs == 0 ? 0 : sum / outputs;
}

std::vector<int> BalancingExponents(absl::Span<const double> ranges, absl::Span<const double> weights, int eighths) {
  std::vector<int> exponents(ranges.size());
  size_t anchor = 0;
  for (size_t c = 0; c < ranges.size(); ++c) {
    if (ranges[c] * weights[c] > ranges[anchor] * weights[anchor]) anchor = c;
  }
  const auto exponent = [&](size_t c) {
    return NearestExponent(EighthPower(ranges[c], eighths) / EighthPower(weights[c], 8 - eighths));
  };
  for (size_t c = 0; c < ranges.size(); ++c) {
    if (ranges[c] == 0 || weights[c] == 0) continue;
    exponents[c] = std::clamp(exponent(c) - exponent(anchor), -kLargestExponent, kLargestExponent);
  }
  return exponents;
}

ChannelScales ChooseScales(absl::Span<const Reader> readers, absl::Span<const int> limits) {
  const int64_t channels = readers[0].input->channels();
  std::vector<double> ranges(channels);
  for (const Reader& reader : readers) {
    for (int64_t c = 0; c < channels; ++c) ranges[c] = std::max(ranges[c], reader.input->magnitude(c));
  }
  const std::vector<double> weights = RelativeWeights(readers, channels);
  ChannelScales best{std::vector<int>(channels)};
  const double noise_before = MeanLogNoise(readers, best.exponents);
  double least = noise_before;
  for (int quarters = 0; quarters <= 4; ++quarters) {
    std::vector<int> exponents = BalancingExponents(ranges, weights, 2 * quarters);
    const int most = limits.empty() ? 0 : *std::max_element(exponents.begin(), exponents.end());
    for (size_t c = 0; c < limits.size(); ++c) exponents[c] = std::clamp(exponents[c] - most, limits[c], 0);
    const double noise = MeanLogNoise(readers, exponents);
    if (noise < least) {
      least = noise;
      best.exponents = std::move(exponents);
    }
  }
  best.gain_db = (noise_before - least) * 10 / M_LN10;
  return best;
}

}  // namespace fuselage::equalization
