// Convolutions, products of matrices and recurrent layers.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_PRODUCTS_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_PRODUCTS_H_

#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer {

absl::Status WriteConv(const Call& c);
absl::Status WriteConvTranspose(const Call& c);
absl::Status WriteConvInteger(const Call& c);
absl::Status WriteMatmulInteger(const Call& c);
absl::Status WriteLinear(const Call& c);
absl::Status WriteGemm(const Call& c);
absl::Status WriteAddmm(const Call& c);
absl::Status WriteRecurrent(const Call& c);  // rnn, gru, lstm
absl::Status WriteAttention(const Call& c);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_PRODUCTS_H_
