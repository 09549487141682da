#include "kernels/attention/loops.h"
#include "kernels/core/avx512.h"

namespace fuselage::attention {

float FUSELAGE_AVX512_VNNI::Weights(const ScoreRow& row) { return WeightsLoop(row); }

void FUSELAGE_AVX512_VNNI::Divide(const float* sums, float weight, int64_t n, float* y) {
  DivideLoop(sums, weight, n, y);
}

}  // namespace fuselage::attention
