#include "kernels/core/avx512.h"
#include "kernels/softmax/columns.h"

namespace fuselage::softmax {

void FUSELAGE_AVX512_VNNI::Run(const Params& params, const float* x, float* y) { RunColumns(params, x, y); }

}  // namespace fuselage::softmax
