// com.microsoft's float operators but for attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/spatial.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::microsoft {
namespace {

// What a fused node may end in; parameters in the order of activation_params.
struct Activation {
  const char* onnx;
  const char* op;
  const char* parameters[2];
  double defaults[2];
};
constexpr Activation kActivations[] = {
    {"Clip", "clamp", {"min", "max"}, {-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()}},
    {"HardSigmoid", "hardsigmoid", {"alpha", "beta"}, {0.2f, 0.5}},
    {"LeakyRelu", "leaky_relu", {"negative_slope"}, {0.01f}},
    {"Relu", "relu", {}, {}},
    {"Sigmoid", "sigmoid", {}, {}},
    {"Tanh", "tanh", {}, {}},
};

// The node's result: the activation that the node names, if it names one, of what `emit` writes under a name.
template <typename F>
absl::Status Activated(Call& call, std::vector<float> parameters, F emit) {
  const std::string name = call.String("activation", "");
  if (name.empty()) {
    ASSIGN_OR_RETURN(Value result, emit(call.name()));
    call.Set(0, std::move(result));
    return absl::OkStatus();
  }
  for (const Activation& activation : kActivations) {
    if (name != activation.onnx) continue;
    AttributeMap attributes;
    for (size_t i = 0; i < 2 && activation.parameters[i] != nullptr; ++i) {
      attributes.emplace(activation.parameters[i],
                         i < parameters.size() ? static_cast<double>(parameters[i]) : activation.defaults[i]);
    }
    ASSIGN_OR_RETURN(const Value sum, emit(call.name() + ".sum"));
    return call.Result(activation.op, {sum}, std::move(attributes));
  }
  return absl::UnimplementedError(absl::StrCat("attribute 'activation': found ", Quote(name),
                                               ", wanted Clip, HardSigmoid, LeakyRelu, Relu, Sigmoid or Tanh"));
}

// A constant to multiply values of `dtype` with.
absl::StatusOr<Value> Factor(Call& call, absl::string_view suffix, double value, DType dtype) {
  Tensor tensor(dtype, {});
  tensor.Set(0, value);
  return call.builder().ChargedConstant(absl::StrCat(call.name(), ".", suffix), std::move(tensor));
}

absl::Status ConvertFusedConv(Call& call) {
  ASSIGN_OR_RETURN(WindowedCall conv, ReadConv(call, call.shape(0), call.shape(1)));
  return Activated(call, call.Floats("activation_params"), [&](const std::string& name) -> absl::StatusOr<Value> {
    const std::vector<Value> operands = {call.operand(0), call.operand(1), call.operand(2)};
    if (!call.has(3)) return call.builder().Emit(name, conv.target, operands, conv.attributes);
    ASSIGN_OR_RETURN(const Value product, call.EmitHelper("conv", conv.target, operands, conv.attributes));
    return call.builder().Emit(name, "add", {product, call.operand(3)});
  });
}

absl::Status ConvertFusedGemm(Call& call) {
  ASSIGN_OR_RETURN(const bool trans_a, call.Flag("transA", false));
  ASSIGN_OR_RETURN(const bool trans_b, call.Flag("transB", false));
  std::vector<float> parameters;
  for (const char* parameter : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (!call.HasAttribute(parameter)) break;
    parameters.push_back(static_cast<float>(call.Float(parameter, 0)));
  }
  return Activated(call, std::move(parameters), [&](const std::string& name) {
    return call.builder().Emit(name, "gemm", call.operands(),
                               {{"alpha", call.Float("alpha", 1)},
                                {"beta", call.Float("beta", 1)},
                                {"trans_a", trans_a},
                                {"trans_b", trans_b}});
  });
}

// An operand of FusedMatMul: with trans_batch its first axis comes before the last, with trans the last two change
// places.
absl::StatusOr<Value> Transposed(Call& call, absl::string_view suffix, const Value& x, bool trans_batch, bool trans) {
  const int rank = x.type().rank();
  if (rank < 2 || (!trans_batch && !trans)) return x;
  std::vector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  if (trans_batch) std::rotate(dims.begin(), dims.begin() + 1, dims.end() - 1);
  if (trans) std::swap(dims[rank - 2], dims[rank - 1]);
  return call.EmitHelper(suffix, "permute", {x}, {{"dims", std::move(dims)}});
}

// alpha * matmul(a, b), of transposed operands.
absl::Status ConvertFusedMatMul(Call& call) {
  Value operands[2] = {call.operand(0), call.operand(1)};
  const char* const attributes[2][2] = {{"transA", "transBatchA"}, {"transB", "transBatchB"}};
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const bool trans, call.Flag(attributes[i][0], false));
    ASSIGN_OR_RETURN(const bool trans_batch, call.Flag(attributes[i][1], false));
    ASSIGN_OR_RETURN(operands[i], Transposed(call, i == 0 ? "a" : "b", operands[i], trans_batch, trans));
  }
  const double alpha = call.Float("alpha", 1);
  if (alpha == 1) return call.Result("matmul", {operands[0], operands[1]});
  ASSIGN_OR_RETURN(const Value product, call.EmitHelper("matmul", "matmul", {operands[0], operands[1]}));
  ASSIGN_OR_RETURN(const Value factor, Factor(call, "alpha", alpha, product.type().dtype));
  return call.Result("mul", {product, factor});
}

