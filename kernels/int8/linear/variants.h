// The variants of int8.linear, the preferred one last. In a header so that a source may make a table of some of its
// rows (kernels/core/registry.h).
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_VARIANTS_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_VARIANTS_H_

#include "kernels/core/isa.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {

using kernels::GroupPairs;
using kernels::Isa;

// Fewer rows stream the weights, and AVX-512 VNNI's products are fast enough for that.
inline bool FillsTiles(const Params& params) { return params.rows >= 16; }
inline bool PairsFit(const Params& params) { return params.pairs == kernels::Pairs::kFit; }
inline bool PairsFillTiles(const Params& params) { return params.rows >= 4 && params.pairs != kernels::Pairs::kExceed; }

inline constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, {1, 1, 1, 2}, 64, scalar::Run},
    {"avx2", Isa::kAvx2, nullptr, {8, 2, 2, 2}, 96, avx2::Run},
    {"avx2 pairs, few rows", Isa::kAvx2, PairsFit, {8, 4, 4, 1}, 96, avx2::RunFewRows},
    {"avx2 pairs", Isa::kAvx2, PairsFillTiles, {16, 4, 4, 1, 0, GroupPairs}, kPairTaskRows, avx2::RunPairs},
    {"avx_vnni", Isa::kAvxVnni, nullptr, {8, 4, 4, 1}, 96, avx_vnni::Run},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, {16, 4, 4, 1}, 66, avx512_vnni::Run},
    {"amx", Isa::kAmx, FillsTiles, {16, 4, 64, 1, 16}, 256, amx::Run},
};

}  // namespace fuselage::int8::linear

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_VARIANTS_H_
