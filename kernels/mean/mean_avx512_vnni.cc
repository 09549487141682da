#include "kernels/core/avx512.h"
#include "kernels/mean/columns.h"

namespace fuselage::mean {

void FUSELAGE_AVX512_VNNI::Run(const Params& params, const float* x, float* y, int64_t n) { Means(params, x, y, n); }

}  // namespace fuselage::mean
