// What the tests of int8.conv2d's variants share.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TESTING_COMPARE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TESTING_COMPARE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/testing/testing.h"

namespace fuselage::int8::conv2d {

const Variant& Scalar();
const Variant& EmulatedAmx();

// The output's codes (the bytes of its floats), dense. Fails the test where the kernel writes outside its output and
// scratch memory; reading beyond an operand faults.
std::vector<uint8_t> RunVariant(const Variant& variant, const Instance& instance);

// Every variant that supports the case equals the scalar one, in its placements and with their halos. Counts the cases
// of each variant in `ran`.
void ExpectVariantsEqual(const Case& c, uint64_t seed, std::map<std::string, int>* ran);

// Every variant that this machine runs has had at least `count` cases, the specialized ones a tenth of that.
void ExpectRan(const std::map<std::string, int>& ran, int count);

// A pseudo-random case: all the dimensions of the problem vary together.
Case RandomCase(uint64_t seed);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TESTING_COMPARE_H_
