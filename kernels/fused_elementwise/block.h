// One block through the steps: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_

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

}  // namespace fuselage::fused_elementwise

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_
