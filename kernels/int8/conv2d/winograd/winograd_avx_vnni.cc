// Winograd on AVX-VNNI: AVX2's transforms, and a product and a sum in one instruction.
#include "kernels/core/avx_vnni.h"
#include "kernels/int8/conv2d/core/multiply_avx2.h"
#include "kernels/int8/conv2d/winograd/loops.h"

namespace fuselage::int8::conv2d::winograd::FUSELAGE_AVX_VNNI {
namespace {

// Two products of int16.
struct FusedWordProduct {
  static constexpr bool kFetchesNext = true;
  static inline __m256i Add(__m256i sum, __m256i x, __m256i weights) {
    return _mm256_dpwssd_avx_epi32(sum, x, weights);
  }
};

}  // namespace

Loops GetLoops() {
  Loops loops = avx2::GetLoops();
  loops.multiply = MultiplyTiles<FusedWordProduct>;
  loops.word_product = 2;
  loops.input_transform = 500;
  loops.output_transform = 1200;
  loops.weight_transform = 190;
  return loops;
}

}  // namespace fuselage::int8::conv2d::winograd::FUSELAGE_AVX_VNNI
