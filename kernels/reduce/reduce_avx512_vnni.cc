#include "kernels/core/avx512.h"
#include "kernels/reduce/columns.h"

namespace fuselage::reduce {

void FUSELAGE_AVX512_VNNI::Run(const Params& params, const float* x, float* y, int64_t n) { Folds(params, x, y, n); }

}  // namespace fuselage::reduce
