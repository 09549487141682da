#include "kernels/along_axis/loops.h"

namespace fuselage::along_axis {

const Row* avx2::RowOrNull(absl::string_view op) { return FindRowOrNull(op); }

}  // namespace fuselage::along_axis
