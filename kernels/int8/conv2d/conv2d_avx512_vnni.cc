// AVX-512 VNNI's matrix product: vpdpbusd adds four products u8 * i8 to each of 16 int32 lanes, exactly (vpdpbusds
// would saturate). Up to 6 pixels by 64 output channels: 24 registers of sums, four of weights, one broadcast dword.
// The epilogue is AVX2's.
//
// Tests build this source a second time with FUSELAGE_EMULATE_AVX512: portable forms of the AVX-512 intrinsics.
#include "kernels/int8/conv2d/load_bytes.h"
#include "kernels/int8/conv2d/multiply_avx512.h"
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/output_avx512.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

// Four products u8 * i8.
struct Product {
  static inline __m512i Add(__m512i sum, __m512i x, __m512i weights) { return _mm512_dpbusd_epi32(sum, x, weights); }
};

template <bool kScattered>
void MultiplyPanels(const Multiply& m) {
  switch (m.panels) {
    case 1: return MultiplyRows<Product, 1, kScattered>(m);
    case 2: return MultiplyRows<Product, 2, kScattered>(m);
    case 3: return MultiplyRows<Product, 3, kScattered>(m);
    default: return MultiplyRows<Product, 4, kScattered>(m);
  }
}

void MultiplyVnni(const Multiply& m) { m.row_offsets != nullptr ? MultiplyPanels<true>(m) : MultiplyPanels<false>(m); }

// Four whole panels: the codes of a pixel are one vector.
template <bool kResidual>
void FinishWhole(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const WideConstants constants = WideConstantsOf(stage);
  WidePanel panels[4];
  for (int p = 0; p < 4; ++p) panels[p] = WidePanelOf(stage, to.channel + p * kPanel);
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* residual = to.residual;
  const int64_t pixel_stride = to.pixel_stride, residual_stride = to.residual_pixel_stride;
  for (int pixel = 0; pixel < pixels; ++pixel, c += c_stride, out += pixel_stride) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      v[p] = WideValues<kResidual>(constants, panels[p], _mm512_loadu_si512(c + p * kPanel), residual + p * kPanel);
    }
    _mm512_storeu_si512(out, core::ToCodes(v[0], v[1], v[2], v[3], constants.codes));
    if (kResidual) residual += residual_stride;
  }
}

template <OutputKind kKind>
void FinishPixels(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const Destination place = to;
  for (int first = 0; first < place.channels; first += kPanel) {
    const PanelConstants constants = PanelConstantsOf(stage, place.channel + first);
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const int32_t* from = c + pixel * c_stride + first;
      StoreAvx2<kKind>(constants, place, pixel * place.pixel_stride + first,
                       pixel * place.residual_pixel_stride + first, place.channels - first,
                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 8)));
    }
  }
}

void Finish(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  if (!stage.is_float && to.channels == 4 * kPanel) {
    return stage.has_residual ? FinishWhole<true>(stage, to, c, c_stride, pixels)
                              : FinishWhole<false>(stage, to, c, c_stride, pixels);
  }
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return FinishPixels<OutputKind::kCodes>(stage, to, c, c_stride, pixels);
    case OutputKind::kCodesWithResidual:
      return FinishPixels<OutputKind::kCodesWithResidual>(stage, to, c, c_stride, pixels);
    case OutputKind::kFloat: return FinishPixels<OutputKind::kFloat>(stage, to, c, c_stride, pixels);
  }
}

// Four panels of 96 dwords take 24 KB.
constexpr DirectPrimitives kDirect = {
    /*element_bytes=*/1, /*scattered_rows=*/true,   /*max_panels=*/4, /*chunk_depth=*/96,
    /*load=*/LoadBytes,  /*multiply=*/MultiplyVnni,
    /*finish=*/Finish};

}  // namespace

#ifdef FUSELAGE_EMULATE_AVX512
const DirectPrimitives& DirectAvx512VnniEmulated() { return kDirect; }
#else
const DirectPrimitives& DirectAvx512Vnni() { return kDirect; }
#endif

}  // namespace fuselage::int8::conv2d
