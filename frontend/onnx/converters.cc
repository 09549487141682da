#include "frontend/onnx/converters.h"

namespace fuselage::onnx {
namespace {

// Attributes of those that have many.
constexpr char kAveragePool[] =
    "auto_pad=STRING ceil_mode=INT count_include_pad=INT dilations=INTS kernel_shape=INTS pads=INTS "
    "strides=INTS";
constexpr char kConstant[] =
    "sparse_value=SPARSE_TENSOR value=TENSOR value_float=FLOAT value_floats=FLOATS value_int=INT "
    "value_ints=INTS value_string=STRING value_strings=STRINGS";
constexpr char kConv[] = "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS pads=INTS strides=INTS";
constexpr char kConvTranspose[] =
    "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS output_padding=INTS output_shape=INTS "
    "pads=INTS strides=INTS";
constexpr char kMaxPool[] =
    "auto_pad=STRING ceil_mode=INT dilations=INTS kernel_shape=INTS pads=INTS storage_order=INT "
    "strides=INTS";
constexpr char kQuantize[] = "axis=INT block_size=INT output_dtype=INT precision=INT saturate=INT";
constexpr char kBatchNormalization[] = "epsilon=FLOAT momentum=FLOAT spatial=INT training_mode=INT";

constexpr Converter kConverters[] = {
    {"Add", 7, {2, 2}, {1, 1}, "", ConvertBinary},
    {"AveragePool", 1, {1, 1}, {1, 1}, kAveragePool, ConvertAveragePool},
    {"BatchNormalization", 7, {5, 5}, {1, 5}, kBatchNormalization, ConvertBatchNormalization},
    {"Cast", 6, {1, 1}, {1, 1}, "saturate=INT to=INT", ConvertCast},
    {"Clip", 6, {1, 3}, {1, 1}, "max=FLOAT min=FLOAT", ConvertClip},
    {"Concat", 4, {1, kAnyNumber}, {1, 1}, "axis=INT", ConvertConcat},
    {"Constant", 1, {0, 0}, {1, 1}, kConstant, ConvertConstant},
    {"ConstantOfShape", 9, {1, 1}, {1, 1}, "value=TENSOR", ConvertConstantOfShape},
    {"Conv", 1, {2, 3}, {1, 1}, kConv, ConvertConv},
    {"ConvInteger", 10, {2, 4}, {1, 1}, kConv, ConvertConvInteger},
    {"ConvTranspose", 1, {2, 3}, {1, 1}, kConvTranspose, ConvertConvTranspose},
    {"DequantizeLinear", 10, {2, 3}, {1, 1}, "axis=INT block_size=INT output_dtype=INT", ConvertDequantizeLinear},
    {"Div", 7, {2, 2}, {1, 1}, "", ConvertBinary},
    {"Dropout", 7, {1, 3}, {1, 2}, "ratio=FLOAT seed=INT", ConvertDropout},
    {"DynamicQuantizeLinear", 11, {1, 1}, {3, 3}, "", ConvertDynamicQuantizeLinear},
    {"Flatten", 1, {1, 1}, {1, 1}, "axis=INT", ConvertFlatten},
    {"Gather", 1, {2, 2}, {1, 1}, "axis=INT", ConvertGather},
    {"Gemm", 7, {2, 3}, {1, 1}, "alpha=FLOAT beta=FLOAT transA=INT transB=INT", ConvertGemm},
    {"GlobalAveragePool", 1, {1, 1}, {1, 1}, "", ConvertUnary},
    {"HardSigmoid", 6, {1, 1}, {1, 1}, "alpha=FLOAT beta=FLOAT", ConvertHardSigmoid},
    {"HardSwish", 14, {1, 1}, {1, 1}, "", ConvertUnary},
    {"Identity", 1, {1, 1}, {1, 1}, "", ConvertUnary},
    {"LeakyRelu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertLeakyRelu},
    {"MatMul", 1, {2, 2}, {1, 1}, "", ConvertMatMul},
    {"MatMulInteger", 10, {2, 4}, {1, 1}, "", ConvertMatMulInteger},
    {"MaxPool", 1, {1, 1}, {1, 2}, kMaxPool, ConvertMaxPool},
    {"Mul", 7, {2, 2}, {1, 1}, "", ConvertBinary},
    {"Pad", 2, {1, 4}, {1, 1}, "mode=STRING pads=INTS value=FLOAT", ConvertPad},
    {"QLinearConv", 10, {8, 9}, {1, 1}, kConv, ConvertQLinearConv},
    {"QLinearMatMul", 10, {8, 8}, {1, 1}, "", ConvertQLinearMatMul},
    {"QuantizeLinear", 10, {2, 3}, {1, 1}, kQuantize, ConvertQuantizeLinear},
    {"ReduceMean", 1, {1, 2}, {1, 1}, "axes=INTS keepdims=INT noop_with_empty_axes=INT", ConvertReduceMean},
    {"Relu", 6, {1, 1}, {1, 1}, "", ConvertUnary},
    {"Reshape", 5, {2, 2}, {1, 1}, "allowzero=INT", ConvertReshape},
    {"Shape", 1, {1, 1}, {1, 1}, "end=INT start=INT", ConvertShape},
    {"Sigmoid", 6, {1, 1}, {1, 1}, "", ConvertUnary},
    {"Slice", 1, {1, 5}, {1, 1}, "axes=INTS ends=INTS starts=INTS", ConvertSlice},
    {"Softmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax},
    {"Split", 2, {1, 2}, {1, kAnyNumber}, "axis=INT num_outputs=INT split=INTS", ConvertSplit},
    {"Squeeze", 1, {1, 2}, {1, 1}, "axes=INTS", ConvertSqueeze},
    {"Sub", 7, {2, 2}, {1, 1}, "", ConvertBinary},
    {"Tanh", 6, {1, 1}, {1, 1}, "", ConvertUnary},
    {"Transpose", 1, {1, 1}, {1, 1}, "perm=INTS", ConvertTranspose},
    {"Unsqueeze", 1, {1, 2}, {1, 1}, "axes=INTS", ConvertUnsqueeze},
};

}  // namespace

bool IsDefaultDomain(absl::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

const Converter* FindConverterOrNull(absl::string_view domain, absl::string_view name) {
  absl::Span<const Converter> converters;
  if (IsDefaultDomain(domain)) converters = kConverters;
  if (domain == "com.microsoft") converters = MicrosoftConverters();
  for (const Converter& converter : converters) {
    if (converter.name == name) return &converter;
  }
  return nullptr;
}

}  // namespace fuselage::onnx
