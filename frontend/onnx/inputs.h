// The types of a graph's inputs, with every symbolic dimension bound.
#ifndef FUSELAGE_FRONTEND_ONNX_INPUTS_H_
#define FUSELAGE_FRONTEND_ONNX_INPUTS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "frontend/onnx/onnx.h"

namespace fuselage::onnx::schema {
class GraphProto;
class ValueInfoProto;
}  // namespace fuselage::onnx::schema

namespace fuselage::onnx {

// For each graph input that is neither an initializer nor in options.constants, its type. See LoadOptions::shapes.
absl::StatusOr<std::map<std::string, TensorType>> BindInputs(const schema::GraphProto& graph,
                                                             const LoadOptions& options);

// Whether the file leaves the input's first dimension open.
bool HasOpenBatch(const schema::ValueInfoProto& input);

// One of options.constants as a value of the input: see there.
absl::StatusOr<Tensor> FitConstant(const schema::ValueInfoProto& input, const Tensor& given);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_INPUTS_H_
