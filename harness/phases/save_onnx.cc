#include "harness/phases/save_onnx.h"

#include <utility>

#include "harness/base/files.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {

absl::Status SaveOnnx(RunState& run) {
  if (run.config.save_onnx().empty()) return absl::OkStatus();
  run.progress.Begin("save the quantized network");
  onnx::writer::WriteOptions options;
  options.names = run.names;
  // Our kernels add biases as floats, so these keep every bit.
  options.bias = onnx::writer::WriteOptions::Bias::kFloat;
  return WriteOnnx(run.onnx_graph != nullptr ? *run.onnx_graph : *run.graph, std::move(options),
                   run.request.search.InCaller(run.config.save_onnx()));
}

absl::Status WriteOnnx(const ir::Graph& graph, onnx::writer::WriteOptions options, const std::string& path) {
  options.batch = "N";
  const absl::StatusOr<std::string> bytes = onnx::writer::Write(graph, options);
  if (!bytes.ok()) return Annotate(bytes.status(), path);
  return WriteFileAtomic(path, *bytes);
}

}  // namespace fuselage::harness::phases
