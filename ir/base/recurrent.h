// The activations of recurrent layers, by name: one list for inference, the reference and kernels.
#ifndef FUSELAGE_IR_BASE_RECURRENT_H_
#define FUSELAGE_IR_BASE_RECURRENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/attribute.h"

namespace fuselage::recurrent {

enum class Activation : uint8_t {
  kAffine,       // alpha*x + beta
  kElu,          // x where x >= 0, else alpha*(e^x - 1)
  kHardSigmoid,  // max(0, min(1, alpha*x + beta))
  kLeakyRelu,    // x where x >= 0, else alpha*x
  kRelu,
  kScaledTanh,  // alpha*tanh(beta*x)
  kSigmoid,
  kSoftsign,  // x / (1 + |x|)
  kTanh,
  kThresholdedRelu,  // x where x > alpha, else 0
};

struct ActivationCall {
  Activation activation;
  double alpha = 0, beta = 0;

  bool operator==(const ActivationCall& other) const {
    return activation == other.activation && alpha == other.alpha && beta == other.beta;
  }
};

// By its name in the IR ("scaled_tanh") or in ONNX ("ScaledTanh", whatever the case).
std::optional<Activation> FindActivation(absl::string_view name);
absl::string_view ActivationName(Activation activation);  // In the IR.
std::string OnnxName(Activation activation);              // "ScaledTanh".
// ONNX's alpha and beta where a model has none; nullopt where the activation takes none.
std::optional<double> DefaultAlpha(Activation activation);
std::optional<double> DefaultBeta(Activation activation);

// How many an op ("rnn", "gru", "lstm") has in each direction, and gates.
int ActivationsOf(absl::string_view op);
int GatesOf(absl::string_view op);

// Those of all directions; InvalidArgument where names or numbers are not as many as `directions` ask for.
absl::StatusOr<std::vector<ActivationCall>> ReadActivations(absl::string_view op, int directions,
                                                            const std::vector<std::string>& names,
                                                            const std::vector<double>& alpha,
                                                            const std::vector<double>& beta);

// Of the codes that states are where they are multiplied as such: i8 with zero point 0.
constexpr float kStateScale = 1.0f / 127;
// FailedPrecondition where states may leave [-1, 1], though the first ones do not. They stay where sigmoids, tanh and
// softsign make them, and a GRU weights with sigmoids.
absl::Status CheckStatesAreBounded(absl::string_view op, const std::vector<ActivationCall>& activations);

}  // namespace fuselage::recurrent

#endif  // FUSELAGE_IR_BASE_RECURRENT_H_
