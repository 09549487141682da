// The factor of each channel between layers for which 8-bit inputs and weights make the least noise.
#ifndef FUSELAGE_PASSES_EQUALIZATION_CHANNEL_SCALES_H_
#define FUSELAGE_PASSES_EQUALIZATION_CHANNEL_SCALES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/base/tensor.h"

namespace fuselage::equalization {

// The magnitude of exponents is at most this: beyond, a channel has no part in what is computed, and products could
// leave the range of floats.
constexpr int kLargestExponent = 16;

// What calibration samples say of the channels of a value. Values come one after another; the moments do not depend on
// machine or threads.
class ChannelStatistics {
 public:
  ChannelStatistics(int64_t channels, int axis) : axis_(axis), channels_(channels) {}

  // InvalidArgument where a value is not finite: "element 17 is nan".
  absl::Status Add(const Tensor& value);

  int64_t channels() const { return static_cast<int64_t>(channels_.size()); }
  double min(int64_t c) const { return channels_[c].min; }  // At most 0.
  double max(int64_t c) const { return channels_[c].max; }  // At least 0.
  double magnitude(int64_t c) const;                        // The larger of the two.
  double mean_square(int64_t c) const { return count_ == 0 ? 0 : channels_[c].squares / count_; }

 private:
  struct Channel {
    double min = 0, max = 0, squares = 0;
  };
  int axis_;
  int64_t count_ = 0;  // Elements of one channel.
  std::vector<Channel> channels_;
};

// A layer that reads the channels, with what it reads.
struct Reader {
  const Tensor* weight;  // [outputs, inputs of one group, ...]
  int64_t groups;
  const ChannelStatistics* input;
};

// The exponents of s = range^a / weight^(1 - a) with a = eighths / 8, by channel, over that of the channel with the
// largest product of the two, which scaling leaves what it is. 0 where range or weight is 0.
std::vector<int> BalancingExponents(absl::Span<const double> ranges, absl::Span<const double> weights, int eighths);

struct ChannelScales {
  // Channel c is divided by 2^exponents[c] where it is written, and multiplied where it is read.
  std::vector<int> exponents;
  double gain_db = 0;  // By how much the readers' noise falls, by the model of LogNoise.
};

// `limits`: an exponent is at least limits[c] and at most 0; empty: no limits. Exponents 0 where nothing is gained.
ChannelScales ChooseScales(absl::Span<const Reader> readers, absl::Span<const int> limits);

// The layer's noise over its signal, as powers: the mean over the outputs of the logarithm of
//   (step of the input)^2 / 12 * sum w^2  +  (step of the output's weights)^2 / 12 * sum E[x^2]
// over sum w^2 E[x^2]. The mean of the ratios themselves would follow outputs with next to no signal, as a depthwise
// layer's dead channels are.
// Codes of the input span its range, weights have a step for each output; rounding errors count as uniform and
// independent.
double LogNoise(const Reader& reader, absl::Span<const int> exponents);

// The exponent of the power of two nearest to `x` > 0, by ratio.
int NearestExponent(double x);
// The least e with 2^e >= x > 0.
int CeilingExponent(double x);

}  // namespace fuselage::equalization

#endif  // FUSELAGE_PASSES_EQUALIZATION_CHANNEL_SCALES_H_
