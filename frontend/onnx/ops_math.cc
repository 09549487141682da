#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

// [n] or [1, n] of constants: what a linear's bias can be.
bool IsRow(const Shape& shape, int64_t n) { return shape == Shape{n} || (shape == Shape{1, n}); }

}  // namespace

absl::Status ConvertUnary(Call& call) {
  if (call.operator_name() == "Identity" && call.operand(0).constant != nullptr) {
    call.Set(0, call.operand(0));  // Tied weights stay one parameter.
    return absl::OkStatus();
  }
  const std::string target =
      call.operator_name() == "GlobalAveragePool" ? "global_avg_pool" : absl::AsciiStrToLower(call.operator_name());
  return call.Result(target, call.operands());
}

absl::Status ConvertBinary(Call& call) {
  return call.Result(absl::AsciiStrToLower(call.operator_name()), call.operands());
}

absl::Status ConvertBatchNormalization(Call& call) {
  ASSIGN_OR_RETURN(const bool training, call.Flag("training_mode", false));
  ASSIGN_OR_RETURN(const bool spatial, call.Flag("spatial", true));
  if (call.opset() < 14 && call.num_named_outputs() > 1) {
    return absl::UnimplementedError(
        absl::StrCat("found ", call.num_named_outputs(), " outputs, which before opset 14 says training, wanted one"));
  }
  if (training) return absl::UnimplementedError("found training_mode = 1, wanted inference");
  if (!spatial) return absl::UnimplementedError("found spatial = 0, wanted statistics per channel");
  return call.Result("batch_norm", call.operands(), {{"eps", call.Float("epsilon", 1e-5f)}});
}

// Bounds are attributes before opset 11, inputs from then on.
absl::Status ConvertClip(Call& call) {
  double min = -std::numeric_limits<double>::infinity(), max = -min;
  if (call.opset() < 11) {
    if (call.num_operands() > 1) return absl::InvalidArgumentError("found bounds as inputs, wanted attributes");
    min = call.Float("min", min);
    max = call.Float("max", max);
  } else {
    if (call.HasAttribute("min") || call.HasAttribute("max")) {
      return absl::InvalidArgumentError("found bounds as attributes, wanted inputs from opset 11 on");
    }
    if (call.has(1)) {
      ASSIGN_OR_RETURN(min, call.ConstantScalar(1));
    }
    if (call.has(2)) {
      ASSIGN_OR_RETURN(max, call.ConstantScalar(2));
    }
  }
  return call.Result("clamp", {call.operand(0)}, {{"min", min}, {"max", max}});
}

absl::Status ConvertLeakyRelu(Call& call) {
  return call.Result("leaky_relu", call.operands(), {{"negative_slope", call.Float("alpha", 0.01f)}});
}

absl::Status ConvertHardSigmoid(Call& call) {
  return call.Result("hardsigmoid", call.operands(),
                     {{"alpha", call.Float("alpha", 0.2f)}, {"beta", call.Float("beta", 0.5f)}});
}

// Axes are an attribute before opset 18, an input from then on.
absl::Status ConvertReduceMean(Call& call) {
  std::vector<int64_t> axes = call.Ints("axes");
  if (call.opset() >= 18) {
    if (call.HasAttribute("axes")) {
      return absl::InvalidArgumentError("found axes as an attribute, wanted an input from opset 18 on");
    }
    if (call.has(1)) {
      ASSIGN_OR_RETURN(axes, call.ConstantInts(1));
    }
  } else if (call.num_operands() > 1) {
    return absl::InvalidArgumentError("found axes as an input, wanted an attribute before opset 18");
  }
  ASSIGN_OR_RETURN(const bool keepdims, call.Flag("keepdims", true));
  ASSIGN_OR_RETURN(const bool noop, call.Flag("noop_with_empty_axes", false));
  if (axes.empty() && noop) return call.Result("identity", {call.operand(0)});
  if (axes.empty()) {
    axes.resize(call.rank(0));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return call.Result("mean", {call.operand(0)}, {{"dims", axes}, {"keepdim", keepdims}});
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

absl::Status ConvertMatMul(Call& call) { return call.Result("matmul", call.operands()); }

// Before opset 13 a softmax is over all dimensions from `axis` on: reshape to two dimensions, and back.
absl::Status ConvertSoftmax(Call& call) {
  const int rank = call.rank(0);
  const int64_t stated = call.Int("axis", call.opset() < 13 ? 1 : -1);
  if (call.opset() < 13 && stated == rank) {
    return absl::UnimplementedError(absl::StrCat("found axis ", stated, ", wanted one below the rank ", rank));
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(stated, rank));
  if (call.opset() >= 13 || axis == rank - 1) return call.Result("softmax", call.operands(), {{"dim", axis}});
  Shape shape = call.shape(0);
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= shape[i];
  if (rows * columns > 0) shape[0] = (axis == 0 ? columns : rows) = -1;  // Inferred: there the batch is.
  ASSIGN_OR_RETURN(const Value flat,
                   call.EmitHelper("flat", "reshape", call.operands(),
                                   {{"shape", std::vector<int64_t>{rows, columns}}, {"allow_zero", true}}));
  ASSIGN_OR_RETURN(const Value soft, call.EmitHelper("softmax", "softmax", {flat}, {{"dim", 1}}));
  return call.Result("reshape", {soft}, {{"shape", shape}, {"allow_zero", true}});
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
    if (training != 0) return absl::UnimplementedError("found training_mode = true, wanted inference");
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

absl::Status ConvertCast(Call& call) {
  if (!call.HasAttribute("to")) return absl::InvalidArgumentError("found no attribute 'to', wanted it");
  const int64_t to = call.Int("to", 0);
  absl::StatusOr<DType> dtype = ToDType(to < 0 || to > 255 ? -1 : static_cast<int>(to));
  if (!dtype.ok()) return Annotate(dtype.status(), "attribute 'to'");
  return call.Result("to", call.operands(), {{"dtype", *dtype}});
}

}  // namespace fuselage::onnx
