#include "kernels/core/avx512.h"
#include "kernels/norm/rows.h"

namespace fuselage::norm {
namespace {

struct Doubles {
  static Doubles Load(const float* x) { return {_mm512_cvtps_pd(_mm256_loadu_ps(x))}; }
  static Doubles Load(const double* x) { return {_mm512_loadu_pd(x)}; }

  friend Doubles operator+(Doubles a, Doubles b) { return {_mm512_add_pd(a.v, b.v)}; }
  friend Doubles operator-(Doubles a, double b) { return {_mm512_sub_pd(a.v, _mm512_set1_pd(b))}; }
  friend Doubles operator*(Doubles a, Doubles b) { return {_mm512_mul_pd(a.v, b.v)}; }

  double Sum() const {
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }

  __m512d v;
};

}  // namespace

void FUSELAGE_AVX512_VNNI::Normalize(const Block& block) {
  NormalizeBlock<Doubles>(block, kernels::FUSELAGE_AVX512_VNNI::Activate);
}

}  // namespace fuselage::norm
