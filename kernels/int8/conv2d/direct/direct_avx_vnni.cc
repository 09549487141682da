// AVX-VNNI: AVX-512 VNNI's dot product on registers of AVX2's size, for CPUs without AVX-512. vpdpbusd adds four
// products u8 * i8 to each of 8 int32 lanes, exactly, in the place of vpmaddwd and vpaddd on two; all else is AVX2's.
#include "kernels/core/avx_vnni.h"
#include "kernels/int8/conv2d/core/load_bytes.h"
#include "kernels/int8/conv2d/core/multiply_avx2.h"
#include "kernels/int8/conv2d/direct/few_avx2.h"

namespace fuselage::int8::conv2d::direct::FUSELAGE_AVX_VNNI {
namespace {

struct ByteProduct {
  static constexpr bool kFetchesNext = true;
  static inline __m256i Add(__m256i sum, __m256i x, __m256i weights) {
    return _mm256_dpbusd_avx_epi32(sum, x, weights);
  }
};

}  // namespace

Loops GetLoops() {
  Loops loops = avx2::GetLoops();
  loops.scattered_tiles = 0.95;
  loops.element_bytes = 1;
  loops.load = LoadBytes;
  loops.multiply = MultiplyTiles<ByteProduct>;
  return loops;
}

Loops GetFewLoops() {
  Loops loops = avx2::GetFewLoops();
  loops.element_bytes = 1;
  loops.load = LoadBytes;
  loops.multiply_few = MultiplyFew<FewLanes<ByteProduct>>;
  return loops;
}

}  // namespace fuselage::int8::conv2d::direct::FUSELAGE_AVX_VNNI
