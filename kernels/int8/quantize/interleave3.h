// Pixels of three channels, and their planes, by shuffles of 16 bytes. Each source compiles its own copy (internal
// linkage). Include the intrinsics first.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_INTERLEAVE3_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_INTERLEAVE3_H_

#include <stdint.h>

namespace fuselage::int8::quantize {
namespace {

inline __m128i Load16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// From planes to 16 pixels of three channels: byte k of the result is channel k % 3 of pixel k / 3; -1 clears.
inline void Interleave3(const uint8_t* plane0, const uint8_t* plane1, const uint8_t* plane2, uint8_t* y) {
  const __m128i a = Load16(plane0), b = Load16(plane1), c = Load16(plane2);
  const __m128i a0 = _mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5);
  const __m128i b0 = _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1);
  const __m128i c0 = _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1);
  const __m128i a1 = _mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1);
  const __m128i b1 = _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10);
  const __m128i c1 = _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1);
  const __m128i a2 = _mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1);
  const __m128i b2 = _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1);
  const __m128i c2 = _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15);
  __m128i* out = reinterpret_cast<__m128i*>(y);
  _mm_storeu_si128(
      out, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, a0), _mm_shuffle_epi8(b, b0)), _mm_shuffle_epi8(c, c0)));
  _mm_storeu_si128(
      out + 1, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, a1), _mm_shuffle_epi8(b, b1)), _mm_shuffle_epi8(c, c1)));
  _mm_storeu_si128(
      out + 2, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, a2), _mm_shuffle_epi8(b, b2)), _mm_shuffle_epi8(c, c2)));
}

// Of 16 pixels' 48 bytes the third kThird, as a shuffle: those of the plane kPlane; -1 clears.
template <int kPlane, int kThird>
struct OfPlane {
  int8_t bytes[16] = {};
  constexpr OfPlane() {
    for (int pixel = 0; pixel < 16; ++pixel) {
      const int byte = 3 * pixel + kPlane - 16 * kThird;
      bytes[pixel] = static_cast<int8_t>(byte >= 0 && byte < 16 ? byte : -1);
    }
  }
};
template <int kPlane, int kThird>
inline __m128i PickPlane(const uint8_t* x) {
  static constexpr OfPlane<kPlane, kThird> kPlaces;
  return _mm_shuffle_epi8(Load16(x + 16 * kThird), _mm_loadu_si128(reinterpret_cast<const __m128i*>(kPlaces.bytes)));
}

// One plane of 16 pixels.
template <int kPlane>
inline void Deinterleave3(const uint8_t* x, uint8_t* plane) {
  const __m128i bytes =
      _mm_or_si128(_mm_or_si128(PickPlane<kPlane, 0>(x), PickPlane<kPlane, 1>(x)), PickPlane<kPlane, 2>(x));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(plane), bytes);
}

}  // namespace
}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_INTERLEAVE3_H_
