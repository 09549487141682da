// The variants of a kernel: dispatch, tests and benchmarks iterate the same constexpr table of them.
#ifndef FUSELAGE_KERNELS_CORE_VARIANT_H_
#define FUSELAGE_KERNELS_CORE_VARIANT_H_

#include "absl/types/span.h"
#include "ir/base/check.h"
#include "kernels/core/isa.h"

namespace fuselage::kernels {

// One row of the table. A kernel whose variants differ in more (packing, say) has its own struct with these and more.
template <typename Params, typename Function>
struct Variant {
  const char* name;  // "avx2", "avx2 gemv"; unique in its table.
  Isa isa;
  bool (*accepts)(const Params&);  // The constraint; null: runs everything.
  Function* run;
};

// The last of the highest instruction set among those that are not above `isa`, run on this machine and accept
// `params`. A table has a scalar variant that accepts everything.
template <typename Variant, typename Params>
const Variant& BestVariant(absl::Span<const Variant> table, Isa isa, const Params& params) {
  const Variant* best = nullptr;
  for (const Variant& variant : table) {
    if (variant.isa > isa || !CpuSupports(variant.isa)) continue;
    if (variant.accepts != nullptr && !variant.accepts(params)) continue;
    if (best == nullptr || best->isa <= variant.isa) best = &variant;
  }
  FUSELAGE_CHECK(best != nullptr);
  return *best;
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_VARIANT_H_
