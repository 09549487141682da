// For tests of machines without AMX: its sources on emulated tiles.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_EMULATED_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_EMULATED_H_

#include "absl/types/span.h"
#include "kernels/int8/conv2d/variant.h"

namespace fuselage::int8::conv2d {

// For EntryOf: the table of Variants() with AMX, which every machine runs so, before all.
absl::Span<const Variant> EmulatedAmxVariants();

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_EMULATED_H_
