// Codes in registers, as CUDA kernels that move many of them hold them: four in a word, the first in its low byte.
#ifndef FUSELAGE_KERNELS_CUDA_CODES_H_
#define FUSELAGE_KERNELS_CUDA_CODES_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/block.h"

namespace fuselage::cuda {

using Codes16 = Vector<uint32_t, 4>;
using Floats4 = Vector<float, 4>;

// The same byte four times.
FUSELAGE_HOST_DEVICE uint32_t Splat(uint8_t code) { return code * 0x01010101u; }
FUSELAGE_HOST_DEVICE int32_t CodeOf(uint32_t word, int i) { return static_cast<int32_t>((word >> (8 * i)) & 0xff); }
FUSELAGE_HOST_DEVICE uint32_t CodeAt(int32_t code, int i) { return static_cast<uint32_t>(code & 0xff) << (8 * i); }

// Code i of a word, less a number of 0 to 255 that 2^23 is added to: as exact as a conversion, which takes as long as
// two additions. The upper bytes of both sums are the same.
constexpr float kTwoTo23 = 0x1p23f;
FUSELAGE_HOST_DEVICE float CodeLess(float number_and_two_to_23, uint32_t word, int i) {
  uint32_t bits;
  memcpy(&bits, &number_and_two_to_23, sizeof(bits));
  bits = PickBytes(word, bits, 0x7650u + i);
  float sum;
  memcpy(&sum, &bits, sizeof(sum));
  return Add(sum, -number_and_two_to_23);
}

// Byte i of each word, as word i.
FUSELAGE_HOST_DEVICE Codes16 Transposed(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const uint32_t ab[] = {PickBytes(a, b, 0x5140), PickBytes(a, b, 0x7362)};
  const uint32_t cd[] = {PickBytes(c, d, 0x5140), PickBytes(c, d, 0x7362)};
  return {{PickBytes(ab[0], cd[0], 0x5410), PickBytes(ab[0], cd[0], 0x7632), PickBytes(ab[1], cd[1], 0x5410),
           PickBytes(ab[1], cd[1], 0x7632)}};
}

FUSELAGE_HOST_DEVICE bool IsAligned(const void* p, int bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

// The first `count` codes at p, at most four; zeros behind them.
FUSELAGE_DEVICE uint32_t LoadWord(Thread thread, const uint8_t* p, int count) {
  if (count >= 4 && IsAligned(p, 4)) return thread.Load(reinterpret_cast<const uint32_t*>(p));
  uint32_t word = 0;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < count) word |= CodeAt(thread.Load(p + i), i);
  }
  return word;
}
FUSELAGE_DEVICE void StoreWord(Thread thread, uint8_t* p, uint32_t word, int count) {
  if (count >= 4 && IsAligned(p, 4)) {
    thread.Store(reinterpret_cast<uint32_t*>(p), word);
    return;
  }
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < count) thread.Store(p + i, static_cast<uint8_t>(CodeOf(word, i)));
  }
}

// The same for sixteen.
FUSELAGE_DEVICE Codes16 LoadCodes(Thread thread, const uint8_t* p, int count) {
  if (count >= 16 && IsAligned(p, 16)) return thread.Load(reinterpret_cast<const Codes16*>(p));
  Codes16 codes;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) codes.values[i] = LoadWord(thread, p + 4 * i, count - 4 * i);
  return codes;
}
// The same, by words wherever p is: of memory that may be loaded as far as `end` and begins at a multiple of 4.
FUSELAGE_DEVICE Codes16 LoadCodes(Thread thread, const uint8_t* p, int count, const uint8_t* end) {
  const auto past = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p) % 4);  // A word's begin.
  if (past == 0 || count < 16 || end - p < 20) return LoadCodes(thread, p, count);
  const auto* words = reinterpret_cast<const uint32_t*>(p - past);
  uint32_t word = thread.Load(words);
  Codes16 codes;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint32_t next = thread.Load(words + i + 1);
    codes.values[i] = PickBytes(word, next, 0x3210 + 0x1111 * past);
    word = next;
  }
  return codes;
}
FUSELAGE_DEVICE void StoreCodes(Thread thread, uint8_t* p, const Codes16& codes, int count) {
  if (count >= 16 && IsAligned(p, 16)) {
    thread.Store(reinterpret_cast<Codes16*>(p), codes);
    return;
  }
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) StoreWord(thread, p + 4 * i, codes.values[i], count - 4 * i);
}

// The same for four floats.
FUSELAGE_DEVICE Floats4 LoadFloats(Thread thread, const float* p, int count) {
  if (count >= 4 && IsAligned(p, 16)) return thread.Load(reinterpret_cast<const Floats4*>(p));
  Floats4 floats = {};
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < count) floats.values[i] = thread.Load(p + i);
  }
  return floats;
}
FUSELAGE_DEVICE void StoreFloats(Thread thread, float* p, const Floats4& floats, int count) {
  if (count >= 4 && IsAligned(p, 16)) {
    thread.Store(reinterpret_cast<Floats4*>(p), floats);
    return;
  }
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < count) thread.Store(p + i, floats.values[i]);
  }
}

// A result of floats, or of codes: u8 ones with `flip` applied.
struct Output {
  bool is_float = false;
  uint8_t flip = 0;
  CodeOutput codes;
  void* data = nullptr;
};

// Of four neighbours, from element `at` on, the first `count`.
FUSELAGE_DEVICE void StoreValues(Thread thread, const Output& output, int64_t at, const Floats4& values, int count) {
  if (output.is_float) return StoreFloats(thread, static_cast<float*>(output.data) + at, values, count);
  uint32_t codes = Splat(output.flip);
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) codes ^= CodeAt(ToCode(values.values[i], output.codes), i);
  StoreWord(thread, static_cast<uint8_t*>(output.data) + at, codes, count);
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_CODES_H_
