#include "kernels/core/avx512.h"
#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {

int32_t FUSELAGE_AVX512_VNNI::Weights(const ScoreRow& row, uint8_t* weights) { return WeightsLoop(row, weights); }

void FUSELAGE_AVX512_VNNI::Finish(const Output& output, const float* sums, float multiplier, int64_t n, void* y) {
  FinishLoop(output, sums, multiplier, n, y);
}

}  // namespace fuselage::int8::attention
