#include "kernels/norm/rows.h"

namespace fuselage::norm {

void avx2::Normalize(const Row& row) { NormalizeRow(row); }

}  // namespace fuselage::norm
