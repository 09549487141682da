// Parameters in a .safetensors file beside the IR's text (format: github.com/huggingface/safetensors, "Format").
#ifndef FUSELAGE_IR_SAFETENSORS_H_
#define FUSELAGE_IR_SAFETENSORS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ir/base/budget.h"
#include "ir/graph.h"
#include "ir/text.h"

namespace fuselage::ir {

using TensorMap = std::map<std::string, std::shared_ptr<const Tensor>, std::less<>>;

// Header size, dtypes, shapes, overlaps, gaps and ranges are checked before anything is allocated, and the budget, where
// there is one, is charged. InvalidArgument and ResourceExhausted name the file and the tensor; NotFound: no such file.
absl::StatusOr<TensorMap> ReadSafetensors(const std::string& path, Budget* budget = nullptr);

// Quantization parameters are not part of the format: they are in the IR's text.
absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors);

// <stem>.ir and <stem>.safetensors, the latter with the parameters that the text has as data(...).
absl::Status WriteGraph(const std::string& stem, const Graph& graph);
absl::StatusOr<std::unique_ptr<Graph>> ReadGraph(const std::string& stem, const OpRegistry& ops);

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_SAFETENSORS_H_
