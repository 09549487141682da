#include "kernels/core/avx512.h"
#include "kernels/dynamic_quantize/range.h"

namespace fuselage::dynamic_quantize {

Range FUSELAGE_AVX512_VNNI::FindRange(const float* x, int64_t n) { return RangeOf(x, n); }

}  // namespace fuselage::dynamic_quantize
