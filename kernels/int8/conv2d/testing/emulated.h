// For tests of machines without an instruction set: its sources, emulated.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_TESTING_EMULATED_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_TESTING_EMULATED_H_

#include "absl/types/span.h"
#include "kernels/int8/conv2d/conv2d.h"

namespace fuselage::int8::conv2d {

// One variant for each of Variants() whose sources compile a second time.
absl::Span<const Variant> EmulatedVariants();

// For EntryOf: the table of Variants() with AMX, which every machine runs so, before all.
absl::Span<const Variant> EmulatedAmxVariants();

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_TESTING_EMULATED_H_
