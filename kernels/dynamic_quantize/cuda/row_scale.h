// The symmetric scale of a row, of which each thread has seen some floats.
#ifndef FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_CUDA_ROW_SCALE_H_
#define FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_CUDA_ROW_SCALE_H_

#include <cfloat>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/block.h"

namespace fuselage::dynamic_quantize::cuda {

// dynamic_quantize::Range, with its order: floats' bits, all but the sign flipped where it is set.
struct Range {
  int32_t least = 0, greatest = 0;
};

FUSELAGE_HOST_DEVICE void Widen(float x, Range* range) {
  int32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  const int32_t ordered = bits ^ (bits >> 31 & 0x7fffffff);
  if (ordered < range->least) range->least = ordered;
  if (ordered > range->greatest) range->greatest = ordered;
}

// dynamic_quantize::SymmetricScale.
FUSELAGE_HOST_DEVICE float SymmetricScale(const Range& range) {
  const int32_t infinite = 0x7f800000, least_bits = range.least ^ (range.least >> 31 & 0x7fffffff);
  float least, greatest;
  memcpy(&least, &least_bits, sizeof(least));
  memcpy(&greatest, &range.greatest, sizeof(greatest));
  if ((least_bits & infinite) == infinite) return least;
  if (range.greatest >= infinite) return greatest;
  const float scale = fuselage::cuda::Divide(-least < greatest ? greatest : -least, 127.0f);
  return scale < FLT_MIN ? 1.0f : scale;
}

// What the `width` lanes that share a row have seen together; a power of two.
FUSELAGE_DEVICE void Join(fuselage::cuda::Warp warp, int width, fuselage::cuda::Lanes<Range>* ranges) {
  using fuselage::cuda::Lanes;
  using fuselage::cuda::Thread;
  for (int mask = width / 2; mask > 0; mask /= 2) {
    Lanes<int32_t> least, greatest;
    warp.ForThreads([&](Thread thread) {
      least[thread] = (*ranges)[thread].least;
      greatest[thread] = (*ranges)[thread].greatest;
    });
    const Lanes<int32_t> other_least = warp.Exchange(mask, least), other_greatest = warp.Exchange(mask, greatest);
    warp.ForThreads([&](Thread thread) {
      Range& range = (*ranges)[thread];
      if (other_least[thread] < range.least) range.least = other_least[thread];
      if (other_greatest[thread] > range.greatest) range.greatest = other_greatest[thread];
    });
  }
}

// Codes in [-127, 127] by a scale of that kind.
FUSELAGE_HOST_DEVICE uint8_t SymmetricCode(float x, float scale) {
  return static_cast<uint8_t>(fuselage::cuda::QuantizeValue(x, scale, {0, -127, 127}));
}

}  // namespace fuselage::dynamic_quantize::cuda

#endif  // FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_CUDA_ROW_SCALE_H_
