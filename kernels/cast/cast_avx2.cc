#include "kernels/cast/elements.h"

namespace fuselage::cast {

void avx2::Run(const Params& params, const void* x, void* y, int64_t n) { CastAll(params, x, y, n); }

}  // namespace fuselage::cast
