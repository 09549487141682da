#include "kernels/core/avx512.h"
#include "kernels/int8/lookup/lookup_blocks.h"

namespace fuselage::int8::lookup {
namespace {

// The codes of bytes in kCount times 16 of the table: by their low four bits one of sixteen, and by each further bit
// one of two halves.
template <int kCount>
inline __m512i LookUp(const uint8_t* table, __m512i low, const __mmask64 (&bits)[4]) {
  if constexpr (kCount == 1) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(codes), low);
  } else {
    constexpr int kHalf = kCount / 2, kBit = kCount == 2 ? 0 : kCount == 4 ? 1 : kCount == 8 ? 2 : 3;
    return _mm512_mask_blend_epi8(bits[kBit], LookUp<kHalf>(table, low, bits),
                                  LookUp<kHalf>(table + 16 * kHalf, low, bits));
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* tables, const uint8_t* x, uint8_t* y, int64_t begin,
                               int64_t end) {
  LookUpBlocks<64>(p, tables, x, y, begin, end, [](const uint8_t* table, const uint8_t* from, uint8_t* to) {
    const __m512i bytes = _mm512_loadu_si512(from);
    const auto bit = [&](int n) { return _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(static_cast<char>(1 << n))); };
    const __mmask64 bits[] = {bit(4), bit(5), bit(6), bit(7)};
    _mm512_storeu_si512(to, LookUp<16>(table, _mm512_and_si512(bytes, _mm512_set1_epi8(15)), bits));
  });
}

}  // namespace fuselage::int8::lookup
