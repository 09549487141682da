// Where an operand's element for an element of the result lies, as numpy broadcasts: operand_of.h makes it.
#ifndef FUSELAGE_KERNELS_CUDA_OPERAND_H_
#define FUSELAGE_KERNELS_CUDA_OPERAND_H_

#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/codes.h"

namespace fuselage::cuda {

constexpr int kMostOperandAxes = 8;

struct Operand {
  bool whole = true;  // At the same place. Otherwise by the axes of the result, the innermost first:
  int axes = 0;
  struct Axis {
    uint32_t size;
    int64_t stride;
  } axis[kMostOperandAxes] = {};
  const uint8_t* x = nullptr;  // 16-byte aligned, as the result.
};

// In elements.
FUSELAGE_DEVICE int64_t OffsetOf(const Operand& operand, uint32_t element) {
  int64_t offset = 0;
  for (int i = 0; i < operand.axes; ++i) {
    offset += element % operand.axis[i].size * operand.axis[i].stride;
    element /= operand.axis[i].size;
  }
  return offset;
}

// The codes for the result's from `first` on, `count` of them.
FUSELAGE_DEVICE Codes16 LoadOperand(Thread thread, const Operand& operand, uint32_t first, int count) {
  if (operand.whole) return LoadCodes(thread, operand.x + first, count);
  const Operand::Axis& row = operand.axis[0];
  const uint8_t* x = operand.x + OffsetOf(operand, first);
  uint32_t rest = row.size - first % row.size;
  if (static_cast<uint32_t>(count) <= rest) {
    if (row.stride == 1) return LoadCodes(thread, x, count);
    if (row.stride == 0) {
      const uint32_t word = Splat(thread.Load(x));
      return {{word, word, word, word}};
    }
  }
  // Each code pushes those before it down by a byte. A loop, as its code would be long sixteen times.
  Codes16 codes = {};
  FUSELAGE_NO_UNROLL
  for (int i = 0; i < 16; ++i) {
    const uint32_t code = i < count ? thread.Load(x) : 0;
    FUSELAGE_UNROLL
    for (int word = 0; word < 4; ++word) {
      codes.values[word] = PickBytes(codes.values[word], word < 3 ? codes.values[word + 1] : code, 0x4321);
    }
    x += row.stride;
    if (--rest > 0) continue;
    x = operand.x + OffsetOf(operand, first + static_cast<uint32_t>(i) + 1);
    rest = row.size;
  }
  return codes;
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_OPERAND_H_
