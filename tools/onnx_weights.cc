// Writes the parameters of an ONNX model as a .safetensors file, by their names, FP16 ones as FP32:
//   onnx_weights model.onnx model.safetensors
#include <cstdio>
#include <string>

#include "frontend/onnx/onnx.h"
#include "ir/base/status.h"
#include "ir/ops/register_all.h"
#include "ir/safetensors.h"

namespace fuselage {
namespace {

absl::Status WriteParameters(const std::string& model, const std::string& path) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> graph, onnx::Load(model, ops));
  ir::TensorMap tensors;
  for (const auto& [name, parameter] : graph->parameters()) tensors[name] = parameter.tensor;
  return ir::WriteSafetensors(path, tensors);
}

}  // namespace
}  // namespace fuselage

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: onnx_weights model.onnx model.safetensors\n");
    return 2;
  }
  const absl::Status status = fuselage::WriteParameters(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "onnx_weights: %s\n", std::string(status.message()).c_str());
  return 1;
}
