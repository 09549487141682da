// AVX2's direct convolution.
#include "kernels/int8/conv2d/multiply_avx2.h"
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

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
  WithOutputKind(stage, [&](auto kind) { FinishPixels<kind.value>(stage, to, c, c_stride, pixels); });
}

constexpr DirectPrimitives kDirect = {
    /*element_bytes=*/2, /*scattered_rows=*/false,
    /*max_panels=*/1,    /*chunk_depth=*/512,
    /*load=*/Load,       /*multiply=*/MultiplyRows<WordProduct>,
    /*finish=*/Finish};

}  // namespace

const DirectPrimitives& DirectAvx2() { return kDirect; }

}  // namespace fuselage::int8::conv2d
