// The arithmetic that every INT8 kernel shares, to the bit (docs/arithmetic.md). Scalar forms: a vector variant must
// return the same codes for every input.
//
//   acc = sum x*w                                     int32, exact
//   a   = acc + b32[c]                                b32 = rne(bias / (s_x*s_w[c])) - z_x * sum w
//   v   = float(a) * m[c]                             m = (s_x * s_w[c]) / s_y
//   v   = fma(float(r - z_r), m_r, v)                 only with a fused residual r;  m_r = s_r / s_y
//   q   = clamp(rne(v) + z_y, lo, hi)                 lo, hi: the codes of the activation's bounds
//   y   = fma(float(acc - z_x * sum w), s_x * s_w[c], bias[c])        where the output stays float
//
// An activation f that is no clamp is of the real value, before it is rounded:
//
//   v   = float(a) * (s_x * s_w[c])
//   v   = fma(float(r - z_r), s_r, v)
//   q   = clamp(rne(f(v) * u) + z_y, lo, hi)          u = 1 / s_y;  lo, hi: all codes
//   y   = f(y)                                        where the output stays float
//
// and behind it the result may be scaled and shifted, a value for each output channel:
//
//   q   = clamp(rne(fma(f(v), u[c], t[c])) + z_y)     u = post_scale[c] / s_y;  t = post_shift[c] / s_y
//   y   = fma(f(y), post_scale[c], post_shift[c])     where the output stays float
//
// rne rounds half to even. Nothing is contracted: fma only where it is written. Products and quotients of scales, and
// bias / (s_x*s_w[c]), are float32. A ReLU fused where the output stays float is y > 0 ? y : +0; another clamp has a
// quantized output.
#ifndef FUSELAGE_KERNELS_CORE_REQUANTIZE_H_
#define FUSELAGE_KERNELS_CORE_REQUANTIZE_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/activation.h"
#include "ir/base/tensor.h"
#include "kernels/core/weight_sums.h"

namespace fuselage::kernels {

struct KernelDesc;

// The clamp of an output in codes, zero point included: of an activation's bounds, or all codes.
struct CodeRange {
  int32_t lo = 0, hi = 255;
};
CodeRange CodeRangeOf(DType dtype, int32_t zero_point, float scale, const Activation& activation = {});

// i8 codes are u8 codes with the top bit flipped and the zero point moved by 128: q - z stays. So kernels that map
// single elements need only one form of arithmetic: flip what they load and store, with these parameters.
struct UnsignedForm {
  uint8_t flip = 0;        // 0x80 for i8.
  int32_t zero_point = 0;  // In [0, 255].
};
UnsignedForm UnsignedFormOf(const TensorType& codes);

// Round half to even, then the zero point, then the clamp. |v| may be anything, NaN aside: v is clamped as a float
// to +-2^30 before it becomes an integer, on every machine.
inline int32_t ToCode(float v, int32_t zero_point, CodeRange range) {
  v = v < -1073741824.0f ? -1073741824.0f : v;
  v = v > 1073741824.0f ? 1073741824.0f : v;
  const int32_t q = static_cast<int32_t>(std::nearbyint(v)) + zero_point;
  return q < range.lo ? range.lo : q > range.hi ? range.hi : q;
}

// q = clamp(rne(x / s) + z): true float division, as ONNX's QuantizeLinear. NaN becomes the zero point.
inline int32_t QuantizeValue(float x, float scale, int32_t zero_point, CodeRange range) {
  const float v = x / scale;
  return ToCode(std::isnan(v) ? 0.0f : v, zero_point, range);
}

// The constants of one convolution's or linear's epilogue, a value per output channel. Computed once, stored as bits.
struct Epilogue {
  Epilogue();
  Epilogue(const Epilogue&);
  Epilogue(Epilogue&&) noexcept;
  Epilogue& operator=(const Epilogue&);
  Epilogue& operator=(Epilogue&&) noexcept;
  ~Epilogue();

