// The float32 arithmetic of elementwise operators, to the bit: each operation written here rounds once, std::fma is one
// operation, nothing else is contracted. Functions are `static inline` (FUSELAGE_ELEMENTWISE), without branches on
// values: a source for one instruction set includes this header, and the compiler turns loops over them into vector
// code with the same bits.
#ifndef FUSELAGE_IR_BASE_ELEMENTWISE_MATH_H_
#define FUSELAGE_IR_BASE_ELEMENTWISE_MATH_H_

#include <cstdint>
#include <cstring>

#include "ir/base/wide_math.h"

namespace fuselage {

enum class ElementwiseOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kRelu,
  kClamp,
  kLeakyRelu,
  kHardsigmoid,
  kHardswish,
  kSigmoid,
  kSilu,
  kTanh,
  kGelu,
  kGeluTanh,
  kMaximum,
  kMinimum,
  kPow,
  kFmod,
  kRemainder,
  kPrelu,
  kAbs,
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCeil,
  kCelu,
  kCos,
  kCosh,
  kElu,
  kErf,
  kExp,
  kFloor,
  kLog,
  kMish,
  kNeg,
  kReciprocal,
  kRound,
  kSelu,
  kSign,
  kSin,
  kSinh,
  kSoftplus,
  kSoftsign,
  kSqrt,
  kTan,
  kThreshold,
  // Of values that become codes (ForCodes).
  kCodeSilu,
  kCodeGelu,
  kCodeGeluTanh,
  kCodeMish,
};

struct ElementwiseInstruction {
  ElementwiseOp op;
  int32_t a = 0, b = 0;  // Values; b of binary ops only.
  // add: alpha, and 1 for a relu behind it. clamp: min, max. leaky_relu: slope. hardsigmoid: alpha, beta. elu, celu:
  // alpha. selu: alpha, gamma. threshold: threshold, value.
  float p = 0, q = 0;

  bool operator==(const ElementwiseInstruction& other) const {
    return op == other.op && a == other.a && b == other.b && p == other.p && q == other.q;
  }
};

