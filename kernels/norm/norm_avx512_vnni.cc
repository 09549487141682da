#include "kernels/core/avx512.h"
#include "kernels/norm/rows.h"

namespace fuselage::norm {

void FUSELAGE_AVX512_VNNI::Normalize(const Row& row) { NormalizeRow(row); }

}  // namespace fuselage::norm
