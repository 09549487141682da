// AVX2's matrix product and direct convolution: int16 by vpmaddwd, which adds two products exactly. (vpmaddubsw takes
// u8 by i8 at twice the rate, but saturates its sums at 16 bits.)
#include <string.h>

#include "kernels/int8/conv2d/multiply_avx2.h"
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

inline __m256i LoadVector(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void StoreVector(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline int LoadDword(const void* p) {
  int v;
  memcpy(&v, p, sizeof(v));
  return v;
}

// kRows x 16 sums in 2*kRows <= 12 registers, two of weights, one broadcast dword and one product: all 16. A step of
// six rows is 12 vpmaddwd, 12 vpaddd and 8 loads: six cycles where two multiplications start per cycle.
template <int kRows>
void MultiplyRows(const Multiply& m) {
  __m256i sum[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = m.accumulate ? LoadVector(m.c + r * m.c_stride) : _mm256_setzero_si256();
    sum[r][1] = m.accumulate ? LoadVector(m.c + r * m.c_stride + 8) : _mm256_setzero_si256();
  }
  const char* b = static_cast<const char*>(m.b);
  const int64_t stride = m.a_stride;
#pragma GCC unroll 2
  for (int64_t d = 0; d < m.depth; ++d) {
    const char* a = static_cast<const char*>(m.a) + m.offsets[d];
    const char* a3 = a + 3 * stride;
    const __m256i b0 = LoadVector(b), b1 = LoadVector(b + 32);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256i x = _mm256_set1_epi32(LoadDword(r < 3 ? a + r * stride : a3 + (r - 3) * stride));
      sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(x, b0));
      sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(x, b1));
    }
    b += kPanelBytes;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    StoreVector(m.c + r * m.c_stride, sum[r][0]);
    StoreVector(m.c + r * m.c_stride + 8, sum[r][1]);
  }
}

void Load(const uint8_t* x, int64_t count, uint8_t flip, void* out) {
  int16_t* to = static_cast<int16_t*>(out);
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i codes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i)), flips);
    StoreVector(to + i, _mm256_cvtepi8_epi16(codes));
  }
  for (; i < count; ++i) to[i] = static_cast<int8_t>(x[i] ^ flip);
}

template <OutputKind kKind>
void FinishPixels(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  for (int64_t pixel = 0; pixel < pixels; ++pixel, c += c_stride) {
    StoreAvx2<kKind>(constants, place, pixel * place.pixel_stride, pixel * place.residual_pixel_stride, place.channels,
                     LoadVector(c), LoadVector(c + 8));
  }
}

void Finish(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return FinishPixels<OutputKind::kCodes>(stage, to, c, c_stride, pixels);
    case OutputKind::kCodesWithResidual:
      return FinishPixels<OutputKind::kCodesWithResidual>(stage, to, c, c_stride, pixels);
    case OutputKind::kFloat: return FinishPixels<OutputKind::kFloat>(stage, to, c, c_stride, pixels);
  }
}

constexpr DirectPrimitives kDirect = {
    /*element_bytes=*/2, /*scattered_rows=*/false,  /*max_panels=*/1, /*chunk_depth=*/512,
    /*load=*/Load,       /*multiply=*/MultiplyAvx2,
    /*finish=*/Finish};

}  // namespace

void MultiplyAvx2(const Multiply& m) {
  switch (m.rows) {
    case 1: return MultiplyRows<1>(m);
    case 2: return MultiplyRows<2>(m);
    case 3: return MultiplyRows<3>(m);
    case 4: return MultiplyRows<4>(m);
    case 5: return MultiplyRows<5>(m);
    default: return MultiplyRows<6>(m);
  }
}

const DirectPrimitives& DirectAvx2() { return kDirect; }

}  // namespace fuselage::int8::conv2d
