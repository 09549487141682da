#include "kernels/int8/conv2d/emulated.h"

#include <vector>

#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/variants.h"

namespace fuselage::int8::conv2d {

absl::Span<const Variant> EmulatedAmxVariants() {
  static const auto* const variants = [] {
    auto* table = new std::vector<Variant>(Variants().begin(), Variants().end());
    table->push_back({/*name=*/"amx_emulated", /*isa=*/kernels::Isa::kScalar,
                      /*supports=*/TiledSupports, /*worthwhile=*/TiledWorthwhile,
                      /*make=*/[](const Problem& p) { return MakeTiled(p, TiledAmxEmulated()); },
                      /*wish=*/TiledWish,
                      /*reads_halo=*/TiledReadsHalo});
    return table;
  }();
  return *variants;
}

}  // namespace fuselage::int8::conv2d
