// One block through the steps: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_

#include <string.h>

#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::fused_elementwise {

static inline void RunBlock(const Params& params, const float* const* inputs, float* y, float* scratch, int64_t n) {
  const float* values[kMostValues];
  for (int32_t i = 0; i < params.num_inputs; ++i) values[i] = inputs[i];
  for (int32_t i = 0; i < params.num_steps; ++i, scratch += kBlock) {
    const ElementwiseInstruction& step = params.steps[i];
    float* value = i + 1 == params.num_steps ? y : scratch;
    elementwise::Apply(step, values[step.a], values[step.b], value, n);
    values[params.num_inputs + i] = value;
  }
}

// scale(x, factors, y) takes kVector elements.
template <int kVector, typename ScaleVector>
static inline void ScaleBlock(const uint8_t* x, const float* factors, uint8_t* y, int64_t n, ScaleVector scale) {
  for (; n >= kVector; n -= kVector, x += kVector, factors += kVector, y += kVector) scale(x, factors, y);
  if (n == 0) return;
  uint8_t codes[kVector] = {};
  float values[kVector] = {};
  memcpy(codes, x, n);
  memcpy(values, factors, n * sizeof(float));
  scale(codes, values, codes);
  memcpy(y, codes, n);
}

}  // namespace fuselage::fused_elementwise

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_
