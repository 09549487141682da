// Activation functions in double, by the C library: what the reference evaluations of operators share.
#ifndef FUSELAGE_IR_BASE_EXACT_FUNCTIONS_H_
#define FUSELAGE_IR_BASE_EXACT_FUNCTIONS_H_

#include <cmath>

namespace fuselage::exact {

inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double Silu(double x) { return x * Sigmoid(x); }
inline double HardSigmoid(double x, double alpha, double beta) {
  const double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
inline double HardSwish(double x) { return x * HardSigmoid(x, 1.0 / 6, 0.5); }
inline double LeakyRelu(double x, double slope) { return x < 0 ? slope * x : x; }
// ln(1 + e^x), which for large x e^x would overflow.
inline double Softplus(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }
// Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.
inline double Mish(double x) { return x * std::tanh(Softplus(x)); }
// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
inline double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / M_SQRT2)); }
inline double GeluTanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

}  // namespace fuselage::exact

#endif  // FUSELAGE_IR_BASE_EXACT_FUNCTIONS_H_
