#include "kernels/core/avx512.h"
#include "kernels/int8/max_pool2d/max_pool2d_rows.h"

namespace fuselage::int8::max_pool2d {
namespace {

template <bool kSigned>
struct Zmm {
  using Type = __m512i;
  static constexpr int64_t kWidth = 64;
  Type lowest = _mm512_set1_epi8(kSigned ? -128 : 0);
  static Type Load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void Store(uint8_t* p, Type v) { _mm512_storeu_si512(p, v); }
  static Type Max(Type a, Type b) { return kSigned ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b); }
};

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  MaxRowsOf<Zmm>(p, x, y, row_begin, row_end);
}

}  // namespace fuselage::int8::max_pool2d
