// One block through the steps: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_

#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::fused_elementwise {

static inline void Dequantize(const Encoding& e, const uint8_t* x, float* __restrict y, int64_t n) {
  const uint8_t flip = e.flip;
  const int32_t zero_point = e.zero_point;
  const float scale = e.scale;
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<int32_t>(x[i] ^ flip) - zero_point) * scale;
}

// clamp(rne(v / s) + z), NaN to z. v is clamped to +-1024 first, which saturates all the same.
static inline void Quantize(const Encoding& e, const float* v, uint8_t* __restrict y, int64_t n) {
  const uint8_t flip = e.flip;
  const int32_t zero_point = e.zero_point;
  const float scale = e.scale;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, half to even.
  for (int64_t i = 0; i < n; ++i) {
    float q = v[i] / scale;
    q = q == q ? q : 0.0f;
    q = elementwise::Clamp(q, -1024.0f, 1024.0f);
    int32_t code = static_cast<int32_t>((q + kRound) - kRound) + zero_point;
    code = code < 0 ? 0 : code;
    code = code > 255 ? 255 : code;
    y[i] = static_cast<uint8_t>(code) ^ flip;
  }
}

static inline void RunBlock(const Params& params, const void* const* inputs, void* y, float* scratch, int64_t n) {
  const float* values[kMostValues];
  for (int32_t i = 0; i < params.num_inputs; ++i, scratch += kBlock) {
    values[i] = static_cast<const float*>(inputs[i]);
    if (!params.inputs[i].is_codes) continue;
    Dequantize(params.inputs[i], static_cast<const uint8_t*>(inputs[i]), scratch, n);
    values[i] = scratch;
  }
  for (int32_t i = 0; i < params.num_steps; ++i, scratch += kBlock) {
    const ElementwiseInstruction& step = params.steps[i];
    const bool is_result = i + 1 == params.num_steps && !params.output.is_codes;
    float* value = is_result ? static_cast<float*>(y) : scratch;
    elementwise::Apply(step, values[step.a], values[step.b], value, n);
    values[params.num_inputs + i] = value;
  }
  if (params.output.is_codes) {
    Quantize(params.output, values[params.num_inputs + params.num_steps - 1], static_cast<uint8_t*>(y), n);
  }
}

}  // namespace fuselage::fused_elementwise

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_BLOCK_H_
