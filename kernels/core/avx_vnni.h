// AVX-VNNI's two dot products, native or emulated as avx512.h has it. Only for sources that compile for the set.
#ifndef FUSELAGE_KERNELS_CORE_AVX_VNNI_H_
#define FUSELAGE_KERNELS_CORE_AVX_VNNI_H_

#ifndef FUSELAGE_EMULATE_AVX512

#include <immintrin.h>
#define FUSELAGE_AVX_VNNI avx_vnni

#else

#include <simde/x86/avx512.h>
#define FUSELAGE_AVX_VNNI avx_vnni_emulated
#define _mm256_dpbusd_avx_epi32(sum, x, w) simde_mm256_dpbusd_epi32(sum, x, w)
#define _mm256_dpwssd_avx_epi32(sum, x, w) simde_mm256_dpwssd_epi32(sum, x, w)

#endif

#include "kernels/core/avx2.h"

#endif  // FUSELAGE_KERNELS_CORE_AVX_VNNI_H_
