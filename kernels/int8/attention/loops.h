// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_INT8_ATTENTION_LOOPS_H_
#define FUSELAGE_KERNELS_INT8_ATTENTION_LOOPS_H_

#include <cstring>

#include "ir/base/attention_weight.h"
#include "ir/base/elementwise_math.h"
#include "kernels/int8/attention/attention.h"

namespace fuselage::int8::attention {
namespace {

// softcap and mask of a row, and kNever up to the next multiple of kLanes.
inline void AdjustScores(const Softmax& softmax, int64_t row) {
  float* __restrict s = softmax.scores + row * softmax.score_stride;
  const float* __restrict mask = softmax.masks[row];
  const float cap = softmax.softcap;
  const int64_t keys = softmax.keys[row];
  if (cap != 0) {
    for (int64_t j = 0; j < keys; ++j) s[j] = cap * elementwise::Tanh(s[j] / cap);
  }
  if (mask != nullptr) {
    for (int64_t j = 0; j < keys; ++j) s[j] += mask[j];
  }
  for (int64_t j = keys; j % kLanes != 0; ++j) s[j] = kNever;
}

// Weights of `keys` scores, a multiple of kLanes, and their sum.
inline int32_t RowWeights(const float* __restrict s, int64_t keys, uint8_t* __restrict weights) {
  float largest[kLanes];
  for (int l = 0; l < kLanes; ++l) largest[l] = kNever;
  for (int64_t j = 0; j < keys; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) largest[l] = s[j + l] > largest[l] ? s[j + l] : largest[l];
  }
  for (int l = 1; l < kLanes; ++l) largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
  const float most = largest[0] == kNever ? 0.0f : largest[0];
  int32_t sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const int32_t p = AttentionWeight<OneLane>(s[j] - most) - kRoundingBits;
    weights[j] = static_cast<uint8_t>(p);
    sum += p;
  }
  return sum;
}

inline int64_t WholeLanes(int64_t keys) { return (keys + kLanes - 1) / kLanes * kLanes; }

// Zeros behind the weights of whole lanes. The next row overwrites lanes that are longer than this one.
inline void FillRow(const Softmax& softmax, int64_t row, int64_t lanes) {
  if (lanes >= softmax.weight_stride) return;
  std::memset(softmax.weights + row * softmax.weight_stride + lanes, 0, softmax.weight_stride - lanes);
}

inline void WeightsLoop(const Softmax& softmax) {
  // All rows' at first: a vector's load would wait for narrower stores right before it.
  for (int64_t row = 0; row < softmax.rows; ++row) AdjustScores(softmax, row);
  for (int64_t row = 0; row < softmax.rows; ++row) {
    const int64_t lanes = WholeLanes(softmax.keys[row]);
    softmax.sums[row] =
        RowWeights(softmax.scores + row * softmax.score_stride, lanes, softmax.weights + row * softmax.weight_stride);
    FillRow(softmax, row, lanes);
  }
}

// Codes are of sums that are floats.
inline void FinishLoop(const Mixtures& m) {
  constexpr float kMost = 2097152.0f;  // Far beyond all codes.
  const int32_t zero_point = m.zero_point - kRoundingBits;
  const uint8_t flip = m.flip;
  for (int64_t row = 0; row < m.rows; ++row) {
    const float* __restrict sums = m.sums + row * m.stride;
    const float multiplier = m.multipliers[row];
    if (m.is_float) {
      float* __restrict to = static_cast<float*>(m.y) + row * m.width;
      const bool are_sums = m.row_addends != nullptr;
      const int32_t addend = are_sums ? m.row_addends[row] : 0;
      for (int64_t e = 0; e < m.width; ++e) {
        const float sum = are_sums ? static_cast<float>(OneLane::AddBits(OneLane::BitsOf(sums[e]), addend)) : sums[e];
        to[e] = sum * multiplier;
      }
      continue;
    }
    uint8_t* __restrict to = static_cast<uint8_t*>(m.y) + row * m.width;
    for (int64_t e = 0; e < m.width; ++e) {
      float v = sums[e] * multiplier;
      v = v < -kMost ? -kMost : v;
      v = v > kMost ? kMost : v;
      int32_t q = OneLane::BitsOf(v + kRoundingSum) + zero_point;
      q = q < 0 ? 0 : q;
      q = q > 255 ? 255 : q;
      to[e] = static_cast<uint8_t>(q) ^ flip;
    }
  }
}

template <typename Code>
inline void ScoresOf(const FewScores& few) {
  for (int64_t j = 0; j < few.keys; ++j) {
    const Code* __restrict key = reinterpret_cast<const Code*>(few.codes) + j * few.depth;
    for (int64_t row = 0; row < few.rows; ++row) {
      const int16_t* __restrict query = few.queries + row * few.depth;
      int32_t sum = 0;
      for (int64_t d = 0; d < few.depth; ++d) sum += int32_t{query[d]} * int32_t{static_cast<int16_t>(key[d])};
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(few.addends[row]));
      few.scores[row * few.stride + j] = static_cast<float>(sum) * few.multiplier;
    }
  }
}

inline void ScoresLoop(const FewScores& few) { few.is_signed ? ScoresOf<int8_t>(few) : ScoresOf<uint8_t>(few); }

// A weight times a code has 16 bits, with a sign or without.
template <typename Code, typename Product>
inline void MixturesOf(const FewMixtures& few) {
  constexpr int64_t kColumns = 64;
  for (int64_t row = 0; row < few.rows; ++row) {
    const uint8_t* weights = few.weights + row * few.stride;
    for (int64_t first = 0; first < few.width; first += kColumns) {
      const int64_t columns = few.width - first < kColumns ? few.width - first : kColumns;
      int32_t sums[kColumns] = {};
      for (int64_t j = 0; j < few.keys; ++j) {
        const Code* __restrict value = reinterpret_cast<const Code*>(few.codes) + j * few.width + first;
        const Product weight = weights[j];
        for (int64_t e = 0; e < columns; ++e) sums[e] += static_cast<Product>(weight * value[e]);
      }
      float* to = few.sums + row * few.width + first;
      for (int64_t e = 0; e < columns; ++e) {
        const uint32_t sum = static_cast<uint32_t>(sums[e]) + static_cast<uint32_t>(few.addends[row]);
        to[e] = static_cast<float>(static_cast<int32_t>(sum));
      }
    }
  }
}

inline void MixLoop(const FewMixtures& few) {
  few.is_signed ? MixturesOf<int8_t, int16_t>(few) : MixturesOf<uint8_t, uint16_t>(few);
}

}  // namespace
}  // namespace fuselage::int8::attention

#endif  // FUSELAGE_KERNELS_INT8_ATTENTION_LOOPS_H_
