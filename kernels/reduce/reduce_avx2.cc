#include "kernels/reduce/columns.h"

namespace fuselage::reduce {

void avx2::Run(const Params& params, const float* x, float* y, int64_t n) { Folds(params, x, y, n); }

}  // namespace fuselage::reduce
