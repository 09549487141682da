// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_ATTENTION_LOOPS_H_
#define FUSELAGE_KERNELS_ATTENTION_LOOPS_H_

#include "ir/base/elementwise_math.h"
#include "kernels/attention/attention.h"

namespace fuselage::attention {
namespace {

constexpr float kNever = -__builtin_inff();

inline void FinishScores(const ScoreRow& row, const float* mask, float* __restrict s, int64_t n) {
  const float scale = row.scale, cap = row.softcap;
  for (int64_t i = 0; i < n; ++i) s[i] *= scale;
  if (cap != 0) {
    for (int64_t i = 0; i < n; ++i) s[i] = cap * elementwise::Tanh(s[i] / cap);
  }
  if (mask != nullptr) {
    for (int64_t i = 0; i < n; ++i) s[i] += mask[i];
  }
  for (; n % kLanes != 0; ++n) s[n] = kNever;
}

inline float WeightsLoop(const ScoreRow& row) {
  constexpr int64_t kBlock = reproducible::kDepth;
  const auto rounded = [&](int64_t begin) {  // The size of the block from key `begin` on.
    const int64_t left = row.keys - begin;
    return left < kBlock ? (left + kLanes - 1) / kLanes * kLanes : kBlock;
  };
  float largest[kLanes];
  for (int l = 0; l < kLanes; ++l) largest[l] = kNever;
  float* s = row.scores;
  for (int64_t begin = 0; begin < row.keys; begin += kBlock, s += row.stride) {
    const int64_t left = row.keys - begin;
    FinishScores(row, row.mask == nullptr ? nullptr : row.mask + begin, s, left < kBlock ? left : kBlock);
    for (int64_t i = 0; i < rounded(begin); i += kLanes) {
      for (int l = 0; l < kLanes; ++l) largest[l] = s[i + l] > largest[l] ? s[i + l] : largest[l];
    }
  }
  for (int l = 1; l < kLanes; ++l) largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
  const float most = largest[0] == kNever ? 0.0f : largest[0];
  float sums[kLanes] = {};
  s = row.scores;
  for (int64_t begin = 0; begin < row.keys; begin += kBlock, s += row.stride) {
    for (int64_t i = 0; i < rounded(begin); i += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const float distance = s[i + l] - most, e = elementwise::ExpOfNegative(distance);
        s[i + l] = distance < -87.0f ? 0.0f : e;
        sums[l] += s[i + l];
      }
    }
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) sums[l] += sums[l + width];
  }
  return sums[0];
}

inline void DivideLoop(const float* __restrict sums, float weight, int64_t n, float* __restrict y) {
  if (weight == 0) {
    for (int64_t e = 0; e < n; ++e) y[e] = 0;
  } else {
    for (int64_t e = 0; e < n; ++e) y[e] = sums[e] / weight;
  }
}

}  // namespace
}  // namespace fuselage::attention

#endif  // FUSELAGE_KERNELS_ATTENTION_LOOPS_H_
