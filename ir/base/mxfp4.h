// The number formats of MXFP4 (OCP Microscaling Formats (MX) Specification v1.0: E2M1 elements, E8M0 scales).
#ifndef FUSELAGE_IR_BASE_MXFP4_H_
#define FUSELAGE_IR_BASE_MXFP4_H_

#include <cstdint>

#include "absl/types/span.h"

namespace fuselage::mxfp4 {

// E2M1: sign, two bits of exponent (bias 1), one of mantissa. 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
double FromE2M1(uint8_t code);
// Half to even, saturating at 6. Not of NaN.
uint8_t ToE2M1(double value);

// E8M0: 2^(code - 127); 0xFF is NaN.
constexpr uint8_t kE8M0One = 127, kE8M0NaN = 0xFF;
double FromE8M0(uint8_t code);
// The scale of a group: the largest power of two up to max|x|, over the largest that E2M1 has, 4.
uint8_t SharedScale(absl::Span<const float> group);

}  // namespace fuselage::mxfp4

#endif  // FUSELAGE_IR_BASE_MXFP4_H_
