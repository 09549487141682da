#include "kernels/core/avx2.h"
#include "kernels/int8/quantize/quantize_interleave.h"

namespace fuselage::int8::quantize {
namespace {

// NaN becomes 0, and so the zero point.
inline __m256 Divide(const float* x, __m256 scale) {
  const __m256 v = _mm256_div_ps(_mm256_loadu_ps(x), scale);
  return _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
}

}  // namespace

void avx2::Run(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end) {
  const __m256 scale = _mm256_set1_ps(p.scale);
  const kernels::avx2::OutputCodes codes = kernels::avx2::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  QuantizeImages<32>(p, x, y, begin, end, [&](const float* from, uint8_t* to) {
    const __m256i q = kernels::avx2::ToCodes(Divide(from, scale), Divide(from + 8, scale), Divide(from + 16, scale),
                                             Divide(from + 24, scale), codes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), q);
  });
}

}  // namespace fuselage::int8::quantize
