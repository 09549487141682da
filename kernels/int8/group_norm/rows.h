// The loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_INT8_GROUP_NORM_ROWS_H_
#define FUSELAGE_KERNELS_INT8_GROUP_NORM_ROWS_H_

#include "kernels/core/activate.h"
#include "kernels/int8/group_norm/group_norm.h"

namespace fuselage::int8::group_norm {
namespace {

constexpr int64_t kMostPixels = 1 << 16;  // Whose squares add up in 32 bits: 2^16 * 255^2 < 2^32.
constexpr int64_t kMostChannels = 256;    // Whose sums stay in a core's first cache.

inline uint32_t CodeOf(uint8_t x, uint8_t flip) { return static_cast<uint8_t>(x ^ flip); }

// Of kPixels pixels, `stride` apart.
template <int kPixels>
inline void AddTogether(const uint8_t* x, int64_t channels, int64_t stride, uint8_t flip, uint32_t* codes,
                        uint32_t* squares) {
  for (int64_t c = 0; c < channels; ++c) {
    uint32_t sum = 0, square = 0;
    for (int k = 0; k < kPixels; ++k) {
      const uint32_t code = CodeOf(x[k * stride + c], flip);
      sum += code;
      square += code * code;
    }
    codes[c] += sum;
    squares[c] += square;
  }
}

// Of at most kMostChannels channels.
inline void AddChannels(const uint8_t* x, int64_t pixels, int64_t channels, int64_t stride, uint8_t flip, Sums* sums) {
  uint32_t codes[kMostChannels] = {}, squares[kMostChannels] = {};
  int64_t i = 0;
  for (; i + 4 <= pixels; i += 4) AddTogether<4>(x + i * stride, channels, stride, flip, codes, squares);
  for (; i < pixels; ++i) AddTogether<1>(x + i * stride, channels, stride, flip, codes, squares);
  for (int64_t c = 0; c < channels; ++c) {
    sums[c].codes += codes[c];
    sums[c].squares += squares[c];
  }
}

// One channel's pixels one behind the other.
inline void AddRow(const uint8_t* x, int64_t pixels, uint8_t flip, Sums* sums) {
  uint32_t codes = 0, squares = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    const uint32_t code = CodeOf(x[i], flip);
    codes += code;
    squares += code * code;
  }
  sums->codes += codes;
  sums->squares += squares;
}

inline void AddPixels(const Pixels& p, Sums* sums) {
  const uint8_t* x = p.x;
  for (int64_t rest = p.pixels; rest > 0; rest -= kMostPixels, x += kMostPixels * p.channels) {
    const int64_t pixels = rest < kMostPixels ? rest : kMostPixels;
    if (p.channels == 1) {
      AddRow(x, pixels, p.flip, sums);
      continue;
    }
    for (int64_t c = 0; c < p.channels; c += kMostChannels) {
      const int64_t channels = p.channels - c < kMostChannels ? p.channels - c : kMostChannels;
      AddChannels(x + c, pixels, channels, p.channels, p.flip, sums + c);
    }
  }
}

inline float Scaled(const Pixels& p, uint8_t x, float gain, float offset) {
  return __builtin_fmaf(static_cast<float>(static_cast<int32_t>(CodeOf(x, p.flip)) - p.zero_point), gain, offset);
}

template <typename Activate>
inline void ScalePixels(const Pixels& p, const float* gains, const float* offsets,
                        const ElementwiseInstruction* function, float* y, Activate activate) {
  if (p.channels == 1) {
    const float gain = gains[0], offset = offsets[0];
    for (int64_t i = 0; i < p.pixels; ++i) y[i] = Scaled(p, p.x[i], gain, offset);
  } else {
    for (int64_t i = 0; i < p.pixels; ++i) {
      const uint8_t* x = p.x + i * p.channels;
      float* pixel = y + i * p.channels;
      for (int64_t c = 0; c < p.channels; ++c) pixel[c] = Scaled(p, x[c], gains[c], offsets[c]);
    }
  }
  constexpr int64_t kTogether = kernels::kActivatedTogether;
  if (function != nullptr) activate(*function, y, (p.pixels * p.channels + kTogether - 1) / kTogether * kTogether);
}

}  // namespace
}  // namespace fuselage::int8::group_norm

#endif  // FUSELAGE_KERNELS_INT8_GROUP_NORM_ROWS_H_
