#include "kernels/core/activate.h"
#include "kernels/core/avx512.h"

namespace fuselage::kernels {

void FUSELAGE_AVX512_VNNI::Activate(const ElementwiseInstruction& function, float* values, int64_t size) {
  // A multiple that the compiler sees: no loop for what is left over.
  elementwise::Activate(function, values, values, size & -kActivatedTogether);
}

}  // namespace fuselage::kernels
