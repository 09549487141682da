#include "kernels/int8/conv2d/testing/emulated.h"

#include <vector>

#include "kernels/int8/conv2d/rows.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::Isa;

// AVX-VNNI's sources keep AVX2's loops as they are.
constexpr Variant kEmulated[] = {
    Direct<direct::avx_vnni_emulated::GetLoops>("avx_vnni_emulated", Isa::kAvx2),
    Taps<direct::avx_vnni_emulated::GetLoops>("avx_vnni_emulated taps", Isa::kAvx2),
    Winograd<winograd::avx_vnni_emulated::GetLoops>("avx_vnni_emulated winograd", Isa::kAvx2),
    Few<direct::avx_vnni_emulated::GetFewLoops>("avx_vnni_emulated few", Isa::kAvx2),
    Depthwise<depthwise::avx_vnni_emulated::GetLoops, direct::avx2::GetLoops>("avx_vnni_emulated depthwise", Isa::kAvx2,
                                                                              depthwise::Supports),
    Depthwise<depthwise::avx_vnni_emulated::GetGroupLoops, direct::avx2::GetLoops>(
        "avx_vnni_emulated groups", Isa::kAvx2, depthwise::SupportsSmallGroups),
    Direct<direct::avx512_vnni_emulated::GetLoops>("avx512_vnni_emulated", Isa::kScalar),
    Taps<direct::avx512_vnni_emulated::GetLoops>("avx512_vnni_emulated taps", Isa::kScalar),
    Few<direct::avx512_vnni_emulated::GetFewLoops>("avx512_vnni_emulated few", Isa::kScalar),
    Winograd<winograd::avx512_vnni_emulated::GetLoops>("avx512_vnni_emulated winograd", Isa::kScalar),
    Depthwise<depthwise::avx512_vnni_emulated::GetLoops, direct::avx512_vnni_emulated::GetLoops>(
        "avx512_vnni_emulated depthwise", Isa::kScalar, depthwise::Supports),
    Depthwise<depthwise::avx512_vnni_emulated::GetGroupLoops, direct::avx512_vnni_emulated::GetLoops>(
        "avx512_vnni_emulated groups", Isa::kScalar, depthwise::SupportsSmallGroups),
    Tiled<tiled::amx_emulated::GetLoops>("amx_emulated", Isa::kScalar),
};

}  // namespace

absl::Span<const Variant> EmulatedVariants() { return kEmulated; }

absl::Span<const Variant> EmulatedAmxVariants() {
  static const auto* const variants = [] {
    auto* table = new std::vector<Variant>(Variants().begin(), Variants().end());
    table->push_back(EmulatedVariants().back());
    return table;
  }();
  return *variants;
}

}  // namespace fuselage::int8::conv2d
