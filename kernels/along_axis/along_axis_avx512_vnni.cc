#include "kernels/along_axis/loops.h"
#include "kernels/core/avx512.h"

namespace fuselage::along_axis {

const Row* FUSELAGE_AVX512_VNNI::RowOrNull(absl::string_view op) { return FindRowOrNull(op); }

}  // namespace fuselage::along_axis
