#include <immintrin.h>

#include "kernels/int8/max_pool2d/max_pool2d_rows.h"

namespace fuselage::int8::max_pool2d {
namespace {

template <bool kSigned>
struct Ymm {
  using Type = __m256i;
  static constexpr int64_t kWidth = 32;
  Type lowest = _mm256_set1_epi8(kSigned ? -128 : 0);
  static Type Load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const Type*>(p)); }
  static void Store(uint8_t* p, Type v) { _mm256_storeu_si256(reinterpret_cast<Type*>(p), v); }
  static Type Max(Type a, Type b) { return kSigned ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b); }
};

}  // namespace

void avx2::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  MaxRowsOf<Ymm>(p, x, y, row_begin, row_end);
}

}  // namespace fuselage::int8::max_pool2d
