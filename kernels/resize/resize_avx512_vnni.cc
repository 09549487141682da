#include "kernels/core/avx512.h"
#include "kernels/resize/combine.h"

namespace fuselage::resize {

void FUSELAGE_AVX512_VNNI::Run(const Row& row, const float* from, const int32_t* index, const float* weight,
                               float* to) {
  Combine(row, from, index, weight, to);
}

}  // namespace fuselage::resize
