// Functions of float32 that are computed in double: to a relative error of 1e-9 or less, so that the result, rounded
// to float32, is within one unit in the last place. Each operation written here rounds once, std::fma is one operation,
// nothing else is contracted, and no function of the C library is called: the bits are the same on every machine.
// FUSELAGE_ELEMENTWISE and without branches on values, for the vectorizer (see elementwise_math.h).
#ifndef FUSELAGE_IR_BASE_WIDE_MATH_H_
#define FUSELAGE_IR_BASE_WIDE_MATH_H_

#include <cstdint>
#include <cstring>

// CUDA's device code has these functions too. GCC would keep the loop of a polynomial, and then vectorize no loop
// around it.
#if defined(__CUDACC__)
#define FUSELAGE_ELEMENTWISE __host__ __device__ static inline
#define FUSELAGE_UNROLL_POLYNOMIAL _Pragma("unroll")
#else
#define FUSELAGE_ELEMENTWISE static inline
#define FUSELAGE_UNROLL_POLYNOMIAL _Pragma("GCC unroll 16")
#endif

namespace fuselage::wide {

FUSELAGE_ELEMENTWISE int64_t BitsOf(double x) {
  int64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
FUSELAGE_ELEMENTWISE double OfBits(int64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
FUSELAGE_ELEMENTWISE double Magnitude(double x) { return __builtin_fabs(x); }
FUSELAGE_ELEMENTWISE double WithSign(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, half to even.
constexpr double kInfinity = __builtin_inf();
constexpr double kNan = __builtin_nan("");
constexpr double kHalfPi = 1.5707963267948966, kQuarterPi = 0.7853981633974483;

// c[n-1] + c[n-2] x + ... + c[0] x^(n-1).
template <int n>
FUSELAGE_ELEMENTWISE double Polynomial(double x, const double (&c)[n]) {
  double y = c[0];
  FUSELAGE_UNROLL_POLYNOMIAL
  for (int i = 1; i < n; ++i) y = __builtin_fma(y, x, c[i]);
  return y;
}

// e^x = power * (1 + rest), power a power of 2 (Cody and Waite's reduction, Taylor's polynomial). Beyond +-700, where
// every float32 is 0 or infinite, as at +-700. NaN stays in the rest.
struct Exponential {
  double power, rest;
};
FUSELAGE_ELEMENTWISE Exponential Exponentiate(double x) {
  x = x < -700.0 ? -700.0 : x;
  x = x > 700.0 ? 700.0 : x;
  const double n = __builtin_fma(x, 1.4426950408889634, kRound);
  double r = __builtin_fma(n - kRound, -0.69314718055994529, x);
  r = __builtin_fma(n - kRound, -2.3190468138462996e-17, r);
  constexpr double kTaylor[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                1.0 / 120,     1.0 / 24,     1.0 / 6,     0.5};
  const double rest = __builtin_fma(Polynomial(r, kTaylor), r * r, r);
  const uint64_t exponent = (static_cast<uint64_t>(BitsOf(n)) + 1023) << 52;  // The low bits are n's.
  return {OfBits(static_cast<int64_t>(exponent)), rest};
}
FUSELAGE_ELEMENTWISE double Exp(double x) {
  const Exponential e = Exponentiate(x);
  const double y = __builtin_fma(e.power, e.rest, e.power);
  return x == x ? y : x;
}
FUSELAGE_ELEMENTWISE double Expm1(double x) {
  const Exponential e = Exponentiate(x);
  const double y = __builtin_fma(e.power, e.rest, e.power - 1.0);
  return x == x ? y : x;
}

// x = 2^k * m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)). Of normal doubles, which all
// positive float32 are.
FUSELAGE_ELEMENTWISE double Log(double x) {
  const uint64_t shifted = static_cast<uint64_t>(BitsOf(x)) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  const uint64_t biased = shifted >> 52;  // k + 1023
  const double m = OfBits(BitsOf(x) - static_cast<int64_t>((biased - 1023) << 52));
  const double k = OfBits(static_cast<int64_t>(biased | 0x4330000000000000u)) - (4503599627370496.0 + 1023.0);
  const double s = (m - 1.0) / (m + 1.0);
  constexpr double kSeries[] = {2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
  double y = __builtin_fma(k, 0.69314718055994529, s * Polynomial(s * s, kSeries));
  y = x < kInfinity ? y : x;  // Infinity and NaN stay.
  y = x == 0 ? -kInfinity : y;
  return x < 0 ? kNan : y;
}
// Kahan's: the rounding of 1 + x is made good by the quotient.
FUSELAGE_ELEMENTWISE double Log1p(double x) {
  const double w = 1.0 + x, d = w - 1.0;
  const double quotient = Log(w) * (x / (d == 0 ? 1.0 : d));
  double y = d == 0 ? x : quotient;
  y = w == x ? Log(w) : y;  // Also where w is infinite.
  return y;
}

// Quadrants of pi/2 (in two parts), Taylor's polynomials. Beyond 2^50, where the neighbours of a float32 lie 2^27
// apart, sin is 0 and cos 1; of infinity and NaN they are NaN.
struct SinAndCos {
  double sin, cos;
};
FUSELAGE_ELEMENTWISE SinAndCos SinCos(double x) {
  x = Magnitude(x) < 1125899906842624.0 ? x : x * 0.0;
  const double n = __builtin_fma(x, 0.63661977236758138, kRound);
  double r = __builtin_fma(n - kRound, -1.5707963267948966, x);
  r = __builtin_fma(n - kRound, -6.123233995736766e-17, r);
  const double z = r * r;
  constexpr double kSin[] = {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
  constexpr double kCos[] = {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5};
  const double s = __builtin_fma(Polynomial(z, kSin) * z, r, r), c = __builtin_fma(Polynomial(z, kCos), z, 1.0);
  const int64_t quadrant = BitsOf(n);
  const double sine = (quadrant & 1) != 0 ? c : s, cosine = (quadrant & 1) != 0 ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}
FUSELAGE_ELEMENTWISE double Sin(double x) { return SinCos(x).sin; }
FUSELAGE_ELEMENTWISE double Cos(double x) { return SinCos(x).cos; }
FUSELAGE_ELEMENTWISE double Tan(double x) {
  const SinAndCos both = SinCos(x);
  return both.sin / both.cos;
}

// Cephes' atan: three ranges, a rational function.
FUSELAGE_ELEMENTWISE double Atan(double x) {
  const double a = Magnitude(x);
  const bool far = a > 2.414213562373095, middle = a > 0.66;
  const double t = (far ? -1.0 : middle ? a - 1.0 : a) / (far ? a : middle ? a + 1.0 : 1.0);
  const double start = far ? kHalfPi : middle ? kQuarterPi : 0.0;
  const double z = t * t;
  constexpr double kNumerator[] = {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                                   -1.228866684490136173410e2, -6.485021904942025371773e1};
  constexpr double kDenominator[] = {1.0,
                                     2.485846490142306297962e1,
                                     1.650270098316988542046e2,
                                     4.328810604912902668951e2,
                                     4.853903996359136964868e2,
                                     1.945506571482613964425e2};
  const double q = z * (Polynomial(z, kNumerator) / Polynomial(z, kDenominator));
  return WithSign(start + __builtin_fma(t, q, t), x);
}
FUSELAGE_ELEMENTWISE double Asin(double x) { return Atan(x / __builtin_sqrt((1.0 - x) * (1.0 + x))); }
FUSELAGE_ELEMENTWISE double Acos(double x) { return kHalfPi - Asin(x); }

FUSELAGE_ELEMENTWISE double Sinh(double x) {
  const double t = Expm1(Magnitude(x));
  return WithSign(0.5 * (t + t / (t + 1.0)), x);
}
FUSELAGE_ELEMENTWISE double Cosh(double x) {
  const double e = Exp(Magnitude(x));
  return 0.5 * (e + 1.0 / e);
}
FUSELAGE_ELEMENTWISE double Asinh(double x) {
  const double a = Magnitude(x);
  const double y = Log1p(a + a * a / (1.0 + __builtin_sqrt(__builtin_fma(a, a, 1.0))));
  return WithSign(a < kInfinity ? y : a, x);
}
FUSELAGE_ELEMENTWISE double Acosh(double x) {
  const double t = x - 1.0;
  const double y = Log1p(t + __builtin_sqrt(t * (x + 1.0)));
  return t < 0 ? kNan : y;
}
FUSELAGE_ELEMENTWISE double Atanh(double x) {
  const double a = Magnitude(x);
  return WithSign(0.5 * Log1p(2.0 * a / (1.0 - a)), x);
}

// Chebyshev's interpolants: of erf(x) / x in x^2 below 1, and of erfc(x) e^(x^2) in 1 / (1 + x/2) above.
FUSELAGE_ELEMENTWISE double Erf(double x) {
  const double a = Magnitude(x) < 6.0 ? Magnitude(x) : 6.0, z = a * a;
  constexpr double kNear[] = {-9.6670442947392742e-06, 0.00011265958924531086, -0.00084840803909046344,
                              0.0052210318067973781,   -0.026865430727272425,  0.11283782495229802,
                              -0.37612638468028292,    1.1283791670615435};
  constexpr double kFar[] = {0.10839819348409362, -0.43358657645014392, 0.50851586046245378, -0.059844377478386696,
                             0.3270617030429071,  0.26551295534352698,  0.28401492059213851, -9.5653331910790872e-05};
  const double near = a * Polynomial(z, kNear);
  const double far = 1.0 - Exp(-z) * Polynomial(1.0 / (1.0 + 0.5 * a), kFar);
  const double y = WithSign(a < 1.0 ? near : far, x);
  return x == x ? y : x;
}

// ln(1 + e^x)
FUSELAGE_ELEMENTWISE double Softplus(double x) { return (x < 0 ? 0.0 : x) + Log1p(Exp(-Magnitude(x))); }
// x * tanh(softplus(x)), which is a quotient of powers of e.
FUSELAGE_ELEMENTWISE double Mish(double x) {
  const double e = Exp(x > 300.0 ? 300.0 : x), t = e * (e + 2.0);
  return x * (t / (t + 2.0));
}

// IEEE 754's pow: of a negative base with a whole exponent, of zeros, ones and infinities as it says.
FUSELAGE_ELEMENTWISE double Pow(double x, double y) {
  const double a = Magnitude(x);
  const bool is_zero = y == 0;
  double power = Exp(y * Log(a));
  power = a == 1.0 ? 1.0 : power;
  // A float32 of 2^24 or more is even.
  const double whole = Magnitude(y) < 4503599627370496.0 ? (y + kRound) - kRound : y;
  const double halves = 0.5 * y, whole_halves = Magnitude(y) < 4503599627370496.0 ? (halves + kRound) - kRound : halves;
  const bool is_whole = whole == y, is_odd = is_whole && whole_halves != halves;
  const bool is_negative = BitsOf(x) < 0;
  power = is_negative && is_odd ? -power : power;
  power = x < 0 && !is_whole && a < kInfinity ? kNan : power;
  power = x == 1.0 || is_zero ? 1.0 : power;
  return power;
}

}  // namespace fuselage::wide

#endif  // FUSELAGE_IR_BASE_WIDE_MATH_H_
