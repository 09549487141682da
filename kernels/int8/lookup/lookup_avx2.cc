#include "kernels/core/avx2.h"
#include "kernels/int8/lookup/lookup_blocks.h"

namespace fuselage::int8::lookup {
namespace {

// The codes of bytes in the 16 * kCount that begin at the table's kFirst-th 16: by their low four bits, which one of
// sixteen; then by the bit that says which half.
template <int kCount>
inline __m256i LookUp(const uint8_t* table, __m256i low, const __m256i (&bits)[4]) {
  if constexpr (kCount == 1) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(codes), low);
  } else {
    constexpr int kHalf = kCount / 2, kBit = kCount == 2 ? 0 : kCount == 4 ? 1 : kCount == 8 ? 2 : 3;
    return _mm256_blendv_epi8(LookUp<kHalf>(table, low, bits), LookUp<kHalf>(table + 16 * kHalf, low, bits),
                              bits[kBit]);
  }
}

}  // namespace

void avx2::Run(const Params& p, const uint8_t* tables, const uint8_t* x, uint8_t* y, int64_t begin, int64_t end) {
  LookUpBlocks<32>(p, tables, x, y, begin, end, [](const uint8_t* table, const uint8_t* from, uint8_t* to) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    // Bits 4 to 7, each where blendv looks: the highest of a byte.
    const __m256i bits[] = {_mm256_slli_epi16(bytes, 3), _mm256_slli_epi16(bytes, 2), _mm256_slli_epi16(bytes, 1),
                            bytes};
    const __m256i codes = LookUp<16>(table, _mm256_and_si256(bytes, _mm256_set1_epi8(15)), bits);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), codes);
  });
}

}  // namespace fuselage::int8::lookup
