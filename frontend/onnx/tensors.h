// TensorProto -> Tensor, with its payload in the message (raw or typed) or in an external file.
#ifndef FUSELAGE_FRONTEND_ONNX_TENSORS_H_
#define FUSELAGE_FRONTEND_ONNX_TENSORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/budget.h"
#include "ir/base/tensor.h"

namespace onnx {
class TensorProto;
}  // namespace onnx

namespace fuselage::onnx {

// A name from a model, fit for a message: control characters escaped, at most 200 bytes.
std::string Quote(absl::string_view name);

// "FLOAT", "INT64", ..., or the number where the schema has no such type.
std::string ElementTypeName(int element_type);

// Unimplemented for the types that the IR does not have (strings, complex numbers, unsigned 16, 32 and 64 bits, ...).
// Stored tensors of some of them can be read all the same: see widened.h.
absl::StatusOr<DType> ToDType(int element_type);

// Checks dimensions, type and payload size before it allocates. `folder` holds the external data: a path relative to
// it, without "..", whose file, symbolic links resolved, lies below it; empty: external data is an error.
absl::StatusOr<Tensor> ToTensor(const ::onnx::TensorProto& proto, const std::string& folder, Budget* budget);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_TENSORS_H_
