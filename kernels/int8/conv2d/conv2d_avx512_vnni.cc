// AVX-512 VNNI's matrix product: vpdpbusd adds four products u8 * i8 to each of 16 int32 lanes, exactly (vpdpbusds
// would saturate). Up to 6 pixels by 64 output channels: 24 registers of sums, four of weights, one broadcast dword.
// Codes leave by fours of panels or pixels, floats as AVX2's.
//
// Tests build this source a second time with FUSELAGE_EMULATE_AVX512: portable forms of the AVX-512 intrinsics.
#include <string.h>

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
template <bool kResidual, bool kActivated>
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
    _mm512_storeu_si512(out, WideCodes<kActivated>(constants, v));
    if (kResidual) residual += residual_stride;
  }
}

// Four pixels of one panel: their codes are one vector.
template <bool kResidual, bool kActivated>
void FinishPanel(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const WideConstants constants = WideConstantsOf(stage);
  const WidePanel panel = WidePanelOf(stage, to.channel);
  const int channels = to.channels < kPanel ? to.channels : kPanel;
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* const residuals = to.residual;
  const int64_t pixel_stride = to.pixel_stride, residual_stride = to.residual_pixel_stride;
  for (int pixel = 0; pixel < pixels; pixel += 4) {
    const int count = pixels - pixel < 4 ? pixels - pixel : 4;
    __m512 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      // A pixel that does not exist repeats the last.
      const int64_t from = i < count ? pixel + i : pixels - 1;
      uint8_t some[kPanel] = {};
      const uint8_t* residual = nullptr;
      if (kResidual) residual = residuals + from * residual_stride;
      if (kResidual && channels < kPanel) residual = static_cast<uint8_t*>(memcpy(some, residual, channels));
      v[i] = WideValues<kResidual>(constants, panel, _mm512_loadu_si512(c + from * c_stride), residual);
    }
    uint8_t codes[4][kPanel];
    _mm512_storeu_si512(codes, WideCodes<kActivated>(constants, v));
    for (int i = 0; i < count; ++i, out += pixel_stride) {
      if (channels == kPanel) {
        memcpy(out, codes[i], kPanel);
      } else {
        memcpy(out, codes[i], channels);
      }
    }
  }
}

void FinishFloats(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  for (int64_t pixel = 0; pixel < pixels; ++pixel, c += c_stride) {
    StoreAvx2<OutputKind::kFloat>(constants, place, pixel * place.pixel_stride, 0, place.channels,
                                  _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c)),
                                  _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c + 8)));
  }
}

// The panel of the channels from `first` on.
Destination PanelOf(Destination to, int first, int64_t element_bytes) {
  to.output = static_cast<uint8_t*>(to.output) + first * element_bytes;
  if (to.residual != nullptr) to.residual += first;
  to.channel += first;
  to.channels -= first;
  return to;
}

void Finish(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  if (stage.is_float) {
    for (int first = 0; first < to.channels; first += kPanel) {
      FinishFloats(stage, PanelOf(to, first, sizeof(float)), c + first, c_stride, pixels);
    }
    return;
  }
  WithCodesKind(stage, [&](auto residual, auto activated) {
    if (to.channels == 4 * kPanel) {
      return FinishWhole<residual.value, activated.value>(stage, to, c, c_stride, pixels);
    }
    for (int first = 0; first < to.channels; first += kPanel) {
      FinishPanel<residual.value, activated.value>(stage, PanelOf(to, first, 1), c + first, c_stride, pixels);
    }
  });
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
