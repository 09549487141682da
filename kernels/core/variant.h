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

// Before the declaration of what an isa_library defines. A program may be linked without it (fuselage_model's isas), and
// other architectures than x86 have none: its address is null there. The rows that name it stay in their tables, and
// whoever leaves it out sees to it that no kernel is asked for that set.
#ifdef FUSELAGE_ISA_SOURCE
#define FUSELAGE_OPTIONAL
#else
#define FUSELAGE_OPTIONAL __attribute__((weak))
#endif

// Before that of what is emulated on x86 alone.
#ifdef __x86_64__
#define FUSELAGE_X86
#else
#define FUSELAGE_X86 __attribute__((weak))
#endif

// Declares a kernel's function in a namespace for each set, avx2::Run. A kernel defines those that its table names; its
// test also those that run without the set (with AVX2 alone: avx_vnni_emulated).
#define FUSELAGE_VARIANTS(Function, name) \
  namespace scalar {                      \
  Function name;                          \
  }                                       \
  FUSELAGE_ISAS(FUSELAGE_VARIANT, Function, name)
#define FUSELAGE_VARIANT(Isa, isa, bit, includes, emulated_linkage, Function, name) \
  namespace isa {                                                                    \
  FUSELAGE_OPTIONAL Function name;                                                   \
  }                                                                                  \
  namespace isa##_emulated {                                                         \
  emulated_linkage Function name;                                                    \
  }

// The last row of `table`, which goes from the slowest to the fastest, whose features are among `isa` and this
// machine's and which accepts(row). Null: none.
template <typename Row, typename Accepts>
const Row* LastVariantOrNull(absl::Span<const Row> table, Isa isa, Accepts accepts) {
  for (auto row = table.rbegin(); row != table.rend(); ++row) {
    if (isa.Includes(row->isa) && CpuSupports(row->isa) && accepts(*row)) return &*row;
  }
  return nullptr;
}

// A table has a scalar row that accepts everything.
template <typename Row, typename Params>
const Row& BestVariant(absl::Span<const Row> table, Isa isa, const Params& params) {
  const Row* best =
      LastVariantOrNull(table, isa, [&](const Row& row) { return row.accepts == nullptr || row.accepts(params); });
  FUSELAGE_CHECK(best != nullptr);
  return *best;
}

// For rows without a constraint.
template <typename Row>
const Row& BestVariant(absl::Span<const Row> table, Isa isa) {
  const Row* best = LastVariantOrNull(table, isa, [](const Row&) { return true; });
  FUSELAGE_CHECK(best != nullptr);
  return *best;
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_VARIANT_H_
