// Products of few output channels, which leave most lanes of a panel idle: here the lanes are along the depth, and each
// sum is added up at its end. Everything is local to the including source: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_FEW_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_FEW_H_

#include <string.h>

#include "kernels/int8/conv2d/direct/loops.h"

namespace fuselage::int8::conv2d::direct {
namespace {

// Isa: Vector of kDwords dwords; Zero(), Load(p), LoadFirst(p, n) of n dwords and zeros, Add(sum, x, weights) of the
// products of each dword, Sums(v) of each of four vectors' lanes.
//
// The rows of kPixels pixels by kChannels channels, whose weights lie [channel][dword]. `run`: dwords that follow each
// other in a row.
template <typename Isa, int kChannels, int kPixels>
inline void MultiplyFewTile(const Multiply& m, const char* a, const char* b, int64_t run, int32_t* c) {
  // Vectors of sums are added up four at a time; the last may be zeros.
  constexpr int kSums = kPixels * kChannels;
  typename Isa::Vector sum[(kSums + 3) / 4 * 4];
#pragma GCC unroll 16
  for (typename Isa::Vector& each : sum) each = Isa::Zero();
  const int64_t channel_bytes = m.depth * kDwordBytes;
  const auto add = [&](const char* x, const char* weights, auto load) __attribute__((always_inline)) {
    typename Isa::Vector codes[kPixels];
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) codes[p] = load(x + p * m.a_stride);
#pragma GCC unroll 16
    for (int j = 0; j < kChannels; ++j) {
      const typename Isa::Vector w = load(weights + j * channel_bytes);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) sum[p * kChannels + j] = Isa::Add(sum[p * kChannels + j], codes[p], w);
    }
  };
  for (int64_t first = 0; first < m.depth; first += run) {
    const char *x = a + m.offsets[first], *weights = b + first * kDwordBytes;
    int64_t i = 0;
    for (; i + Isa::kDwords <= run; i += Isa::kDwords) {
      add(x + i * kDwordBytes, weights + i * kDwordBytes, [](const char* p) { return Isa::Load(p); });
    }
    if (const int left = static_cast<int>(run - i); left > 0) {
      add(x + i * kDwordBytes, weights + i * kDwordBytes, [left](const char* p) { return Isa::LoadFirst(p, left); });
    }
  }
  int32_t sums[(kSums + 3) / 4 * 4];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; i += 4) _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + i), Isa::Sums(sum + i));
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) memcpy(c + p * m.c_stride, sums + p * kChannels, sizeof(int32_t) * kChannels);
}

// As many pixels as registers hold the sums of.
template <typename Isa, int kChannels>
inline void MultiplyFewRows(const Multiply& m, int channel, int64_t run) {
  constexpr int kPixels = kChannels <= 2 ? 4 : kChannels == 3 ? 3 : 2;
  const char* a = static_cast<const char*>(m.a);
  const char* b = static_cast<const char*>(m.b) + channel * m.depth * kDwordBytes;
  int32_t* c = m.c + channel;
  int row = 0;
  for (; row + kPixels <= m.rows; row += kPixels, a += kPixels * m.a_stride, c += kPixels * m.c_stride) {
    MultiplyFewTile<Isa, kChannels, kPixels>(m, a, b, run, c);
  }
  for (; row < m.rows; ++row, a += m.a_stride, c += m.c_stride) MultiplyFewTile<Isa, kChannels, 1>(m, a, b, run, c);
}

template <typename Isa>
void MultiplyFew(const Multiply& m, int channels) {
  int64_t run = 1;
  while (run < m.depth && m.offsets[run] == m.offsets[0] + run * kDwordBytes) ++run;
  for (int channel = 0; channel < channels; channel += 4) {
    switch (channels - channel) {
      case 1: MultiplyFewRows<Isa, 1>(m, channel, run); break;
      case 2: MultiplyFewRows<Isa, 2>(m, channel, run); break;
      case 3: MultiplyFewRows<Isa, 3>(m, channel, run); break;
      default: MultiplyFewRows<Isa, 4>(m, channel, run); break;
    }
  }
}

// Results of few channels that follow each other, as rows of a panel's lanes, with the constants of each lane.
template <FinishPixels* kFinish>
void FinishFew(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const int channels = to.channels;
  const bool dense = to.pixel_stride == channels && (!stage.has_residual || to.residual_pixel_stride == channels);
  if (!dense) return kFinish(stage, to, c, c_stride, pixels);
  constexpr int kMost = kMostFewChannels * kPanel;
  // Rows `period` apart have the same channels in their lanes.
  int period = channels;
  while (period % 2 == 0) period /= 2;
  int32_t bias[kMost];
  float multiplier[kMost], float_bias[kMost], function_multiplier[kMost], function_offset[kMost];
  for (int lane = 0; lane < period * kPanel; ++lane) {
    const int channel = to.channel + lane % channels;
    bias[lane] = stage.bias[channel];
    multiplier[lane] = stage.multiplier[channel];
    float_bias[lane] = stage.is_float ? stage.float_bias[channel] : 0;
    function_multiplier[lane] = stage.function_multiplier[channel];
    function_offset[lane] = stage.function_offset[channel];
  }
  OutputStage lanes = stage;
  lanes.bias = bias;
  lanes.multiplier = multiplier;
  lanes.float_bias = float_bias;
  lanes.function_multiplier = function_multiplier;
  lanes.function_offset = function_offset;
  const int64_t output_bytes = stage.is_float ? sizeof(float) : 1;
  constexpr int kPixels = 48;
  int32_t sums[kPixels * kMostFewChannels + kPanel] = {};
  for (int done = 0; done < pixels; done += kPixels) {
    const int count = pixels - done < kPixels ? pixels - done : kPixels, total = count * channels;
    for (int p = 0; p < count; ++p) {
      memcpy(sums + p * channels, c + (done + p) * c_stride, sizeof(int32_t) * kMostFewChannels);
    }
    const int rows = total / kPanel;
    const auto finish = [&](int row, int count_of_rows, int count_of_lanes) {
      Destination part = to;
      part.output = static_cast<char*>(to.output) + (int64_t{done} * channels + row * kPanel) * output_bytes;
      if (to.residual != nullptr) part.residual = to.residual + int64_t{done} * channels + row * kPanel;
      part.pixel_stride = part.residual_pixel_stride = int64_t{period} * kPanel;
      part.channel = row % period * kPanel;
      part.channels = count_of_lanes;
      kFinish(lanes, part, sums + row * kPanel, int64_t{period} * kPanel, count_of_rows);
    };
    for (int row = 0; row < period && row < rows; ++row) finish(row, (rows - row + period - 1) / period, kPanel);
    if (total % kPanel != 0) finish(rows, 1, total % kPanel);
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d::direct

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_FEW_H_
