// The weights of int8.attention (docs/arithmetic.md): rne(255 * e^distance) of scores' distances to the largest one of
// their row, which are never above 0, by an arithmetic that takes the same steps in every lane of every machine.
#ifndef FUSELAGE_IR_BASE_ATTENTION_WEIGHT_H_
#define FUSELAGE_IR_BASE_ATTENTION_WEIGHT_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"

namespace fuselage {

// 1.5 * 2^23: the sum with a float of at most 2^22 is its nearest integer, half to even, in the lowest bits.
constexpr float kRoundingSum = 12582912.0f;
constexpr int32_t kRoundingBits = 0x4B400000;

namespace {  // Local to the including source, which may be one for an instruction set.

// A weight's code, and kRoundingBits above it. 255 * 2^(n + f) for n = rne(t), t = distance * log2(e): 2^f by a
// polynomial that is 1 at 0, its relative error on [-1/2, 1/2] at most 2.9e-6, the least of degree 4 (Lawson's
// algorithm); 2^n by adding n to the exponent. Far below what rounds to 1, and for NaN, the code is 0.
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Bits AttentionWeight(typename Lanes::Floats distance) {
  const auto log2_e = Lanes::Set(1.44269504088896341f), round = Lanes::Set(kRoundingSum);
  const auto t = Lanes::Largest(Lanes::Multiply(distance, log2_e), Lanes::Set(-126.0f));
  const auto n = Lanes::Add(t, round), f = Lanes::Subtract(t, Lanes::Subtract(n, round));
  auto y = Lanes::Set(2.4436275959014893f);
  y = Lanes::MultiplyAdd(y, f, Lanes::Set(14.256138801574707f));
  y = Lanes::MultiplyAdd(y, f, Lanes::Set(61.261451721191406f));
  y = Lanes::MultiplyAdd(y, f, Lanes::Set(176.74667358398438f));
  y = Lanes::MultiplyAdd(y, f, Lanes::Set(255.0f));
  const auto power = Lanes::FloatsOf(Lanes::AddBits(Lanes::BitsOf(y), Lanes::ShiftLeft(Lanes::BitsOf(n), 23)));
  return Lanes::BitsOf(Lanes::Add(power, round));
}

}  // namespace
}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_ATTENTION_WEIGHT_H_
