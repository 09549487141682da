// Operators that only move elements.
#ifndef FUSELAGE_FRONTEND_ONNX_WRITER_VIEWS_H_
#define FUSELAGE_FRONTEND_ONNX_WRITER_VIEWS_H_

#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer {

absl::Status WriteReshape(const Call& c);
absl::Status WriteFlatten(const Call& c);
absl::Status WriteSqueeze(const Call& c);
absl::Status WriteUnsqueeze(const Call& c);
absl::Status WriteExpand(const Call& c);
absl::Status WritePermute(const Call& c);
absl::Status WriteTranspose(const Call& c);
absl::Status WriteCat(const Call& c);
absl::Status WriteSlice(const Call& c);
absl::Status WriteSplit(const Call& c);
absl::Status WriteGetItem(const Call& c);
absl::Status WritePad(const Call& c);

}  // namespace fuselage::onnx::writer

#endif  // FUSELAGE_FRONTEND_ONNX_WRITER_VIEWS_H_
