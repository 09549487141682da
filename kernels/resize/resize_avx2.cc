#include "kernels/resize/combine.h"

namespace fuselage::resize {

void avx2::Run(const Row& row, const float* from, const int32_t* index, const float* weight, float* to) {
  Combine(row, from, index, weight, to);
}

}  // namespace fuselage::resize
