#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/quant.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::math {
namespace {

// [n] or [1, n] of constants: what a linear's bias can be.
bool IsRow(const Shape& shape, int64_t n) { return shape == Shape{n} || (shape == Shape{1, n}); }

absl::Status ConvertBatchNormalization(Call& call) {
  ASSIGN_OR_RETURN(const bool training, call.Flag("training_mode", false));
  ASSIGN_OR_RETURN(const bool spatial, call.Flag("spatial", true));
  const Value& input = call.operand(0);
  const bool outputs_say_so = call.opset() < 14 && call.num_named_outputs() > 1;
  // A convolution's weights that are standardized in every call (Qiao et al., "Micro-Batch Training with Batch-Channel
  // Normalization and Weight Standardization", 2019): as constants they have statistics of their own, of no batch.
  if ((training || outputs_say_so) && input.constant != nullptr && input.at_next_batch == nullptr && call.rank(0) > 2 &&
      call.shape(0)[0] == 1) {
    return call.Result("instance_norm", {input, call.operand(1), call.operand(2)},
                       {{"eps", call.Float("epsilon", 1e-5f)}});
  }
  if (outputs_say_so) {
    return absl::UnimplementedError(
        absl::StrCat("found ", call.num_named_outputs(), " outputs, which before opset 14 says training, wanted one"));
  }
  ASSIGN_OR_RETURN(const bool is_test, call.Flag("is_test", call.opset() >= 7));
  if (training) return absl::UnimplementedError("found training_mode = 1, wanted inference");
  if (!is_test) return absl::UnimplementedError("found is_test = 0, wanted inference");
  if (!spatial) return absl::UnimplementedError("found spatial = 0, wanted statistics per channel");
  return call.Result("batch_norm", call.operands(), {{"eps", call.Float("epsilon", 1e-5f)}});
}

// A fully connected layer in the form that torch and Keras export becomes `linear`; any other a `gemm`.
absl::Status ConvertGemm(Call& call) {
  ASSIGN_OR_RETURN(const bool trans_a, call.Flag("transA", false));
  ASSIGN_OR_RETURN(const bool trans_b, call.Flag("transB", false));
  const double alpha = call.Float("alpha", 1), beta = call.Float("beta", 1);
  if (call.opset() < 11 && !call.has(2)) {
    return absl::InvalidArgumentError("found input 2 absent, wanted it before opset 11");
  }
  Value weight = call.operand(1), bias = call.operand(2);
  const bool plain = !trans_a && alpha == 1 && beta == 1 && call.rank(0) == 2 && call.rank(1) == 2 &&
                     call.type(0).dtype == DType::kF32;
  if (plain && (trans_b || weight.constant != nullptr)) {
    const int64_t features = weight.shape()[trans_b ? 0 : 1];
    const bool row =
        bias.constant != nullptr ? IsRow(bias.shape(), features) : !bias.present() || bias.shape() == Shape{features};
    if (row) {
      const std::string weight_name = weight.name, bias_name = bias.name;
      if (!trans_b) {
        const std::vector<int64_t> transposed = {1, 0};
        ASSIGN_OR_RETURN(weight, call.EmitHelper("weight", "permute", {weight}, {{"dims", transposed}}));
        weight.name = weight_name;
      }
      if (bias.present() && bias.type().rank() == 2) {
        ASSIGN_OR_RETURN(bias, call.EmitHelper("bias", "reshape", {bias}, {{"shape", std::vector<int64_t>{features}}}));
        bias.name = bias_name;
      }
      return call.Result("linear", {call.operand(0), weight, bias});
    }
  }
  return call.Result("gemm", call.operands(),
                     {{"alpha", alpha}, {"beta", beta}, {"trans_a", trans_a}, {"trans_b", trans_b}});
}

absl::Status ConvertDropout(Call& call) {
  if (call.opset() >= 12 && call.HasAttribute("ratio")) {
    return absl::InvalidArgumentError("found ratio as an attribute, wanted an input from opset 12 on");
  }
  double ratio = call.Float("ratio", 0.5);
  if (call.has(1)) {
    ASSIGN_OR_RETURN(ratio, call.ConstantScalar(1));
  }
  if (call.has(2)) {
    ASSIGN_OR_RETURN(const double training, call.ConstantScalar(2));
    if (training != 0 && ratio != 0) return absl::UnimplementedError("found training_mode = true, wanted inference");
  }
  if (call.wants(1)) {  // Everything passes.
    const TensorType type{call.opset() < 10 ? call.type(0).dtype : DType::kBool, call.shape(0), std::nullopt,
                          Layout::kRowMajor};
    RETURN_IF_ERROR(call.builder().budget().Charge(type.byte_size(), "its mask"));
    Tensor mask(type);
    for (int64_t i = 0; i < mask.num_elements(); ++i) mask.Set(i, 1);
    call.Set(1, Builder::Constant(call.name(), std::move(mask)));
  }
  return call.Result("dropout", {call.operand(0)}, {{"p", ratio}});
}

// Codes are cast as the integers that they are, whatever they stand for.
absl::Status CastTo(Call& call, DType dtype) {
  Value x = call.operand(0);
  if (x.type().quant) {
    ASSIGN_OR_RETURN(x, DequantizeBy(call, "codes", x, PerTensor(1)));
  }
  return call.Result("to", {x}, {{"dtype", dtype}});
}

absl::Status ConvertCast(Call& call) {
  if (!call.HasAttribute("to")) return absl::InvalidArgumentError("found no attribute 'to', wanted it");
  const int64_t to = call.Int("to", 0);
  absl::StatusOr<DType> dtype = ToDType(to < 0 || to > 255 ? -1 : static_cast<int>(to));
  if (!dtype.ok()) return Annotate(dtype.status(), "attribute 'to'");
  return CastTo(call, *dtype);
}

absl::Status ConvertCastLike(Call& call) { return CastTo(call, call.type(1).dtype); }

constexpr char kGemm[] = "alpha=FLOAT beta=FLOAT broadcast=INT transA=INT transB=INT";
constexpr char kBatchNormalization[] = "epsilon=FLOAT is_test=INT momentum=FLOAT spatial=INT training_mode=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"BatchNormalization", 6, {5, 5}, {1, 5}, kBatchNormalization, ConvertBatchNormalization},
      {"Cast", 6, {1, 1}, {1, 1}, "saturate=INT to=INT", ConvertCast},
      {"CastLike", 15, {2, 2}, {1, 1}, "saturate=INT", ConvertCastLike},
      {"Dropout", 7, {1, 3}, {1, 2}, "ratio=FLOAT seed=INT", ConvertDropout},
      {"Gemm", 6, {2, 3}, {1, 1}, kGemm, ConvertGemm},
      {"MatMul", 1, {2, 2}, {1, 1}, "", ConvertSame},
  });
}

}  // namespace fuselage::onnx::converters::math
