// What an instruction set's multiplications reach on this machine at most: what benchmarks are compared with.
#ifndef FUSELAGE_KERNELS_CORE_TESTING_PEAK_H_
#define FUSELAGE_KERNELS_CORE_TESTING_PEAK_H_

#include <cstdint>

#include "kernels/core/variant.h"

namespace fuselage::kernels {

// Exact u8 x i8 multiply-accumulates per second on one thread, measured once, in about 20 ms: vpmaddwd and vpaddd
// (AVX2) or vpdpbusd (AVX-VNNI, AVX-512 VNNI) on registers; TDPBUSD on 2 x 2 tiles of sums, its factors in the
// first-level cache (AMX). The most that `isa` includes; 0 for scalar code, and where the CPU lacks the instruction
// set.
double PeakMacsPerSecond(Isa isa);

// `repetitions` of the loop; the multiply-accumulates of them all.
using PeakLoop = int64_t(int64_t repetitions);
FUSELAGE_VARIANTS(PeakLoop, MultiplyAtPeak)

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TESTING_PEAK_H_
