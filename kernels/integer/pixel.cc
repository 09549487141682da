#include "kernels/integer/pixel.h"

#include <algorithm>

namespace fuselage::integer::depthwise {
namespace {

using kernels::Isa;

bool HasWholeBlock(const Pixel& pixel) { return pixel.channels >= kLanes; }

constexpr Variant kVariants[] = {
    {"scalar depthwise", Isa::kScalar, nullptr, scalar::Run},
    {"avx2 depthwise", Isa::kAvx2, HasWholeBlock, avx2::Run},
    {"avx512_vnni depthwise", Isa::kAvx512Vnni, HasWholeBlock, avx512_vnni::Run},
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

void scalar::Run(const Pixel& p) {
  const int64_t lanes = std::min(kLanes, p.channels);
  const int16_t* weight = p.weight;
  for (int64_t block = 0; block < p.channels; block += kLanes, weight += 2 * p.pairs * kLanes) {
    const int64_t first = std::min(block, p.channels - lanes);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      uint32_t sum = static_cast<uint32_t>(p.first[first + lane]);  // Wraps without undefined behaviour.
      for (int64_t t = 0; t < 2 * p.pairs; ++t) {
        const uint8_t code = p.taps[t][first + lane];
        const int32_t value = p.is_signed ? static_cast<int8_t>(code) : code;
        sum += static_cast<uint32_t>(value * weight[(t / 2 * kLanes + lane) * 2 + t % 2]);
      }
      p.sums[first + lane] = static_cast<int32_t>(sum);
    }
  }
}

}  // namespace fuselage::integer::depthwise
