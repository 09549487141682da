// The sums of one output pixel of a depthwise convolution.
#ifndef FUSELAGE_KERNELS_INTEGER_PIXEL_H_
#define FUSELAGE_KERNELS_INTEGER_PIXEL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/variant.h"

namespace fuselage::integer::depthwise {

constexpr int64_t kLanes = 16;  // Channels of a block. The last block begins within the one before to be whole.

// sums[c] = first[c] + sum over t of taps[t][c] * weight[c's block][t / 2][c's lane][t % 2], modulo 2^32.
struct Pixel {
  const uint8_t* const* taps = nullptr;  // [2 * pairs], the codes of a pixel each.
  bool is_signed = false;                // Codes are i8.
  const int16_t* weight = nullptr;       // [blocks][pairs][kLanes][2]
  const int32_t* first = nullptr;
  int32_t* sums = nullptr;
  int64_t pairs = 0, channels = 0;
};

using Function = void(const Pixel& pixel);
using Variant = kernels::Variant<Pixel, Function>;

absl::Span<const Variant> Variants();

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::integer::depthwise

#endif  // FUSELAGE_KERNELS_INTEGER_PIXEL_H_
