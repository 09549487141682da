// AVX-VNNI: AVX-512 VNNI's dot products on registers of AVX2's size, for CPUs without AVX-512. vpdpbusd adds four
// products u8 * i8 to each of 8 int32 lanes, exactly, in the place of vpmaddwd and vpaddd on two; all else is AVX2's.
#include "kernels/core/avx_vnni.h"
#include "kernels/int8/conv2d/load_bytes.h"
#include "kernels/int8/conv2d/multiply_avx2.h"
#include "kernels/int8/conv2d/primitives.h"

namespace fuselage::int8::conv2d {
namespace {

struct ByteProduct {
  static inline __m256i Add(__m256i sum, __m256i x, __m256i weights) {
    return _mm256_dpbusd_avx_epi32(sum, x, weights);
  }
};

// Two products of int16, of Winograd's transformed input and weights.
struct FusedWordProduct {
  static inline __m256i Add(__m256i sum, __m256i x, __m256i weights) {
    return _mm256_dpwssd_avx_epi32(sum, x, weights);
  }
};

DirectPrimitives MakeDirectAvxVnni() {
  DirectPrimitives direct = DirectAvx2();
  direct.element_bytes = 1;
  direct.load = LoadBytes;
  direct.multiply = MultiplyRows<ByteProduct>;
  return direct;
}

WinogradPrimitives MakeWinogradAvxVnni() {
  WinogradPrimitives winograd = WinogradAvx2();
  winograd.multiply = MultiplyRows<FusedWordProduct>;
  // With 4 tiles (7x7, batch 1) the direct product is 1.1 times as fast as late transforms, with 16 (14x14) 0.8 times.
  winograd.least_tiles_late = 8;
  return winograd;
}

}  // namespace

#ifdef FUSELAGE_EMULATE_AVX512
#define DirectAvxVnni DirectAvxVnniEmulated
#define WinogradAvxVnni WinogradAvxVnniEmulated
#endif

const DirectPrimitives& DirectAvxVnni() {
  static const DirectPrimitives direct = MakeDirectAvxVnni();
  return direct;
}

const WinogradPrimitives& WinogradAvxVnni() {
  static const WinogradPrimitives winograd = MakeWinogradAvxVnni();
  return winograd;
}

}  // namespace fuselage::int8::conv2d
