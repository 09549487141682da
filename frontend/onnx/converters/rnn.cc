// RNN, GRU and LSTM, and com.microsoft's DynamicQuantizeLSTM.
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/recurrent.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::rnn {
namespace {

// ONNX lists a number for each activation that takes one, in their order; the IR one for each activation.
absl::Status AddActivations(const Call& call, AttributeMap* attributes) {
  const std::vector<float> alphas = call.Floats("activation_alpha"), betas = call.Floats("activation_beta");
  std::vector<std::string> names;
  std::vector<double> alpha, beta;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : call.Strings("activations")) {
    const std::optional<recurrent::Activation> activation = recurrent::FindActivation(name);
    if (!activation.has_value()) {
      return absl::UnimplementedError(absl::StrCat("attribute 'activations': found ", Quote(name),
                                                   ", wanted Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, "
                                                   "Sigmoid, Softsign, Tanh or ThresholdedRelu"));
    }
    const auto take = [](const std::vector<float>& values, size_t* next, std::optional<double> otherwise) {
      if (!otherwise.has_value()) return 0.0;
      return *next < values.size() ? static_cast<double>(values[(*next)++]) : *otherwise;
    };
    names.emplace_back(recurrent::ActivationName(*activation));
    alpha.push_back(take(alphas, &next_alpha, recurrent::DefaultAlpha(*activation)));
    beta.push_back(take(betas, &next_beta, recurrent::DefaultBeta(*activation)));
  }
  if (next_alpha != alphas.size() || next_beta != betas.size()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", alphas.size(), " activation_alpha and ", betas.size(),
                                                   " activation_beta, wanted ", next_alpha, " and ", next_beta,
                                                   ", as the activations take"));
  }
  attributes->emplace("activations", std::move(names));
  if (!alphas.empty()) attributes->emplace("alpha", std::move(alpha));
  if (!betas.empty()) attributes->emplace("beta", std::move(beta));
  return absl::OkStatus();
}

// Layout 1 has the sequences in front of the steps: permuted on the way in and out.
absl::Status Recurrent(Call& call, std::vector<Value> operands) {
  const std::string& op = call.target();
  AttributeMap attributes = {{"direction", call.String("direction", "forward")}, {"clip", call.Float("clip", 0)}};
  RETURN_IF_ERROR(AddActivations(call, &attributes));
  if (op == "gru") {
    attributes.emplace("linear_before_reset", call.Int("linear_before_reset", 0) != 0);
  }
  if (op == "lstm") attributes.emplace("input_forget", call.Int("input_forget", 0) != 0);
  const TensorType& weights = operands[2].type();
  if (call.HasAttribute("hidden_size") && (weights.rank() != 3 || weights.shape[2] != call.Int("hidden_size", 0))) {
    return absl::InvalidArgumentError(absl::StrCat("found hidden_size ", call.Int("hidden_size", 0), " and weights ",
                                                   ToString(weights), ", wanted their last dimension"));
  }
  ASSIGN_OR_RETURN(const bool sequences_first, call.Flag("layout", false));
  const auto permute = [&](absl::string_view suffix, Value* value, std::vector<int64_t> dims) -> absl::Status {
    if (!sequences_first || !value->present()) return absl::OkStatus();
    ASSIGN_OR_RETURN(*value, call.EmitHelper(suffix, "permute", {*value}, {{"dims", std::move(dims)}}));
    return absl::OkStatus();
  };
  for (const auto& [i, suffix] : {std::pair(0, "x"), {5, "initial_h"}, {6, "initial_c"}}) {
    if (i < static_cast<int>(operands.size())) RETURN_IF_ERROR(permute(suffix, &operands[i], {1, 0, 2}));
  }
  ASSIGN_OR_RETURN(std::vector<Value> results,
                   call.builder().EmitTuple(call.name(), op, operands, std::move(attributes), call.wanted()));
  for (int i = 0; i < call.num_outputs(); ++i) {
    RETURN_IF_ERROR(i == 0 ? permute("y", &results[i], {2, 0, 1, 3})
                           : permute(absl::StrCat("y", i), &results[i], {1, 0, 2}));
    call.Set(i, std::move(results[i]));
  }
  return absl::OkStatus();
}

