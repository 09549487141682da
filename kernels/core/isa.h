// The instruction sets that kernels are written for, and which of them this machine runs.
#ifndef FUSELAGE_KERNELS_CORE_ISA_H_
#define FUSELAGE_KERNELS_CORE_ISA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fuselage::kernels {

// A set of CPU features. A variant of a kernel says which it needs; it may run where a set that includes them is
// allowed. Sets are no order: a CPU may have AVX-VNNI without AVX-512, or AVX-512 without AVX-VNNI.
class Isa {
 public:
  // No feature. AVX2 with FMA. vpdpbusd on YMM registers, in its VEX encoding. AVX-512 F, BW, VL, DQ, VNNI. AMX's tiles
  // of int8. Each includes what its sources use besides.
  static const Isa kScalar, kAvx2, kAvxVnni, kAvx512Vnni, kAmx;

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
inline constexpr Isa Isa::kAvx2{1};
inline constexpr Isa Isa::kAvxVnni{2 | kAvx2.features_};
inline constexpr Isa Isa::kAvx512Vnni{4 | kAvx2.features_};
inline constexpr Isa Isa::kAmx{8 | kAvx512Vnni.features_};

// "scalar", "avx2", "avx_vnni", "avx512_vnni", "amx", or several that do not include each other:
// "avx_vnni+avx512_vnni".
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