// Gelu, BiasGelu, FastGelu: of the sum of all operands.
absl::Status ConvertMicrosoftGelu(Call& call) {
  const AttributeMap attributes = {{"approximate", call.operator_name() == "FastGelu" ? "tanh" : "none"}};
  if (!call.has(1)) return call.Result("gelu", {call.operand(0)}, attributes);
  ASSIGN_OR_RETURN(const Value sum, call.EmitHelper("sum", "add", {call.operand(0), call.operand(1)}));
  return call.Result("gelu", {sum}, attributes);
}

// x * sigmoid(alpha * x).
absl::Status ConvertQuickGelu(Call& call) {
  ASSIGN_OR_RETURN(const Value alpha, Factor(call, "alpha", call.Float("alpha", 1.702f), call.type(0).dtype));
  ASSIGN_OR_RETURN(const Value scaled, call.EmitHelper("scaled", "mul", {call.operand(0), alpha}));
  ASSIGN_OR_RETURN(const Value gate, call.EmitHelper("gate", "sigmoid", {scaled}));
  return call.Result("mul", {call.operand(0), gate});
}

// layer_norm(input + skip + bias), or rms_norm of it, which has no bias of its own; output 3 is the sum.
absl::Status ConvertSkipLayerNormalization(Call& call) {
  if (call.rank(0) < 1) return absl::InvalidArgumentError("found a scalar, wanted rank 2 or 3");
  const bool is_layer_norm = call.target() == "layer_norm";
  const int bias = is_layer_norm ? 4 : 3;
  ASSIGN_OR_RETURN(Value sum, call.EmitHelper("sum", "add", {call.operand(0), call.operand(1)}));
  if (call.has(bias)) {
    ASSIGN_OR_RETURN(sum, call.EmitHelper("biased", "add", {sum, call.operand(bias)}));
  }
  if (call.wants(3)) call.Set(3, sum);
  std::vector<Value> operands = {sum, call.operand(2)};
  if (is_layer_norm) operands.push_back(call.operand(3));
  const Shape normalized = {call.shape(0).back()};
  return call.Result(call.target(), operands,
                     {{"normalized_shape", normalized}, {"eps", call.Float("epsilon", 1e-12f)}});
}

constexpr char kFusedConv[] =
    "activation=STRING activation_params=FLOATS auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS pads=INTS "
    "strides=INTS";
constexpr char kFusedGemm[] =
    "activation=STRING activation_alpha=FLOAT activation_beta=FLOAT activation_gamma=FLOAT alpha=FLOAT beta=FLOAT "
    "transA=INT transB=INT";
constexpr char kFusedMatMul[] = "alpha=FLOAT transA=INT transB=INT transBatchA=INT transBatchB=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add(
      kMicrosoft,
      {
          {"BiasGelu", 0, {2, 2}, {1, 1}, "", ConvertMicrosoftGelu},
          {"FastGelu", 0, {1, 2}, {1, 1}, "", ConvertMicrosoftGelu},
          {"FusedConv", 0, {2, 4}, {1, 1}, kFusedConv, ConvertFusedConv},
          {"FusedGemm", 0, {2, 3}, {1, 1}, kFusedGemm, ConvertFusedGemm},
          {"FusedMatMul", 0, {2, 2}, {1, 1}, kFusedMatMul, ConvertFusedMatMul},
          {"Gelu", 0, {1, 1}, {1, 1}, "", ConvertMicrosoftGelu},
          {"QuickGelu", 0, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertQuickGelu},
          {"SkipLayerNormalization", 0, {3, 5}, {1, 4}, "epsilon=FLOAT", ConvertSkipLayerNormalization, "layer_norm"},
          {"SkipSimplifiedLayerNormalization",
           0,
           {3, 4},
           {1, 4},
           "epsilon=FLOAT",
           ConvertSkipLayerNormalization,
           "rms_norm"},
          {"TransposeMatMul", 0, {2, 2}, {1, 1}, kFusedMatMul, ConvertFusedMatMul},
      });
}

}  // namespace fuselage::onnx::converters::microsoft
