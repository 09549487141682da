#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

using kernels::Isa;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, false, scalar::Run},
    {"avx2", Isa::kAvx2, false, avx2::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, true, avx512_vnni::Run},
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

void scalar::Run(const Tile& t) {
  const int16_t *a = static_cast<const int16_t*>(t.a), *b = static_cast<const int16_t*>(t.b);
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int n = 0; n < t.columns; ++n) {
      uint32_t sum = static_cast<uint32_t>(t.addend[n]);  // Wraps without undefined behaviour.
      for (int64_t k = 0; k < 2 * t.steps; ++k) {
        sum += static_cast<uint32_t>(a[r * 2 * t.steps + k] * b[(k / 2 * kPanel + n) * 2 + k % 2]);
      }
      t.c[r * t.c_stride + n] = static_cast<int32_t>(sum);
    }
  }
}

}  // namespace fuselage::integer
