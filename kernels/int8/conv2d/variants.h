// The variants of int8.conv2d, the preferred one last: dispatch, tests and benchmarks iterate this table. It is in a
// header so that a source may make one of some of its rows, and its program has no code of the others.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_VARIANTS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_VARIANTS_H_

#include "kernels/core/isa.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/reference.h"
#include "kernels/int8/conv2d/rows.h"

namespace fuselage::int8::conv2d {

using kernels::Isa;

inline constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, /*supports=*/nullptr, /*worthwhile=*/nullptr, MakeReference},
    Direct<direct::avx2::GetLoops>("avx2", Isa::kAvx2),
    Direct<direct::avx2::GetPairLoops>("avx2 pairs", Isa::kAvx2, direct::WorthwhilePairs),
    Taps<direct::avx2::GetLoops>("avx2 taps", Isa::kAvx2),
    Winograd<winograd::avx2::GetLoops>("avx2 winograd", Isa::kAvx2),
    Direct<direct::avx_vnni::GetLoops>("avx_vnni", Isa::kAvxVnni),
    Taps<direct::avx_vnni::GetLoops>("avx_vnni taps", Isa::kAvxVnni),
    Winograd<winograd::avx_vnni::GetLoops>("avx_vnni winograd", Isa::kAvxVnni),
    Few<direct::avx2::GetFewLoops>("avx2 few", Isa::kAvx2),
    Few<direct::avx_vnni::GetFewLoops>("avx_vnni few", Isa::kAvxVnni),
    Depthwise<depthwise::avx2::GetLoops, direct::avx2::GetLoops>("avx2 depthwise", Isa::kAvx2, depthwise::Supports),
    Depthwise<depthwise::avx2::GetGroupLoops, direct::avx2::GetLoops>("avx2 groups", Isa::kAvx2,
                                                                      depthwise::SupportsSmallGroups),
    Depthwise<depthwise::avx2::GetGroupPairLoops, direct::avx2::GetLoops>("avx2 group pairs", Isa::kAvx2,
                                                                          depthwise::SupportsSmallGroupPairs),
    Depthwise<depthwise::avx_vnni::GetLoops, direct::avx2::GetLoops>("avx_vnni depthwise", Isa::kAvxVnni,
                                                                     depthwise::Supports),
    Depthwise<depthwise::avx_vnni::GetGroupLoops, direct::avx2::GetLoops>("avx_vnni groups", Isa::kAvxVnni,
                                                                          depthwise::SupportsSmallGroups),
    Direct<direct::avx512_vnni::GetLoops>("avx512_vnni", Isa::kAvx512Vnni),
    Taps<direct::avx512_vnni::GetLoops>("avx512_vnni taps", Isa::kAvx512Vnni),
    Winograd<winograd::avx512_vnni::GetLoops>("avx512_vnni winograd", Isa::kAvx512Vnni),
    Depthwise<depthwise::avx512_vnni::GetLoops, direct::avx512_vnni::GetLoops>("avx512_vnni depthwise",
                                                                               Isa::kAvx512Vnni, depthwise::Supports),
    Depthwise<depthwise::avx512_vnni::GetGroupLoops, direct::avx512_vnni::GetLoops>(
        "avx512_vnni groups", Isa::kAvx512Vnni, depthwise::SupportsSmallGroups),
    Few<direct::avx512_vnni::GetFewLoops>("avx512_vnni few", Isa::kAvx512Vnni),
    Tiled<tiled::amx::GetLoops>("amx", Isa::kAmx),
};

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_VARIANTS_H_
