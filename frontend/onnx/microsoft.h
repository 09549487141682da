// Converters of the operators of com.microsoft (github.com/microsoft/onnxruntime, docs/ContribOperators.md), by file.
#ifndef FUSELAGE_FRONTEND_ONNX_MICROSOFT_H_
#define FUSELAGE_FRONTEND_ONNX_MICROSOFT_H_

#include "absl/status/status.h"
#include "frontend/onnx/call.h"

namespace fuselage::onnx {

// ops_microsoft_attention.cc
absl::Status ConvertMicrosoftAttention(Call& call);
absl::Status ConvertMultiHeadAttention(Call& call);
absl::Status ConvertMicrosoftRotaryEmbedding(Call& call);
absl::Status ConvertEmbedLayerNormalization(Call& call);

// ops_microsoft_quant.cc
absl::Status ConvertQLinearBinary(Call& call);  // QLinearAdd, QLinearMul
absl::Status ConvertQLinearUnary(Call& call);   // QLinearSigmoid, QLinearLeakyRelu
absl::Status ConvertQLinearSoftmax(Call& call);
absl::Status ConvertQLinearAveragePool(Call& call);
absl::Status ConvertQLinearGlobalAveragePool(Call& call);
absl::Status ConvertQLinearConcat(Call& call);
absl::Status ConvertQGemm(Call& call);
absl::Status ConvertDynamicQuantizeMatMul(Call& call);
absl::Status ConvertMatMulIntegerToFloat(Call& call);
absl::Status ConvertMatMulNBits(Call& call);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_MICROSOFT_H_
