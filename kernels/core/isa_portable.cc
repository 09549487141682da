// For CPUs whose instruction sets no kernel is written for yet.
#include "kernels/core/isa.h"

namespace fuselage::kernels {

Isa BestIsa() { return Isa::kScalar; }
std::string CpuName() { return "unknown"; }

}  // namespace fuselage::kernels
