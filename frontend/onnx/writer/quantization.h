// Scales and zero points as ONNX has them: tensors beside the quantized values.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_QUANTIZATION_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_QUANTIZATION_H_

#include <optional>
#include <string>

#include "frontend/onnx/writer/operators.h"
#include "ir/base/quant_params.h"

namespace fuselage::onnx::writer {

// What a call of quantize or dequantize has as constants, in its attributes or in the type of its codes; nullopt where
// they are operands.
std::optional<QuantParams> ConstantParams(const ir::OpCall& op, bool operands, const TensorType& codes);

// Initializers of scale and zero point; their names.
Values QuantInitializers(const std::string& name, const QuantParams& params, DType dtype, Emitter& to);

// These, and DequantizeLinear of the named codes.
void Dequantize(const std::string& codes, const QuantParams& params, DType dtype, const std::string& result,
                Emitter& to);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_QUANTIZATION_H_
