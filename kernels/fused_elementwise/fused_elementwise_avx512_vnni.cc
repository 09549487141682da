#include "kernels/core/avx512.h"
#include "kernels/fused_elementwise/block.h"

namespace fuselage::fused_elementwise {

void FUSELAGE_AVX512_VNNI::Run(const Params& params, const float* const* inputs, float* y, float* scratch, int64_t n) {
  RunBlock(params, inputs, y, scratch, n);
}

}  // namespace fuselage::fused_elementwise