  // See weight_sums.h. Making a kernel takes them more than once, and a network's take longer than all else that is
  // computed for it.
  std::shared_ptr<const Tensor> weight_sums;
  // Of all weights' magnitudes: how AVX2 multiplies depends on them (multiply/pairs.h).
  int64_t largest_weight = 0;
  double mean_weight = 0;
  std::vector<int32_t> bias;      // b32, with the input's zero point folded in.
  std::vector<float> multiplier;  // m; bias and multiplier are empty where the output is float.
  float residual_multiplier = 0;  // m_r
  // An activation that is no clamp. Then `multiplier` is s_x * s_w[c] and residual_multiplier s_r.
  std::optional<ElementwiseInstruction> function;
  float function_multiplier = 1;    // u
  // Of each channel, where something is behind the function.
  struct Post {
    float multiplier, offset;  // u, t
  };
  std::vector<Post> post;
  int32_t residual_zero_point = 0;  // z_r
  int32_t zero_point = 0;           // z_y
  CodeRange range;

  // For float outputs; empty where the output is quantized.
  std::vector<int32_t> offset;     // -z_x * sum w
  std::vector<float> float_scale;  // s_x * s_w[c]
  std::vector<float> float_bias;
};

struct EpilogueParams {
  const TensorType* input = nullptr;  // Codes x.
  const Tensor* weight = nullptr;     // i8, [oc, ...], symmetric, per tensor or per axis 0.
  // Whose parameter "weight" that is: its sums are kept where what kernels pack is. Null: nobody's.
  const KernelDesc* desc = nullptr;
  // f32 [oc]; or i32 codes: without parameters, or with a scale equal to s_x*s_w[c], they are steps of s_x*s_w[c], with
  // another scale they mean their real values. Null: zeros.
  const Tensor* bias = nullptr;
  const TensorType* output = nullptr;    // Codes y, or f32.
  const TensorType* residual = nullptr;  // Codes r, or null.
  Activation activation;
  // f32 [oc], both or none, behind an activation that is no clamp.
  const Tensor *post_scale = nullptr, *post_shift = nullptr;
};

// Proves that no accumulator overflows, max|x| * sum|w| + |b32| < 2^31, that every multiplier is a normal float, and
// that what a function is of is finite.
// max|x| is 255 for u8 codes and 128 for i8. Where it cannot be proven the error (FailedPrecondition) names the
// channel, and the layer stays FP32. InvalidArgument: sums were kept, in a file say, that such a weight cannot have.
absl::StatusOr<Epilogue> MakeEpilogue(const EpilogueParams& params);

// f(v), in steps of a quantized output.
inline float Activated(float v, int channel, const Epilogue& e) {
  const float y = elementwise::Activated(*e.function, v);
  return e.post.empty() ? y * e.function_multiplier : std::fma(y, e.post[channel].multiplier, e.post[channel].offset);
}

// The code of a value that lacks only its activation.
inline int32_t ActivatedCode(float v, int channel, const Epilogue& e) {
  return ToCode(e.function ? Activated(v, channel, e) : v, e.zero_point, e.range);
}

// One output code from its accumulator; `residual` is ignored where there is none.
inline int32_t Requantize(int32_t acc, int channel, const Epilogue& e) {
  return ActivatedCode(static_cast<float>(acc + e.bias[channel]) * e.multiplier[channel], channel, e);
}
inline int32_t RequantizeWithResidual(int32_t acc, int channel, int32_t residual, const Epilogue& e) {
  const float v = static_cast<float>(acc + e.bias[channel]) * e.multiplier[channel];
  return ActivatedCode(std::fma(static_cast<float>(residual - e.residual_zero_point), e.residual_multiplier, v),
                       channel, e);
}
// A clamp is the caller's.
inline float DequantizeAccumulator(int32_t acc, int channel, const Epilogue& e) {
  const float y = std::fma(static_cast<float>(acc + e.offset[channel]), e.float_scale[channel], e.float_bias[channel]);
  return e.function ? Activated(y, channel, e) : y;
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_REQUANTIZE_H_
