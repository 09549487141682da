#include "ir/base/recurrent.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace fuselage::recurrent {
namespace {

struct Row {
  Activation activation;
  const char* name;
  std::optional<double> alpha = std::nullopt, beta = std::nullopt;
};

// ONNX's defaults are f32.
constexpr Row kRows[] = {
    {Activation::kAffine, "affine", 1.0, 0.0},
    {Activation::kElu, "elu", 1.0},
    {Activation::kHardSigmoid, "hard_sigmoid", 0.2f, 0.5},
    {Activation::kLeakyRelu, "leaky_relu", 0.01f},
    {Activation::kRelu, "relu"},
    {Activation::kScaledTanh, "scaled_tanh", 1.0, 1.0},
    {Activation::kSigmoid, "sigmoid"},
    {Activation::kSoftsign, "softsign"},
    {Activation::kTanh, "tanh"},
    {Activation::kThresholdedRelu, "thresholded_relu", 1.0},
};

const Row& RowOf(Activation activation) { return kRows[static_cast<int>(activation)]; }

std::vector<Activation> Defaults(absl::string_view op) {
  if (op == "rnn") return {Activation::kTanh};
  if (op == "gru") return {Activation::kSigmoid, Activation::kTanh};
  return {Activation::kSigmoid, Activation::kTanh, Activation::kTanh};
}

}  // namespace

std::optional<Activation> FindActivation(absl::string_view name) {
  const std::string plain = absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"_", ""}}));
  for (const Row& row : kRows) {
    if (absl::StrReplaceAll(row.name, {{"_", ""}}) == plain) return row.activation;
  }
  return std::nullopt;
}

absl::string_view ActivationName(Activation activation) { return RowOf(activation).name; }
std::string OnnxName(Activation activation) {
  std::string name;
  bool upper = true;
  for (const char c : ActivationName(activation)) {
    if (c != '_') name += upper ? absl::ascii_toupper(c) : c;
    upper = c == '_';
  }
  return name;
}

std::optional<double> DefaultAlpha(Activation activation) { return RowOf(activation).alpha; }
std::optional<double> DefaultBeta(Activation activation) { return RowOf(activation).beta; }

int ActivationsOf(absl::string_view op) { return static_cast<int>(Defaults(op).size()); }
int GatesOf(absl::string_view op) { return op == "rnn" ? 1 : op == "gru" ? 3 : 4; }

absl::StatusOr<std::vector<ActivationCall>> ReadActivations(absl::string_view op, int directions,
                                                            const std::vector<std::string>& names,
                                                            const std::vector<double>& alpha,
                                                            const std::vector<double>& beta) {
  const size_t count = directions * ActivationsOf(op);
  const auto fits = [&](size_t size) { return size == 0 || size == count; };
  if (!fits(names.size()) || !fits(alpha.size()) || !fits(beta.size())) {
    return absl::InvalidArgumentError(absl::StrCat("found ", names.size(), " activations, ", alpha.size(),
                                                   " alpha and ", beta.size(), " beta, wanted none or ", count,
                                                   " of each"));
  }
  std::vector<ActivationCall> calls;
  for (size_t i = 0; i < count; ++i) {
    std::optional<Activation> activation = Defaults(op)[i % ActivationsOf(op)];
    if (!names.empty()) activation = FindActivation(names[i]);
    if (!activation.has_value()) {
      const auto name = [](std::string* out, const Row& row) { absl::StrAppend(out, row.name); };
      return absl::InvalidArgumentError(
          absl::StrCat("found the activation ", names[i], ", wanted one of ", absl::StrJoin(kRows, ", ", name)));
    }
    calls.push_back({*activation, alpha.empty() ? DefaultAlpha(*activation).value_or(0) : alpha[i],
                     beta.empty() ? DefaultBeta(*activation).value_or(0) : beta[i]});
    if (!std::isfinite(calls.back().alpha) || !std::isfinite(calls.back().beta)) {
      return absl::InvalidArgumentError("found an infinite alpha or beta, wanted finite ones");
    }
  }
  return calls;
}

absl::Status CheckStatesAreBounded(absl::string_view op, const std::vector<ActivationCall>& activations) {
  for (size_t i = 0; i < activations.size(); ++i) {
    const Activation activation = activations[i].activation;
    const bool in_0_1 = activation == Activation::kSigmoid || activation == Activation::kHardSigmoid;
    const bool in_1_1 = in_0_1 || activation == Activation::kTanh || activation == Activation::kSoftsign;
    const bool weights_states = op == "gru" && i % 2 == 0;
    if (weights_states ? in_0_1 : in_1_1) continue;
    return absl::FailedPreconditionError(absl::StrCat("the activation ", ActivationName(activation), " of a ", op,
                                                      " lets states leave [-1, 1], which their codes cover"));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::recurrent
