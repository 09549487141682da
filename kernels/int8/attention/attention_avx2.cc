#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {

int32_t avx2::Weights(const ScoreRow& row, uint8_t* weights) { return WeightsLoop(row, weights); }

void avx2::Finish(const Output& output, const float* sums, float multiplier, int64_t n, void* y) {
  FinishLoop(output, sums, multiplier, n, y);
}

}  // namespace fuselage::int8::attention
