#include "kernels/cast/elements.h"
#include "kernels/core/avx512.h"

namespace fuselage::cast {

void FUSELAGE_AVX512_VNNI::Run(const Params& params, const void* x, void* y, int64_t n) { CastAll(params, x, y, n); }

}  // namespace fuselage::cast
