// The instruction sets that kernels come in, and which of them this machine runs.
#ifndef FUSELAGE_KERNELS_CORE_ISA_H_
#define FUSELAGE_KERNELS_CORE_ISA_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage::kernels {

// From the slowest to the fastest: a kernel takes the best variant that is not above the one asked for.
enum class Isa { kScalar, kAvx2, kAvx512Vnni, kAmx };

absl::string_view IsaName(Isa isa);  // "scalar", "avx2", "avx512_vnni", "amx"
absl::StatusOr<Isa> IsaFromName(absl::string_view name);

// By CPUID and XCR0 (Intel SDM vol. 1, ch. 13 and 14); AMX also by asking the kernel for the tile state.
bool CpuSupports(Isa isa);
Isa BestIsa();

// "AMD EPYC 7763 64-Core Processor", or "unknown".
std::string CpuName();

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ISA_H_
