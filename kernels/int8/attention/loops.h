// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_INT8_ATTENTION_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_ATTENTION_LOOPS_H_

#include <cstring>

#include "ir/base/elementwise_math.h"
#include "kernels/int8/attention/attention.h"

namespace fuselage::int8::attention {
namespace {

// 1.5 * 2^23: the sum with a float of at most 2^22 is its nearest integer, half to even, in the lowest bits.
constexpr float kRound = 12582912.0f;
constexpr int32_t kRoundBits = 0x4B400000;

inline int32_t RoundedBits(float x) {
  const float sum = x + kRound;
  int32_t bits;
  std::memcpy(&bits, &sum, sizeof(bits));
  return bits;
}

// The scores with what is done to them before their softmax.
inline void AdjustScores(const ScoreRow& row) {
  float* __restrict s = row.scores;
  const float cap = row.softcap;
  if (cap != 0) {
    for (int64_t j = 0; j < row.keys; ++j) s[j] = cap * elementwise::Tanh(s[j] / cap);
  }
  if (row.mask != nullptr) {
    for (int64_t j = 0; j < row.keys; ++j) s[j] += row.mask[j];
  }
}

inline int32_t WeightsLoop(const ScoreRow& row, uint8_t* __restrict weights) {
  AdjustScores(row);
  const float* __restrict s = row.scores;
  const int64_t keys = (row.keys + kLanes - 1) / kLanes * kLanes;
  float largest[kLanes];
  for (int l = 0; l < kLanes; ++l) largest[l] = kNever;
  for (int64_t j = 0; j < keys; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) largest[l] = s[j + l] > largest[l] ? s[j + l] : largest[l];
  }
  for (int l = 1; l < kLanes; ++l) largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
  const float most = largest[0] == kNever ? 0.0f : largest[0];
  int32_t sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const float distance = s[j] - most, power = elementwise::ExpOfNegative(distance);
    const float e = distance >= -87.0f ? power : 0.0f;
    const int32_t p = RoundedBits(255.0f * e) - kRoundBits;
    weights[j] = static_cast<uint8_t>(p);
    sum += p;
  }
  return sum;
}

inline void FinishLoop(const Output& output, const float* __restrict sums, float multiplier, int64_t n, void* y) {
  if (output.is_float) {
    float* __restrict to = static_cast<float*>(y);
    for (int64_t e = 0; e < n; ++e) to[e] = sums[e] * multiplier;
    return;
  }
  constexpr float kMost = 2097152.0f;  // Far beyond all codes.
  uint8_t* __restrict to = static_cast<uint8_t*>(y);
  const int32_t zero_point = output.zero_point - kRoundBits;
  const uint8_t flip = output.flip;
  for (int64_t e = 0; e < n; ++e) {
    float v = sums[e] * multiplier;
    v = v < -kMost ? -kMost : v;
    v = v > kMost ? kMost : v;
    int32_t q = RoundedBits(v) + zero_point;
    q = q < 0 ? 0 : q;
    q = q > 255 ? 255 : q;
    to[e] = static_cast<uint8_t>(q) ^ flip;
  }
}

}  // namespace
}  // namespace fuselage::int8::attention

#endif  // FUSELAGE_KERNELS_INT8_ATTENTION_LOOPS_H_
