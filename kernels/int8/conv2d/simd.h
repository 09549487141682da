// The intrinsics of x86, or their portable forms where a test builds an AVX-512 source for machines without it.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_

#ifdef FUSELAGE_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>
#else
#include <immintrin.h>
#endif

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_SIMD_H_
