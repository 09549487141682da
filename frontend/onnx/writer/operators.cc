#include "frontend/onnx/writer/operators.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/elementwise.h"
#include "frontend/onnx/writer/indexing.h"
#include "frontend/onnx/writer/products.h"
#include "frontend/onnx/writer/quantization.h"
#include "frontend/onnx/writer/reductions.h"
#include "frontend/onnx/writer/views.h"

namespace fuselage::onnx::writer {
namespace {

// `onnx`: the operator; where there is none to write, why.
struct Row {
  const char* op;  // Without "1d", "2d", "3d", where it comes in several ranks.
  absl::Status (*write)(const Call&);
  const char* onnx;
};
constexpr Row kRows[] = {
    {"abs", WriteSame, "Abs"},
    {"acos", WriteSame, "Acos"},
    {"acosh", WriteSame, "Acosh"},
    {"adaptive_avg_pool", WriteAdaptivePool, "AveragePool"},
    {"add", WriteAdd, "Add"},
    {"addmm", WriteAddmm, "Gemm"},
    {"amax", WriteReduce, "ReduceMax"},
    {"amin", WriteReduce, "ReduceMin"},
    {"argmax", WriteArgMax, "ArgMax"},
    {"argmin", WriteArgMax, "ArgMin"},
    {"asin", WriteSame, "Asin"},
    {"asinh", WriteSame, "Asinh"},
    {"atan", WriteSame, "Atan"},
    {"atanh", WriteSame, "Atanh"},
    {"avg_pool", WritePool, "AveragePool"},
    {"batch_norm", WriteBatchNorm, "BatchNormalization"},
    {"bitwise_and", WriteSameOf18, "BitwiseAnd"},
    {"bitwise_left_shift", WriteShift, "BitShift"},
    {"bitwise_not", WriteSameOf18, "BitwiseNot"},
    {"bitwise_or", WriteSameOf18, "BitwiseOr"},
    {"bitwise_right_shift", WriteShift, "BitShift"},
    {"bitwise_xor", WriteSameOf18, "BitwiseXor"},
    {"cat", WriteCat, "Concat"},
    {"ceil", WriteSame, "Ceil"},
    {"celu", WriteElu, "Celu"},
    {"clamp", WriteClamp, "Clip"},
    {"conv", WriteConv, "Conv"},
    {"conv_integer", WriteConvInteger, "ConvInteger"},
    {"conv_transpose", WriteConvTranspose, "ConvTranspose"},
    {"cos", WriteSame, "Cos"},
    {"cosh", WriteSame, "Cosh"},
    {"cumsum", WriteCumSum, "CumSum"},
    {"dequantize", WriteQuantization, "DequantizeLinear"},
    {"dequantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
    {"div", WriteSame, "Div"},
    {"dropout", WriteDropout, "Identity"},
    {"dynamic_quantize_asymmetric", WriteDynamicQuantize, "DynamicQuantizeLinear"},
    {"dynamic_quantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
    {"dynamic_quantize_symmetric", nullptr, "ONNX's dynamic quantization has a zero point"},
    {"elu", WriteElu, "Elu"},
    {"eq", WriteSame, "Equal"},
    {"erf", WriteSame, "Erf"},
    {"exp", WriteSame, "Exp"},
    {"expand", WriteExpand, "Expand"},
    {"flatten", WriteFlatten, "Flatten"},
    {"floor", WriteSame, "Floor"},
    {"fmod", WriteMod, "Mod"},
    {"gather", WriteAlongDim, "GatherElements"},
    {"gather_nd", WriteGatherNd, "GatherND"},
    {"ge", WriteSame, "GreaterOrEqual"},
    {"gelu", WriteGelu, "Gelu"},
    {"gemm", WriteGemm, "Gemm"},
    {"getitem", WriteGetItem, "Identity"},
    {"global_avg_pool", WriteSame, "GlobalAveragePool"},
    {"grid_sample", WriteGridSample, "GridSample"},
    {"group_norm", WriteChannelNorm, "GroupNormalization"},
    {"gt", WriteSame, "Greater"},
    {"hardmax", WriteSoftmax, "Hardmax"},
    {"gru", WriteRecurrent, "GRU"},
    {"hardsigmoid", WriteHardSigmoid, "HardSigmoid"},
    {"hardswish", WriteHardSwish, "HardSigmoid"},
    {"identity", WriteSame, "Identity"},
    {"index_select", WriteAlongDim, "Gather"},
    {"instance_norm", WriteChannelNorm, "InstanceNormalization"},
    {"isinf", WriteIsInf, "IsInf"},
    {"isnan", WriteSame, "IsNaN"},
    {"layer_norm", WriteTrailingNorm, "LayerNormalization"},
    {"le", WriteSame, "LessOrEqual"},
    {"leaky_relu", WriteLeakyRelu, "LeakyRelu"},
    {"linear", WriteLinear, "Gemm"},
    {"log", WriteSame, "Log"},
    {"log_softmax", WriteSoftmax, "LogSoftmax"},
    {"logical_and", WriteSame, "And"},
    {"logical_not", WriteSame, "Not"},
    {"logical_or", WriteSame, "Or"},
    {"logical_xor", WriteSame, "Xor"},
    {"logsumexp", WriteReduce, "ReduceLogSumExp"},
    {"lt", WriteSame, "Less"},
    {"lstm", WriteRecurrent, "LSTM"},
    {"matmul", WriteSame, "MatMul"},
    {"matmul_integer", WriteMatmulInteger, "MatMulInteger"},
    {"max_pool", WritePool, "MaxPool"},
    {"max_pool1d_with_indices", WriteMaxPoolWithIndices, "MaxPool"},
    {"max_pool2d_with_indices", WriteMaxPoolWithIndices, "MaxPool"},
    {"max_pool3d_with_indices", WriteMaxPoolWithIndices, "MaxPool"},
    {"maximum", WriteSame, "Max"},
    {"mean", WriteReduce, "ReduceMean"},
    {"minimum", WriteSame, "Min"},
    {"mish", WriteSameOf18, "Mish"},
    {"mul", WriteSame, "Mul"},
    {"ne", WriteNe, "Equal"},
    {"neg", WriteSame, "Neg"},
    {"one_hot", WriteOneHot, "OneHot"},
    {"pad", WritePad, "Pad"},
    {"permute", WritePermute, "Transpose"},
    {"pow", WriteSame, "Pow"},
    {"prelu", WriteSame, "PRelu"},
    {"prod", WriteReduce, "ReduceProd"},
    {"quantize", WriteQuantization, "QuantizeLinear"},
    {"reciprocal", WriteSame, "Reciprocal"},
    {"relu", WriteRelu, "Relu"},
    {"relu6", WriteRelu6, "Clip"},
    {"remainder", WriteMod, "Mod"},
    {"reshape", WriteReshape, "Reshape"},
    {"resize", WriteResize, "Resize"},
    {"reverse_sequence", WriteReverseSequence, "ReverseSequence"},
    {"rms_norm", WriteTrailingNorm, "RMSNormalization"},
    {"roi_align", WriteRoiAlign, "RoiAlign"},
    {"round", WriteSame, "Round"},
    {"scatter", WriteScatter, "ScatterElements"},
    {"scatter_nd", WriteScatter, "ScatterND"},
    {"scaled_dot_product_attention", WriteAttention, "Attention"},
    {"selu", WriteElu, "Selu"},
    {"rnn", WriteRecurrent, "RNN"},
    {"sigmoid", WriteSame, "Sigmoid"},
    {"sign", WriteSame, "Sign"},
    {"silu", WriteSilu, "Sigmoid"},
    {"sin", WriteSame, "Sin"},
    {"sinh", WriteSame, "Sinh"},
    {"slice", WriteSlice, "Slice"},
    {"softmax", WriteSoftmax, "Softmax"},
    {"softplus", WriteSame, "Softplus"},
    {"softsign", WriteSame, "Softsign"},
    {"split", WriteSplit, "Split"},
    {"sqrt", WriteSame, "Sqrt"},
    {"squeeze", WriteSqueeze, "Squeeze"},
    {"sub", WriteSame, "Sub"},
    {"sum", WriteReduce, "ReduceSum"},
    {"tan", WriteSame, "Tan"},
    {"tanh", WriteSame, "Tanh"},
    {"threshold", WriteThreshold, "ThresholdedRelu"},
    {"to", WriteTo, "Cast"},
    {"topk", WriteTopk, "TopK"},
    {"transpose", WriteTranspose, "Transpose"},
    {"tril", WriteTriangle, "Trilu"},
    {"triu", WriteTriangle, "Trilu"},
    {"unsqueeze", WriteUnsqueeze, "Unsqueeze"},
    {"where", WriteSame, "Where"},
};

constexpr Row kLowered = {"int8.", nullptr, "a lowered graph is written before it is lowered"};
// The steps are written, each by its own row (see Writer).
constexpr Row kFused = {"fused_elementwise", nullptr, ""};

const Row* FindRowOrNull(absl::string_view op) {
  if (op.substr(0, 5) == kLowered.op) return &kLowered;
  if (op == kFused.op) return &kFused;
  const auto find = [](absl::string_view name) {
    const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == name; });
    return row == std::end(kRows) ? nullptr : row;
  };
  const Row* row = find(op);
  if (row != nullptr || op.size() < 3) return row;
  const absl::string_view rank = op.substr(op.size() - 2);
  return rank == "1d" || rank == "2d" || rank == "3d" ? find(op.substr(0, op.size() - 2)) : nullptr;
}

}  // namespace

ModelBuilder& Emitter::Emit(const std::string& op, Values in, Values results) {
  while (!in.empty() && in.back().empty()) in.pop_back();
  const std::string name = results[0];
  return model_.Node(op, std::move(in), std::move(results), name);
}

std::string Call::Suffixed(absl::string_view suffix) const { return absl::StrCat(name, ":", suffix); }
std::string Call::Element(int64_t i) const { return absl::StrCat(name, ":", i); }

std::string Call::Constant(absl::string_view suffix, const Tensor& tensor) const {
  to.model().Initializer(Suffixed(suffix), tensor);
  return Suffixed(suffix);
}
std::string Call::Ints(absl::string_view suffix, const std::vector<int64_t>& values) const {
  return Constant(suffix, Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
std::string Call::Number(absl::string_view suffix, double value, DType dtype) const {
  Tensor number(dtype, {});
  number.Set(0, value);
  return Constant(suffix, number);
}

absl::Status Call::Declined(absl::string_view why) const {
  return absl::UnimplementedError(absl::StrCat(op.schema().name, why, " has no operator in ONNX"));
}

absl::Status WriteOperator(const ir::OpCall& op, Values in, std::vector<const ir::Type*> types, const ir::Type& result,
                           const std::string& name, Emitter& to) {
  const Row* row = FindRowOrNull(op.schema().name);
  if (row == nullptr) return absl::UnimplementedError(absl::StrCat(op.schema().name, " has no operator in ONNX"));
  if (row->write == nullptr) {
    return absl::UnimplementedError(absl::StrCat(op.schema().name, " has no operator in ONNX: ", row->onnx));
  }
  return row->write({op, row->onnx, name, std::move(in), std::move(types), result, to});
}

const char* WhyNotOrNull(absl::string_view op) {
  const Row* row = FindRowOrNull(op);
  return row == nullptr ? nullptr : row->write == nullptr ? row->onnx : "";
}

}  // namespace fuselage::onnx::writer
