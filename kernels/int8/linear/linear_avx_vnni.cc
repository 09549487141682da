#include "kernels/core/avx_vnni.h"
#include "kernels/int8/linear/linear_tile_avx2.h"

namespace fuselage::int8::linear {
namespace {

// Four products u8 * i8 a lane, exactly.
struct ByteProduct {
  using Input = uint8_t;
  static constexpr int64_t kGroup = 4;
  static inline __m256i Weights(const int8_t* w) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)); }
  static inline __m256i Add(__m256i sum, __m256i x, __m256i w) { return _mm256_dpbusd_avx_epi32(sum, x, w); }
};

}  // namespace

void FUSELAGE_AVX_VNNI::Run(const Params& p, const void* x, void* y, const Range& range) {
  RunTiles<ByteProduct>(p, x, y, range);
}

}  // namespace fuselage::int8::linear
