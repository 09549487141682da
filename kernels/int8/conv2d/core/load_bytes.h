// How the variants that multiply bytes fetch their input. For sources that include the intrinsics before it; everything
// is local to them: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOAD_BYTES_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOAD_BYTES_H_

#include <stdint.h>

namespace fuselage::int8::conv2d {
namespace {

// direct::Loops::load of bytes.
void LoadBytes(const uint8_t* x, int64_t count, uint8_t flip, void* out) {
  uint8_t* to = static_cast<uint8_t*>(out);
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_xor_si256(codes, flips));
  }
  for (; i < count; ++i) to[i] = x[i] ^ flip;
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_LOAD_BYTES_H_
