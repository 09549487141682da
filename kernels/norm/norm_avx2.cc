#include <immintrin.h>

#include "kernels/norm/rows.h"

namespace fuselage::norm {
namespace {

struct Doubles {
  static Doubles Load(const float* x) { return {_mm256_cvtps_pd(_mm_loadu_ps(x))}; }
  static Doubles Load(const double* x) { return {_mm256_loadu_pd(x)}; }

  friend Doubles operator+(Doubles a, Doubles b) { return {_mm256_add_pd(a.v, b.v)}; }
  friend Doubles operator-(Doubles a, double b) { return {_mm256_sub_pd(a.v, _mm256_set1_pd(b))}; }
  friend Doubles operator*(Doubles a, Doubles b) { return {_mm256_mul_pd(a.v, b.v)}; }

  double Sum() const {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }

  __m256d v;
};

}  // namespace

void avx2::Normalize(const Block& block) { NormalizeBlock<Doubles>(block, kernels::avx2::Activate); }

}  // namespace fuselage::norm
