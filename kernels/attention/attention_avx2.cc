#include "kernels/attention/loops.h"

namespace fuselage::attention {

float avx2::Weights(const ScoreRow& row) { return WeightsLoop(row); }

void avx2::Divide(const float* sums, float weight, int64_t n, float* y) { DivideLoop(sums, weight, n, y); }

}  // namespace fuselage::attention
