#include "kernels/quantize/rows.h"

namespace fuselage::quantize {

void avx2::Run(const Form& form, const Row& row) { RunRow(form, row); }

}  // namespace fuselage::quantize