namespace {  // Local to the including source, which may be one for an instruction set.

// What a function of several lanes is written in: one float at a time. Such a source has the same operations on its
// vectors, each rounding once.
struct OneLane {
  using Floats = float;
  using Bits = int32_t;
  FUSELAGE_ELEMENTWISE float Set(float x) { return x; }
  FUSELAGE_ELEMENTWISE float Add(float a, float b) { return a + b; }
  FUSELAGE_ELEMENTWISE float Subtract(float a, float b) { return a - b; }
  FUSELAGE_ELEMENTWISE float Multiply(float a, float b) { return a * b; }
  FUSELAGE_ELEMENTWISE float MultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  FUSELAGE_ELEMENTWISE float MultiplySubtractFrom(float a, float b, float c) { return __builtin_fmaf(-a, b, c); }
  FUSELAGE_ELEMENTWISE float Largest(float a, float b) { return a > b ? a : b; }   // b where either is NaN.
  FUSELAGE_ELEMENTWISE float Smallest(float a, float b) { return a < b ? a : b; }  // Likewise.
  FUSELAGE_ELEMENTWISE float Magnitude(float x) { return __builtin_fabsf(x); }
  FUSELAGE_ELEMENTWISE int32_t BitsOf(float x) {
    int32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits;
  }
  FUSELAGE_ELEMENTWISE float FloatsOf(int32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  }
  // Modulo 2^32.
  FUSELAGE_ELEMENTWISE int32_t AddBits(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
  FUSELAGE_ELEMENTWISE int32_t ShiftLeft(int32_t bits, int count) {
    return static_cast<int32_t>(static_cast<uint32_t>(bits) << count);
  }
};

}  // namespace

namespace elementwise {

FUSELAGE_ELEMENTWISE float Relu(float x) { return x < 0 ? 0.0f : x; }  // NaN stays NaN.
FUSELAGE_ELEMENTWISE float Clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
FUSELAGE_ELEMENTWISE float Magnitude(float x) { return __builtin_fabsf(x); }

// e^x, for x <= 0 to within 2 units in the last place (Cephes' expf: Cody and Waite's reduction, a polynomial of degree
// 5); below -87 it stays at e^-87, the smallest power that scales by a normal float.
FUSELAGE_ELEMENTWISE float ExpOfNegative(float x) {
  x = x < -87.0f ? -87.0f : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, half to even.
  const float n = (x * 1.44269504088896341f + kRound) - kRound;
  float r = __builtin_fmaf(n, -0.693359375f, x);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  const float y = __builtin_fmaf(p, r * r, r) + 1.0f;
  const int32_t exponent = (static_cast<int32_t>(n < 0 ? n : 0.0f) + 127) << 23;  // NaN: any, for y is NaN.
  float power;
  std::memcpy(&power, &exponent, sizeof(power));
  return y * power;
}

FUSELAGE_ELEMENTWISE float Sigmoid(float x) {
  const float e = ExpOfNegative(-Magnitude(x));
  const float numerator = x < 0 ? e : 1.0f;
  return numerator / (1.0f + e);
}
FUSELAGE_ELEMENTWISE float Silu(float x) { return x * Sigmoid(x); }

// Near 0 Cephes' tanhf polynomial, else (1 - e^-2|x|) / (1 + e^-2|x|).
FUSELAGE_ELEMENTWISE float Tanh(float x) {
  const float e = ExpOfNegative(-2.0f * Magnitude(x));
  const float far = (1.0f - e) / (1.0f + e);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = __builtin_fmaf(p, z, 2.06390887954e-2f);
  p = __builtin_fmaf(p, z, -5.37397155531e-2f);
  p = __builtin_fmaf(p, z, 1.33314422036e-1f);
  p = __builtin_fmaf(p, z, -3.33332819422e-1f);
  const float near = __builtin_fmaf(p * z, x, x);
  const float signed_far = x < 0 ? -far : far;
  return Magnitude(x) < 0.625f ? near : signed_far;
}

// erf(|x|), within 1.5e-7 (Abramowitz and Stegun, 7.1.26).
FUSELAGE_ELEMENTWISE float ErfOfMagnitude(float x) {
  x = Magnitude(x);
  const float t = 1.0f / __builtin_fmaf(0.3275911f, x, 1.0f);
  float p = 1.061405429f;
  p = __builtin_fmaf(p, t, -1.453152027f);
  p = __builtin_fmaf(p, t, 1.421413741f);
  p = __builtin_fmaf(p, t, -0.284496736f);
  p = __builtin_fmaf(p, t, 0.254829592f);
  return 1.0f - p * t * ExpOfNegative(-x * x);
}
FUSELAGE_ELEMENTWISE float Gelu(float x) {
  const float erf = ErfOfMagnitude(x * 0.707106781186547524f);
  return 0.5f * x * (1.0f + (x < 0 ? -erf : erf));
}
FUSELAGE_ELEMENTWISE float GeluTanh(float x) {
  return 0.5f * x * (1.0f + Tanh(0.797884560802865356f * __builtin_fmaf(0.044715f * x * x, x, x)));
}

FUSELAGE_ELEMENTWISE float Hardsigmoid(float x, float alpha, float beta) {
  return Clamp(__builtin_fmaf(alpha, x, beta), 0.0f, 1.0f);
}
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Floats Hardswish(typename Lanes::Floats x) {
  const auto sigmoid = Lanes::MultiplyAdd(Lanes::Set(1.0f / 6.0f), x, Lanes::Set(0.5f));
  return Lanes::Multiply(x, Lanes::Smallest(Lanes::Set(1.0f), Lanes::Largest(Lanes::Set(0.0f), sigmoid)));
}

FUSELAGE_ELEMENTWISE float Maximum(float a, float b) { return a >= b || a != a ? a : b; }
FUSELAGE_ELEMENTWISE float Minimum(float a, float b) { return a <= b || a != a ? a : b; }
FUSELAGE_ELEMENTWISE float Remainder(float a, float b) {
  const float r = __builtin_fmodf(a, b);
  const bool other_sign = (r < 0) != (b < 0);
  return r != 0 && other_sign ? r + b : r;
}
FUSELAGE_ELEMENTWISE float Sign(float x) {
  const float y = x > 0 ? 1.0f : x;
  return x < 0 ? -1.0f : y;
}
// gamma * (x < 0 ? alpha * (e^(x / divisor) - 1) : x)
FUSELAGE_ELEMENTWISE float Elu(float x, float alpha, float divisor, float gamma) {
  const double negative = alpha * wide::Expm1(static_cast<double>(x) / divisor);
  return static_cast<float>(gamma * (x < 0 ? negative : static_cast<double>(x)));
}

// silu, gelu and mish of values that become codes at once: x where x > 0, else 0, less a bump |x| * s(|x|), within
// 2^-13 of the function and in x near 0. The eighth root of s is nearly a polynomial, and s nearly constant beyond the
// limit, where the bump is: neither a division nor an exponential. The coefficients are minimax fits.
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Floats EighthPower(typename Lanes::Floats x) {
  const auto square = Lanes::Multiply(x, x), fourth = Lanes::Multiply(square, square);
  return Lanes::Multiply(fourth, fourth);
}

// ((p * x + first) * x + ...) + last
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Floats Polynomial(typename Lanes::Floats /*x*/, typename Lanes::Floats p) {
  return p;
}
template <typename Lanes, typename... More>
FUSELAGE_ELEMENTWISE typename Lanes::Floats Polynomial(typename Lanes::Floats x, typename Lanes::Floats p, float first,
                                                       More... more) {
  return Polynomial<Lanes>(x, Lanes::MultiplyAdd(p, x, Lanes::Set(first)), more...);
}

template <typename Lanes, typename... More>
FUSELAGE_ELEMENTWISE typename Lanes::Floats LessBump(typename Lanes::Floats x, float limit, float first, More... more) {
  const auto a = Lanes::Smallest(Lanes::Set(limit), Lanes::Magnitude(x));
  const auto p = Polynomial<Lanes>(a, Lanes::Set(first), more...);
  return Lanes::MultiplySubtractFrom(a, EighthPower<Lanes>(p), Lanes::Largest(Lanes::Set(0.0f), x));
}
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Floats CodeSilu(typename Lanes::Floats x) {
  return LessBump<Lanes>(x, 12.0f, -2.32182316e-7f, 6.9047137e-6f, -6.63370083e-5f, 7.73201828e-5f, 2.67739361e-3f,
                         -1.46092521e-2f, -5.64372726e-2f, 9.16935682e-1f);
}
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Floats CodeGelu(typename Lanes::Floats x) {
  return LessBump<Lanes>(x, 5.0f, -1.91088082e-4f, 1.9409986e-3f, -1.11290964e-3f, -3.17139812e-2f, -9.14965719e-2f,
                         9.17004883e-1f);
}
template <typename Lanes>
FUSELAGE_ELEMENTWISE typename Lanes::Floats CodeGeluTanh(typename Lanes::Floats x) {
  return LessBump<Lanes>(x, 4.5f, -1.42945981e-4f, 1.38491555e-3f, 2.02900817e-4f, -3.26846428e-2f, -9.12280232e-2f,
                         9.16993976e-1f);
}
// Its bumps left and right of 0 differ.
FUSELAGE_ELEMENTWISE float CodeMish(float x) {
  const bool left = x < 0;
  const float a = OneLane::Smallest(left ? 12.0f : 8.0f, Magnitude(x));
  float p = left ? 9.58921298e-9f : -8.81375217e-6f;
  p = __builtin_fmaf(p, a, left ? -2.46322475e-6f : 1.86975056e-4f);
  p = __builtin_fmaf(p, a, left ? 7.70932675e-5f : -1.50244636e-3f);
  p = __builtin_fmaf(p, a, left ? -1.01968215e-3f : 5.10877557e-3f);
  p = __builtin_fmaf(p, a, left ? 6.93364581e-3f : -1.66978128e-3f);
  p = __builtin_fmaf(p, a, left ? -2.11255774e-2f : -2.62389071e-2f);
  p = __builtin_fmaf(p, a, left ? -6.14805892e-2f : -8.91628638e-2f);
  p = __builtin_fmaf(p, a, left ? 9.3808651e-1f : 8.91770422e-1f);
  return __builtin_fmaf(-a, EighthPower<OneLane>(p), Relu(x));
}

// The activations that are no clamp (ir/base/activation.h), and what stands for each where its results become codes. Of
// a finite value none is NaN.
struct ActivationFunction {
  ElementwiseOp op, for_codes;
};
constexpr ActivationFunction kActivations[] = {
    {ElementwiseOp::kLeakyRelu, ElementwiseOp::kLeakyRelu}, {ElementwiseOp::kHardsigmoid, ElementwiseOp::kHardsigmoid},
    {ElementwiseOp::kHardswish, ElementwiseOp::kHardswish}, {ElementwiseOp::kSigmoid, ElementwiseOp::kSigmoid},
    {ElementwiseOp::kSilu, ElementwiseOp::kCodeSilu},       {ElementwiseOp::kTanh, ElementwiseOp::kTanh},
    {ElementwiseOp::kGelu, ElementwiseOp::kCodeGelu},       {ElementwiseOp::kGeluTanh, ElementwiseOp::kCodeGeluTanh},
    {ElementwiseOp::kMish, ElementwiseOp::kCodeMish},
};
constexpr int kActivationCount = sizeof(kActivations) / sizeof(kActivations[0]);

constexpr ElementwiseInstruction ForCodes(ElementwiseInstruction function) {
  for (const ActivationFunction& activation : kActivations) {
    if (activation.op == function.op) {
      function.op = activation.for_codes;
      break;
    }
  }
  return function;
}

FUSELAGE_ELEMENTWISE float Activated(const ElementwiseInstruction& step, float x) {
  switch (step.op) {
    case ElementwiseOp::kLeakyRelu: return x < 0 ? x * step.p : x;
    case ElementwiseOp::kHardsigmoid: return Hardsigmoid(x, step.p, step.q);
    case ElementwiseOp::kHardswish: return Hardswish<OneLane>(x);
    case ElementwiseOp::kSigmoid: return Sigmoid(x);
    case ElementwiseOp::kSilu: return Silu(x);
    case ElementwiseOp::kTanh: return Tanh(x);
    case ElementwiseOp::kGelu: return Gelu(x);
    case ElementwiseOp::kGeluTanh: return GeluTanh(x);
    case ElementwiseOp::kMish: return static_cast<float>(wide::Mish(x));
    case ElementwiseOp::kCodeSilu: return CodeSilu<OneLane>(x);
    case ElementwiseOp::kCodeGelu: return CodeGelu<OneLane>(x);
    case ElementwiseOp::kCodeGeluTanh: return CodeGeluTanh<OneLane>(x);
    case ElementwiseOp::kCodeMish: return CodeMish(x);
    default: return x;
  }
}

// y = f(x), y = f(a, b) for n elements; `y` may be an operand.
template <typename F>
static inline void Map(const float* x, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
template <typename F>
static inline void Map(const float* a, const float* b, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

template <ElementwiseOp kOp>
static inline void MapActivated(const ElementwiseInstruction& step, const float* x, float* y, int64_t n) {
  const float p = step.p, q = step.q;
  Map(x, y, n, [p, q](float v) { return Activated({kOp, 0, 0, p, q}, v); });
}

constexpr bool SkipsNone(ElementwiseOp) { return false; }

// y = Activated(step, x) for n elements, the step known where the loop is compiled. Not for those where kSkips.
template <bool (*kSkips)(ElementwiseOp) = SkipsNone, int kIndex = 0>
static inline void Activate(const ElementwiseInstruction& step, const float* x, float* y, int64_t n) {
  if constexpr (kIndex < kActivationCount) {
    constexpr ActivationFunction kFunction = kActivations[kIndex];
    if constexpr (!kSkips(kFunction.op)) {
      if (step.op == kFunction.op) return MapActivated<kFunction.op>(step, x, y, n);
    }
    if constexpr (!kSkips(kFunction.for_codes)) {
      if (step.op == kFunction.for_codes) return MapActivated<kFunction.for_codes>(step, x, y, n);
    }
    Activate<kSkips, kIndex + 1>(step, x, y, n);
  }
}

// f takes and gives double.
template <typename F>
static inline void MapWide(const float* x, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(f(static_cast<double>(x[i])));
}

// One instruction on n elements.
static inline void Apply(const ElementwiseInstruction& step, const float* a, const float* b, float* y, int64_t n) {
  const float p = step.p, q = step.q;
  switch (step.op) {
    case ElementwiseOp::kAdd:
      if (q != 0) return Map(a, b, y, n, [p](float u, float v) { return Relu(__builtin_fmaf(p, v, u)); });
      return Map(a, b, y, n, [p](float u, float v) { return __builtin_fmaf(p, v, u); });
    case ElementwiseOp::kSub: return Map(a, b, y, n, [](float u, float v) { return u - v; });
    case ElementwiseOp::kMul: return Map(a, b, y, n, [](float u, float v) { return u * v; });
    case ElementwiseOp::kDiv: return Map(a, b, y, n, [](float u, float v) { return u / v; });
    case ElementwiseOp::kRelu: return Map(a, y, n, [](float x) { return Relu(x); });
    case ElementwiseOp::kClamp: return Map(a, y, n, [p, q](float x) { return Clamp(x, p, q); });
    case ElementwiseOp::kMaximum: return Map(a, b, y, n, [](float u, float v) { return Maximum(u, v); });
    case ElementwiseOp::kMinimum: return Map(a, b, y, n, [](float u, float v) { return Minimum(u, v); });
    case ElementwiseOp::kPow:
      return Map(a, b, y, n, [](float u, float v) { return static_cast<float>(wide::Pow(u, v)); });
    case ElementwiseOp::kFmod: return Map(a, b, y, n, [](float u, float v) { return __builtin_fmodf(u, v); });
    case ElementwiseOp::kRemainder: return Map(a, b, y, n, [](float u, float v) { return Remainder(u, v); });
    case ElementwiseOp::kPrelu: return Map(a, b, y, n, [](float u, float v) { return u < 0 ? u * v : u; });
    case ElementwiseOp::kAbs: return Map(a, y, n, [](float x) { return Magnitude(x); });
    case ElementwiseOp::kNeg: return Map(a, y, n, [](float x) { return -x; });
    case ElementwiseOp::kSign: return Map(a, y, n, [](float x) { return Sign(x); });
    case ElementwiseOp::kCeil: return Map(a, y, n, [](float x) { return __builtin_ceilf(x); });
    case ElementwiseOp::kFloor: return Map(a, y, n, [](float x) { return __builtin_floorf(x); });
    case ElementwiseOp::kRound: return Map(a, y, n, [](float x) { return __builtin_rintf(x); });
    case ElementwiseOp::kReciprocal: return Map(a, y, n, [](float x) { return 1.0f / x; });
    case ElementwiseOp::kSqrt: return Map(a, y, n, [](float x) { return __builtin_sqrtf(x); });
    case ElementwiseOp::kSoftsign: return Map(a, y, n, [](float x) { return x / (1.0f + Magnitude(x)); });
    case ElementwiseOp::kThreshold: return Map(a, y, n, [p, q](float x) { return x <= p ? q : x; });
    case ElementwiseOp::kElu: return Map(a, y, n, [p](float x) { return Elu(x, p, 1.0f, 1.0f); });
    case ElementwiseOp::kCelu: return Map(a, y, n, [p](float x) { return Elu(x, p, p, 1.0f); });
    case ElementwiseOp::kSelu: return Map(a, y, n, [p, q](float x) { return Elu(x, p, 1.0f, q); });
    case ElementwiseOp::kAcos: return MapWide(a, y, n, [](double x) { return wide::Acos(x); });
    case ElementwiseOp::kAcosh: return MapWide(a, y, n, [](double x) { return wide::Acosh(x); });
    case ElementwiseOp::kAsin: return MapWide(a, y, n, [](double x) { return wide::Asin(x); });
    case ElementwiseOp::kAsinh: return MapWide(a, y, n, [](double x) { return wide::Asinh(x); });
    case ElementwiseOp::kAtan: return MapWide(a, y, n, [](double x) { return wide::Atan(x); });
    case ElementwiseOp::kAtanh: return MapWide(a, y, n, [](double x) { return wide::Atanh(x); });
    case ElementwiseOp::kCos: return MapWide(a, y, n, [](double x) { return wide::Cos(x); });
    case ElementwiseOp::kCosh: return MapWide(a, y, n, [](double x) { return wide::Cosh(x); });
    case ElementwiseOp::kErf: return MapWide(a, y, n, [](double x) { return wide::Erf(x); });
    case ElementwiseOp::kExp: return MapWide(a, y, n, [](double x) { return wide::Exp(x); });
    case ElementwiseOp::kLog: return MapWide(a, y, n, [](double x) { return wide::Log(x); });
    case ElementwiseOp::kSin: return MapWide(a, y, n, [](double x) { return wide::Sin(x); });
    case ElementwiseOp::kSinh: return MapWide(a, y, n, [](double x) { return wide::Sinh(x); });
    case ElementwiseOp::kSoftplus: return MapWide(a, y, n, [](double x) { return wide::Softplus(x); });
    case ElementwiseOp::kTan: return MapWide(a, y, n, [](double x) { return wide::Tan(x); });
    default: return Activate(step, a, y, n);
  }
}

}  // namespace elementwise
}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_ELEMENTWISE_MATH_H_
