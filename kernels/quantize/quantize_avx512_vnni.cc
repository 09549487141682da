#include "kernels/core/avx512.h"
#include "kernels/quantize/rows.h"

namespace fuselage::quantize {

void FUSELAGE_AVX512_VNNI::Run(const Form& form, const Row& row) { RunRow(form, row); }

}  // namespace fuselage::quantize
