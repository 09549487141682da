// The graph as a QDQ model for other runtimes.
#ifndef FUSELAGE_HARNESS_PHASES_SAVE_ONNX_H_
#define FUSELAGE_HARNESS_PHASES_SAVE_ONNX_H_

#include <string>

#include "absl/status/status.h"
#include "frontend/onnx/writer/writer.h"
#include "ir/graph.h"

namespace fuselage::harness::phases {

// For a batch of any size, whatever the options say. Errors name the file and the node.
absl::Status WriteOnnx(const ir::Graph& graph, onnx::writer::WriteOptions options, const std::string& path);

}  // namespace fuselage::harness::phases

#endif  // FUSELAGE_HARNESS_PHASES_SAVE_ONNX_H_
