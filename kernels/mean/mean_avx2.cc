#include "kernels/mean/columns.h"

namespace fuselage::mean {

void avx2::Run(const Params& params, const float* x, float* y, int64_t n) { Means(params, x, y, n); }

}  // namespace fuselage::mean
