// The instruction sets that kernels are written for (isas.bzl), and which of them this machine runs.
#ifndef FUSELAGE_KERNELS_CORE_ISA_H_
#define FUSELAGE_KERNELS_CORE_ISA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/core/isas.h"

namespace fuselage::kernels {

// A set of CPU features. A variant of a kernel says which it needs; it may run where a set that includes them is
// allowed. Sets are no order: a CPU may have AVX-VNNI without AVX-512, or AVX-512 without AVX-VNNI.
class Isa {
 public:
  static const Isa kScalar;  // No feature.
#define FUSELAGE_ISA(Name, ...) static const Isa k##Name;
  FUSELAGE_ISAS(FUSELAGE_ISA)
#undef FUSELAGE_ISA

  constexpr bool Includes(Isa other) const { return (features_ & other.features_) == other.features_; }
  friend constexpr Isa operator|(Isa a, Isa b) { return Isa(a.features_ | b.features_); }
  friend constexpr bool operator==(Isa a, Isa b) { return a.features_ == b.features_; }
  friend constexpr bool operator!=(Isa a, Isa b) { return a.features_ != b.features_; }
  // Some order, for the keys of maps.
  friend constexpr bool operator<(Isa a, Isa b) { return a.features_ < b.features_; }

 private:
  explicit constexpr Isa(uint32_t features) : features_(features) {}
  uint32_t features_;
};

inline constexpr Isa Isa::kScalar{0};
#define FUSELAGE_ISA(Name, name, bit, includes, ...) \
  inline constexpr Isa Isa::k##Name{1u << (bit) | (includes).features_};
FUSELAGE_ISAS(FUSELAGE_ISA)
#undef FUSELAGE_ISA

// "scalar", a name of isas.bzl, or several that do not include each other: "avx_vnni+avx512_vnni".
std::string IsaName(Isa isa);
absl::StatusOr<Isa> IsaFromName(absl::string_view name);

// Each that has a name of its own.
absl::Span<const Isa> AllIsas();
// Those of them that this machine runs, for tests.
std::vector<Isa> SupportedIsas();

// All that this machine runs. x86: by CPUID and XCR0 (Intel SDM vol. 1, ch. 13 and 14); AMX also by asking the
// operating system for the tile state.
Isa BestIsa();
inline bool CpuSupports(Isa isa) { return BestIsa().Includes(isa); }

// "AMD EPYC 7763 64-Core Processor", or "unknown".
std::string CpuName();

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ISA_H_
