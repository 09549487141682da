#include "kernels/dynamic_quantize/range.h"

namespace fuselage::dynamic_quantize {

Range avx2::FindRange(const float* x, int64_t n) { return RangeOf(x, n); }

}  // namespace fuselage::dynamic_quantize
