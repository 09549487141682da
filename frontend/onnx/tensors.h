// TensorProto -> Tensor, with its payload in the message (raw or typed), where the message was parsed from, or in an
// external file.
#ifndef FUSELAGE_FRONTEND_ONNX_TENSORS_H_
#define FUSELAGE_FRONTEND_ONNX_TENSORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/files.h"
#include "frontend/onnx/wire.h"
#include "ir/base/budget.h"
#include "ir/base/tensor.h"

namespace fuselage::onnx::schema {
class TensorProto;
}  // namespace fuselage::onnx::schema

namespace fuselage::onnx {

// A name from a model, fit for a message: control characters escaped, at most 200 bytes.
std::string Quote(absl::string_view name);

// "FLOAT", "INT64", ..., or the number where the schema has no such type.
std::string ElementTypeName(int element_type);

// Unimplemented for the types that the IR does not have (strings, complex numbers, unsigned 16, 32 and 64 bits, ...).
// Stored tensors of some of them can be read all the same: see widened.h.
absl::StatusOr<DType> ToDType(int element_type);

// The payloads that are in no message.
struct Payloads {
  const ByteSource* bytes = nullptr;  // What ParseWire parsed; it left `raw_data` there.
  RawData raw_data;
  // Where external data lies. Its paths are relative to this folder and have no "..", and their files, symbolic links
  // resolved, lie below it. Empty: external data is an error.
  std::string folder;
};

// Checks dimensions, type and payload size before it allocates.
absl::StatusOr<Tensor> ToTensor(const schema::TensorProto& proto, const Payloads& payloads, Budget* budget);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_TENSORS_H_
