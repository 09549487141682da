// The operators that can be imported: one table, keyed by operator.
#ifndef FUSELAGE_FRONTEND_ONNX_CONVERTERS_H_
#define FUSELAGE_FRONTEND_ONNX_CONVERTERS_H_

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "frontend/onnx/call.h"

namespace fuselage::onnx {

inline constexpr int kOldestOpset = 7;
inline constexpr int kNewestOpset = 25;
inline constexpr int kAnyNumber = std::numeric_limits<int>::max();

struct Arity {
  int least, most;
};

// How a node of one operator becomes calls. A model of an opset before kOldestOpset loads where none of its operators
// has changed its meaning between that opset and kOldestOpset.
struct Converter {
  absl::string_view name;
  int since;  // The oldest opset whose form of the operator is understood.
  Arity inputs, outputs;
  absl::string_view attributes;  // All that any opset has: "axis=INT perm=INTS".
  absl::Status (*convert)(Call& call);
};

// "" and "ai.onnx" are one domain.
bool IsDefaultDomain(absl::string_view domain);
const Converter* FindConverterOrNull(absl::string_view domain, absl::string_view name);

// The operators of the domain com.microsoft, which have no opsets.
absl::Span<const Converter> MicrosoftConverters();

// ops_attention.cc
absl::Status ConvertAttention(Call& call);
absl::Status ConvertRotaryEmbedding(Call& call);

// ops_conv.cc
absl::Status ConvertConv(Call& call);
absl::Status ConvertConvInteger(Call& call);
absl::Status ConvertQLinearConv(Call& call);
absl::Status ConvertConvTranspose(Call& call);

// ops_einsum.cc
absl::Status ConvertEinsum(Call& call);

// ops_elementwise.cc
absl::Status ConvertElementwise(Call& call);  // The operands in their order, no attributes: Relu, Add, Identity, ...
absl::Status ConvertBinary(Call& call);       // Those that broadcast by attributes before opset 7: Add, Less, ...
absl::Status ConvertNary(Call& call);         // Max, Mean, Min, Sum
absl::Status ConvertBitShift(Call& call);
absl::Status ConvertClip(Call& call);
absl::Status ConvertElu(Call& call);  // Celu, Elu
absl::Status ConvertGelu(Call& call);
absl::Status ConvertHardSigmoid(Call& call);
absl::Status ConvertIsInf(Call& call);
absl::Status ConvertLeakyRelu(Call& call);
absl::Status ConvertMod(Call& call);
absl::Status ConvertPow(Call& call);
absl::Status ConvertPRelu(Call& call);
absl::Status ConvertSelu(Call& call);
absl::Status ConvertShrink(Call& call);
absl::Status ConvertSwish(Call& call);
absl::Status ConvertThresholdedRelu(Call& call);

// ops_loss.cc
absl::Status ConvertNegativeLogLikelihoodLoss(Call& call);
absl::Status ConvertSoftmaxCrossEntropyLoss(Call& call);

// ops_math.cc
absl::Status ConvertBatchNormalization(Call& call);
absl::Status ConvertGemm(Call& call);
absl::Status ConvertMatMul(Call& call);
absl::Status ConvertDropout(Call& call);
absl::Status ConvertCast(Call& call);
absl::Status ConvertCastLike(Call& call);

// ops_norm.cc
absl::Status ConvertGlobalLpPool(Call& call);
absl::Status ConvertGlobalMaxPool(Call& call);
absl::Status ConvertGroupNormalization(Call& call);
absl::Status ConvertInstanceNormalization(Call& call);
absl::Status ConvertLayerNormalization(Call& call);  // LayerNormalization, RMSNormalization
absl::Status ConvertLpNormalization(Call& call);
absl::Status ConvertLpPool(Call& call);
absl::Status ConvertLrn(Call& call);
absl::Status ConvertMeanVarianceNormalization(Call& call);

// ops_reduce.cc
absl::Status ConvertArgMax(Call& call);  // ArgMax, ArgMin
absl::Status ConvertCumSum(Call& call);
absl::Status ConvertReduce(Call& call);   // ReduceL1, ..., ReduceSumSquare
absl::Status ConvertSoftmax(Call& call);  // Hardmax, LogSoftmax, Softmax

// ops_pool.cc
absl::Status ConvertAveragePool(Call& call);
absl::Status ConvertMaxPool(Call& call);
absl::Status ConvertMaxUnpool(Call& call);

// ops_recurrent.cc
absl::Status ConvertRecurrent(Call& call);  // GRU, LSTM, RNN

// ops_sampling.cc
absl::Status ConvertAffineGrid(Call& call);
absl::Status ConvertCol2Im(Call& call);
absl::Status ConvertGridSample(Call& call);
absl::Status ConvertRoiAlign(Call& call);

// ops_signal.cc
absl::Status ConvertDft(Call& call);
absl::Status ConvertMelWeightMatrix(Call& call);
absl::Status ConvertStft(Call& call);
absl::Status ConvertWindow(Call& call);  // BlackmanWindow, HammingWindow, HannWindow

// ops_shape.cc
absl::Status ConvertFlatten(Call& call);
absl::Status ConvertReshape(Call& call);
absl::Status ConvertSqueeze(Call& call);
absl::Status ConvertUnsqueeze(Call& call);
absl::Status ConvertTranspose(Call& call);
absl::Status ConvertConcat(Call& call);
absl::Status ConvertSlice(Call& call);
absl::Status ConvertSplit(Call& call);
absl::Status ConvertPad(Call& call);

// ops_constant.cc
absl::Status ConvertConstant(Call& call);
absl::Status ConvertConstantOfShape(Call& call);
absl::Status ConvertRange(Call& call);
absl::Status ConvertEyeLike(Call& call);
absl::Status ConvertSize(Call& call);
absl::Status ConvertShape(Call& call);

// ops_control.cc
absl::Status ConvertIf(Call& call);
absl::Status ConvertLoop(Call& call);
absl::Status ConvertScan(Call& call);

// ops_indexing.cc
absl::Status ConvertGather(Call& call);
absl::Status ConvertGatherElements(Call& call);
absl::Status ConvertGatherNd(Call& call);
absl::Status ConvertScatterElements(Call& call);
absl::Status ConvertScatterNd(Call& call);
absl::Status ConvertOneHot(Call& call);
absl::Status ConvertTopK(Call& call);
absl::Status ConvertCompress(Call& call);
absl::Status ConvertReverseSequence(Call& call);
absl::Status ConvertTrilu(Call& call);
absl::Status ConvertNonZero(Call& call);
absl::Status ConvertDataDependent(Call& call);  // Declines.

// ops_layout.cc
absl::Status ConvertExpand(Call& call);
absl::Status ConvertTile(Call& call);
absl::Status ConvertDepthToSpace(Call& call);
absl::Status ConvertSpaceToDepth(Call& call);
absl::Status ConvertCenterCropPad(Call& call);

// ops_resize.cc
absl::Status ConvertResize(Call& call);
absl::Status ConvertUpsample(Call& call);

// ops_quant.cc
absl::Status ConvertQuantizeLinear(Call& call);
absl::Status ConvertDequantizeLinear(Call& call);
absl::Status ConvertDynamicQuantizeLinear(Call& call);
absl::Status ConvertQLinearMatMul(Call& call);
absl::Status ConvertMatMulInteger(Call& call);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_CONVERTERS_H_
