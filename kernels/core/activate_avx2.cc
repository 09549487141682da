#include "kernels/core/activate.h"

namespace fuselage::kernels {

void avx2::Activate(const ElementwiseInstruction& function, float* values, int64_t size) {
  // A multiple that the compiler sees: no loop for what is left over.
  elementwise::Activate(function, values, values, size & -kActivatedTogether);
}

}  // namespace fuselage::kernels
