#include "kernels/fp32/fp32.h"

#include "kernels/fp32/families.h"

namespace fuselage::fp32 {

void Register(kernels::KernelRegistry& registry) {
  RegisterConv(registry);
  RegisterElementwise(registry);
  RegisterLinear(registry);
  RegisterNormalize(registry);
  RegisterPool(registry);
}

}  // namespace fuselage::fp32