absl::Status ConvertRecurrent(Call& call) { return Recurrent(call, call.operands()); }

// What codes [directions, inputs, gates * units] mean, by a scale for each direction or for each of its columns, as
// ONNX has them: [directions, gates * units, inputs].
absl::StatusOr<Value> Weights(Call& call, absl::string_view suffix, int codes, int scale, int zero_point) {
  Value parameters[2];
  for (const auto& [i, from] : {std::pair(0, scale), {1, zero_point}}) {
    if (!call.has(from) || call.rank(codes) != 3 || call.rank(from) < 1 || call.rank(from) > 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "found input ", from, " absent or of another rank, wanted a value for each direction or column"));
    }
    Shape shape = {call.shape(from)[0], 1, call.rank(from) == 1 ? 1 : call.shape(from)[1]};
    const std::string name = absl::StrCat(suffix, i == 0 ? "_scale" : "_zero_point");
    ASSIGN_OR_RETURN(Value real, call.EmitHelper(name + "_f32", "to", {call.operand(from)}, {{"dtype", DType::kF32}}));
    ASSIGN_OR_RETURN(parameters[i], call.EmitHelper(name, "reshape", {real}, {{"shape", std::move(shape)}}));
  }
  ASSIGN_OR_RETURN(
      Value real, call.EmitHelper(absl::StrCat(suffix, "_f32"), "to", {call.operand(codes)}, {{"dtype", DType::kF32}}));
  ASSIGN_OR_RETURN(real, call.EmitHelper(absl::StrCat(suffix, "_moved"), "sub", {real, parameters[1]}));
  ASSIGN_OR_RETURN(real, call.EmitHelper(absl::StrCat(suffix, "_scaled"), "mul", {real, parameters[0]}));
  return call.EmitHelper(suffix, "permute", {real}, {{"dims", std::vector<int64_t>{0, 2, 1}}});
}

// onnxruntime rounds a step's input and state to codes of a scale of their own. Here they stay as they are.
absl::Status ConvertDynamicQuantizeLstm(Call& call) {
  std::vector<Value> operands = call.operands();
  operands.resize(8);
  ASSIGN_OR_RETURN(operands[1], Weights(call, "w", 1, 8, 9));
  ASSIGN_OR_RETURN(operands[2], Weights(call, "r", 2, 10, 11));
  return Recurrent(call, std::move(operands));
}

constexpr char kGru[] =
    "activation_alpha=FLOATS activation_beta=FLOATS activations=STRINGS clip=FLOAT direction=STRING hidden_size=INT "
    "layout=INT linear_before_reset=INT";
constexpr char kLstm[] =
    "activation_alpha=FLOATS activation_beta=FLOATS activations=STRINGS clip=FLOAT direction=STRING hidden_size=INT "
    "input_forget=INT layout=INT";
constexpr char kRnn[] =
    "activation_alpha=FLOATS activation_beta=FLOATS activations=STRINGS clip=FLOAT direction=STRING hidden_size=INT "
    "layout=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"GRU", 7, {3, 6}, {0, 2}, kGru, ConvertRecurrent},
      {"LSTM", 7, {3, 8}, {0, 3}, kLstm, ConvertRecurrent},
      {"RNN", 7, {3, 6}, {0, 2}, kRnn, ConvertRecurrent},
  });
  converters.Add(kMicrosoft, {{"DynamicQuantizeLSTM", 0, {3, 12}, {0, 3}, kLstm, ConvertDynamicQuantizeLstm, "lstm"}});
}

}  // namespace fuselage::onnx::converters::rnn
