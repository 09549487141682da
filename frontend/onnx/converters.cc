#include "frontend/onnx/converters.h"

namespace fuselage::onnx {
namespace {

// Attributes of those that have many.
constexpr char kAttention[] =
    "is_causal=INT kv_num_heads=INT q_num_heads=INT qk_matmul_output_mode=INT scale=FLOAT softcap=FLOAT "
    "softmax_precision=INT";
constexpr char kAveragePool[] =
    "auto_pad=STRING ceil_mode=INT count_include_pad=INT dilations=INTS kernel_shape=INTS pads=INTS "
    "strides=INTS";
constexpr char kBroadcast[] = "axis=INT broadcast=INT";
constexpr char kConstant[] =
    "sparse_value=SPARSE_TENSOR value=TENSOR value_float=FLOAT value_floats=FLOATS value_int=INT "
    "value_ints=INTS value_string=STRING value_strings=STRINGS";
constexpr char kConv[] = "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS pads=INTS strides=INTS";
constexpr char kConvTranspose[] =
    "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS output_padding=INTS output_shape=INTS "
    "pads=INTS strides=INTS";
constexpr char kGemm[] = "alpha=FLOAT beta=FLOAT broadcast=INT transA=INT transB=INT";
constexpr char kMaxPool[] =
    "auto_pad=STRING ceil_mode=INT dilations=INTS kernel_shape=INTS pads=INTS storage_order=INT "
    "strides=INTS";
constexpr char kArgMax[] = "axis=INT keepdims=INT select_last_index=INT";
constexpr char kLayerNormalization[] = "axis=INT epsilon=FLOAT stash_type=INT";
constexpr char kLoss[] = "ignore_index=INT reduction=STRING";
constexpr char kLpPool[] =
    "auto_pad=STRING ceil_mode=INT dilations=INTS kernel_shape=INTS p=INT pads=INTS strides=INTS";
constexpr char kReduce[] = "axes=INTS keepdims=INT noop_with_empty_axes=INT";
constexpr char kQuantize[] = "axis=INT block_size=INT output_dtype=INT precision=INT saturate=INT";
constexpr char kGru[] =
    "activation_alpha=FLOATS activation_beta=FLOATS activations=STRINGS clip=FLOAT direction=STRING hidden_size=INT "
    "layout=INT linear_before_reset=INT";
constexpr char kLstm[] =
    "activation_alpha=FLOATS activation_beta=FLOATS activations=STRINGS clip=FLOAT direction=STRING hidden_size=INT "
    "input_forget=INT layout=INT";
constexpr char kRnn[] =
    "activation_alpha=FLOATS activation_beta=FLOATS activations=STRINGS clip=FLOAT direction=STRING hidden_size=INT "
    "layout=INT";
constexpr char kResize[] =
    "antialias=INT axes=INTS coordinate_transformation_mode=STRING cubic_coeff_a=FLOAT exclude_outside=INT "
    "extrapolation_value=FLOAT keep_aspect_ratio_policy=STRING mode=STRING nearest_mode=STRING";
constexpr char kRoiAlign[] =
    "coordinate_transformation_mode=STRING mode=STRING output_height=INT output_width=INT sampling_ratio=INT "
    "spatial_scale=FLOAT";
constexpr char kScan[] =
    "body=GRAPH num_scan_inputs=INT scan_input_axes=INTS scan_input_directions=INTS scan_output_axes=INTS "
    "scan_output_directions=INTS";
constexpr char kWindow[] = "output_datatype=INT periodic=INT";
constexpr char kBatchNormalization[] = "epsilon=FLOAT is_test=INT momentum=FLOAT spatial=INT training_mode=INT";

constexpr Converter kConverters[] = {
    {"Abs", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Acos", 7, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Acosh", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Add", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"AffineGrid", 20, {2, 2}, {1, 1}, "align_corners=INT", ConvertAffineGrid},
    {"And", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"ArgMax", 1, {1, 1}, {1, 1}, kArgMax, ConvertArgMax},
    {"ArgMin", 1, {1, 1}, {1, 1}, kArgMax, ConvertArgMax},
    {"Asin", 7, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Asinh", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Atan", 7, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Atanh", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Attention", 23, {3, 7}, {1, 4}, kAttention, ConvertAttention},
    {"AveragePool", 1, {1, 1}, {1, 1}, kAveragePool, ConvertAveragePool},
    {"BatchNormalization", 6, {5, 5}, {1, 5}, kBatchNormalization, ConvertBatchNormalization},
    {"BitShift", 11, {2, 2}, {1, 1}, "direction=STRING", ConvertBitShift},
    {"BitwiseAnd", 18, {2, 2}, {1, 1}, "", ConvertElementwise},
    {"BitwiseNot", 18, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"BitwiseOr", 18, {2, 2}, {1, 1}, "", ConvertElementwise},
    {"BitwiseXor", 18, {2, 2}, {1, 1}, "", ConvertElementwise},
    {"BlackmanWindow", 17, {1, 1}, {1, 1}, kWindow, ConvertWindow},
    {"Cast", 6, {1, 1}, {1, 1}, "saturate=INT to=INT", ConvertCast},
    {"CastLike", 15, {2, 2}, {1, 1}, "saturate=INT", ConvertCastLike},
    {"Ceil", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Celu", 12, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertElu},
    {"CenterCropPad", 18, {2, 2}, {1, 1}, "axes=INTS", ConvertCenterCropPad},
    {"Clip", 6, {1, 3}, {1, 1}, "max=FLOAT min=FLOAT", ConvertClip},
    {"Col2Im", 18, {3, 3}, {1, 1}, "dilations=INTS pads=INTS strides=INTS", ConvertCol2Im},
    {"Compress", 9, {2, 2}, {1, 1}, "axis=INT", ConvertCompress},
    {"Concat", 4, {1, kAnyNumber}, {1, 1}, "axis=INT", ConvertConcat},
    {"Constant", 1, {0, 0}, {1, 1}, kConstant, ConvertConstant},
    {"ConstantOfShape", 9, {1, 1}, {1, 1}, "value=TENSOR", ConvertConstantOfShape},
    {"Conv", 1, {2, 3}, {1, 1}, kConv, ConvertConv},
    {"ConvInteger", 10, {2, 4}, {1, 1}, kConv, ConvertConvInteger},
    {"ConvTranspose", 1, {2, 3}, {1, 1}, kConvTranspose, ConvertConvTranspose},
    {"Cos", 7, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Cosh", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"CumSum", 11, {2, 2}, {1, 1}, "exclusive=INT reverse=INT", ConvertCumSum},
    {"DepthToSpace", 1, {1, 1}, {1, 1}, "blocksize=INT mode=STRING", ConvertDepthToSpace},
    {"DequantizeLinear", 10, {2, 3}, {1, 1}, "axis=INT block_size=INT output_dtype=INT", ConvertDequantizeLinear},
    {"DFT", 17, {1, 3}, {1, 1}, "axis=INT inverse=INT onesided=INT", ConvertDft},
    {"Div", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"Dropout", 7, {1, 3}, {1, 2}, "ratio=FLOAT seed=INT", ConvertDropout},
    {"DynamicQuantizeLinear", 11, {1, 1}, {3, 3}, "", ConvertDynamicQuantizeLinear},
    {"Einsum", 12, {1, kAnyNumber}, {1, 1}, "equation=STRING", ConvertEinsum},
    {"Elu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertElu},
    {"Equal", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"Erf", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Exp", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Expand", 8, {2, 2}, {1, 1}, "", ConvertExpand},
    {"EyeLike", 9, {1, 1}, {1, 1}, "dtype=INT k=INT", ConvertEyeLike},
    {"Flatten", 1, {1, 1}, {1, 1}, "axis=INT", ConvertFlatten},
    {"Floor", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"GatherElements", 11, {2, 2}, {1, 1}, "axis=INT", ConvertGatherElements},
    {"GatherND", 11, {2, 2}, {1, 1}, "batch_dims=INT", ConvertGatherNd},
    {"GridSample", 16, {2, 2}, {1, 1}, "align_corners=INT mode=STRING padding_mode=STRING", ConvertGridSample},
    {"GRU", 7, {3, 6}, {0, 2}, kGru, ConvertRecurrent},
    {"Gather", 1, {2, 2}, {1, 1}, "axis=INT", ConvertGather},
    {"Gelu", 20, {1, 1}, {1, 1}, "approximate=STRING", ConvertGelu},
    {"Gemm", 6, {2, 3}, {1, 1}, kGemm, ConvertGemm},
    {"GlobalAveragePool", 1, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"GlobalLpPool", 2, {1, 1}, {1, 1}, "p=INT", ConvertGlobalLpPool},
    {"GlobalMaxPool", 1, {1, 1}, {1, 1}, "", ConvertGlobalMaxPool},
    {"Greater", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"GreaterOrEqual", 12, {2, 2}, {1, 1}, "", ConvertElementwise},
    {"GroupNormalization",
     18,
     {3, 3},
     {1, 1},
     "epsilon=FLOAT num_groups=INT stash_type=INT",
     ConvertGroupNormalization},
    {"HammingWindow", 17, {1, 1}, {1, 1}, kWindow, ConvertWindow},
    {"HannWindow", 17, {1, 1}, {1, 1}, kWindow, ConvertWindow},
    {"Hardmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax},
    {"HardSigmoid", 6, {1, 1}, {1, 1}, "alpha=FLOAT beta=FLOAT", ConvertHardSigmoid},
    {"HardSwish", 14, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Identity", 1, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"If", 1, {1, 1}, {1, kAnyNumber}, "else_branch=GRAPH then_branch=GRAPH", ConvertIf},
    {"InstanceNormalization", 6, {3, 3}, {1, 1}, "epsilon=FLOAT", ConvertInstanceNormalization},
    {"IsInf", 10, {1, 1}, {1, 1}, "detect_negative=INT detect_positive=INT", ConvertIsInf},
    {"IsNaN", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"LayerNormalization", 17, {2, 3}, {1, 3}, kLayerNormalization, ConvertLayerNormalization},
    {"Loop", 1, {0, kAnyNumber}, {1, kAnyNumber}, "body=GRAPH", ConvertLoop},
    {"LSTM", 7, {3, 8}, {0, 3}, kLstm, ConvertRecurrent},
    {"LeakyRelu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertLeakyRelu},
    {"Less", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"LessOrEqual", 12, {2, 2}, {1, 1}, "", ConvertElementwise},
    {"Log", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"LogSoftmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax},
    {"LpNormalization", 1, {1, 1}, {1, 1}, "axis=INT p=INT", ConvertLpNormalization},
    {"LpPool", 2, {1, 1}, {1, 1}, kLpPool, ConvertLpPool},
    {"LRN", 1, {1, 1}, {1, 1}, "alpha=FLOAT beta=FLOAT bias=FLOAT size=INT", ConvertLrn},
    {"MatMul", 1, {2, 2}, {1, 1}, "", ConvertMatMul},
    {"MatMulInteger", 10, {2, 4}, {1, 1}, "", ConvertMatMulInteger},
    {"Max", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary},
    {"MaxPool", 1, {1, 1}, {1, 2}, kMaxPool, ConvertMaxPool},
    {"MaxUnpool", 9, {2, 3}, {1, 1}, "kernel_shape=INTS pads=INTS strides=INTS", ConvertMaxUnpool},
    {"Mean", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary},
    {"MeanVarianceNormalization", 9, {1, 1}, {1, 1}, "axes=INTS", ConvertMeanVarianceNormalization},
    {"MelWeightMatrix", 17, {5, 5}, {1, 1}, "output_datatype=INT", ConvertMelWeightMatrix},
    {"Min", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary},
    {"Mish", 18, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Mod", 10, {2, 2}, {1, 1}, "fmod=INT", ConvertMod},
    {"Mul", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"Neg", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"NegativeLogLikelihoodLoss", 12, {2, 3}, {1, 1}, kLoss, ConvertNegativeLogLikelihoodLoss},
    {"NonMaxSuppression", 10, {2, 5}, {1, 1}, "center_point_box=INT", ConvertDataDependent},
    {"NonZero", 9, {1, 1}, {1, 1}, "", ConvertNonZero},
    {"Not", 1, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"OneHot", 9, {3, 3}, {1, 1}, "axis=INT", ConvertOneHot},
    {"Or", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"Pad", 2, {1, 4}, {1, 1}, "mode=STRING pads=INTS value=FLOAT", ConvertPad},
    {"Pow", 1, {2, 2}, {1, 1}, kBroadcast, ConvertPow},
    {"PRelu", 6, {2, 2}, {1, 1}, "", ConvertPRelu},
    {"QLinearConv", 10, {8, 9}, {1, 1}, kConv, ConvertQLinearConv},
    {"QLinearMatMul", 10, {8, 8}, {1, 1}, "", ConvertQLinearMatMul},
    {"QuantizeLinear", 10, {2, 3}, {1, 1}, kQuantize, ConvertQuantizeLinear},
    {"Range", 11, {3, 3}, {1, 1}, "", ConvertRange},
    {"Reciprocal", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"ReduceL1", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceL2", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceLogSum", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceLogSumExp", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceMax", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceMean", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceMin", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceProd", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceSum", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"ReduceSumSquare", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
    {"Relu", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Resize", 10, {1, 4}, {1, 1}, kResize, ConvertResize},
    {"ReverseSequence", 10, {2, 2}, {1, 1}, "batch_axis=INT time_axis=INT", ConvertReverseSequence},
    {"RNN", 7, {3, 6}, {0, 2}, kRnn, ConvertRecurrent},
    {"Reshape", 5, {2, 2}, {1, 1}, "allowzero=INT", ConvertReshape},
    {"RMSNormalization", 23, {2, 2}, {1, 1}, kLayerNormalization, ConvertLayerNormalization},
    {"RoiAlign", 10, {3, 3}, {1, 1}, kRoiAlign, ConvertRoiAlign},
    {"RotaryEmbedding",
     23,
     {3, 4},
     {1, 1},
     "interleaved=INT num_heads=INT rotary_embedding_dim=INT",
     ConvertRotaryEmbedding},
    {"Round", 11, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Scan", 9, {1, kAnyNumber}, {1, kAnyNumber}, kScan, ConvertScan},
    {"Scatter", 9, {3, 3}, {1, 1}, "axis=INT", ConvertScatterElements},
    {"ScatterElements", 11, {3, 3}, {1, 1}, "axis=INT reduction=STRING", ConvertScatterElements},
    {"ScatterND", 11, {3, 3}, {1, 1}, "reduction=STRING", ConvertScatterNd},
    {"Selu", 6, {1, 1}, {1, 1}, "alpha=FLOAT gamma=FLOAT", ConvertSelu},
    {"Shape", 1, {1, 1}, {1, 1}, "end=INT start=INT", ConvertShape},
    {"Shrink", 9, {1, 1}, {1, 1}, "bias=FLOAT lambd=FLOAT", ConvertShrink},
    {"Sigmoid", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Sign", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Sin", 7, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Sinh", 9, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Size", 1, {1, 1}, {1, 1}, "", ConvertSize},
    {"Slice", 1, {1, 5}, {1, 1}, "axes=INTS ends=INTS starts=INTS", ConvertSlice},
    {"Softmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax},
    {"SoftmaxCrossEntropyLoss", 12, {2, 3}, {1, 2}, kLoss, ConvertSoftmaxCrossEntropyLoss},
    {"Softplus", 1, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Softsign", 1, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"SpaceToDepth", 1, {1, 1}, {1, 1}, "blocksize=INT", ConvertSpaceToDepth},
    {"Split", 2, {1, 2}, {1, kAnyNumber}, "axis=INT num_outputs=INT split=INTS", ConvertSplit},
    {"Sqrt", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Squeeze", 1, {1, 2}, {1, 1}, "axes=INTS", ConvertSqueeze},
    {"STFT", 17, {2, 4}, {1, 1}, "onesided=INT", ConvertStft},
    {"Sub", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
    {"Sum", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary},
    {"Swish", 24, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertSwish},
    {"Tan", 7, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"Tanh", 6, {1, 1}, {1, 1}, "", ConvertElementwise},
    {"ThresholdedRelu", 10, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertThresholdedRelu},
    {"Tile", 6, {2, 2}, {1, 1}, "", ConvertTile},
    {"TopK", 1, {1, 2}, {2, 2}, "axis=INT k=INT largest=INT sorted=INT", ConvertTopK},
    {"Transpose", 1, {1, 1}, {1, 1}, "perm=INTS", ConvertTranspose},
    {"Trilu", 14, {1, 2}, {1, 1}, "upper=INT", ConvertTrilu},
    {"Unique", 11, {1, 1}, {1, 4}, "axis=INT sorted=INT", ConvertDataDependent},
    {"Unsqueeze", 1, {1, 2}, {1, 1}, "axes=INTS", ConvertUnsqueeze},
    {"Upsample", 7, {1, 2}, {1, 1}, "mode=STRING scales=FLOATS", ConvertUpsample},
    {"Where", 9, {3, 3}, {1, 1}, "", ConvertElementwise},
    {"Xor", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
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
