// Writes a graph as an ONNX model (frontend/onnx/writer):
//   export_onnx graph.ir model.onnx
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/fx/fx.h"
#include "frontend/onnx/writer/writer.h"
#include "ir/base/status.h"
#include "ir/ops/register_all.h"

namespace fuselage {
namespace {

absl::Status Export(const std::string& graph_path, const std::string& model_path) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> graph, fx::Load(graph_path, ops));
  const auto bytes = onnx::writer::Write(*graph);
  if (!bytes.ok()) return Annotate(bytes.status(), graph_path);
  std::ofstream file(model_path, std::ios::binary | std::ios::trunc);
  file.write(bytes->data(), bytes->size());
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(model_path, ": cannot be written"));
}

}  // namespace
}  // namespace fuselage

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: export_onnx graph.ir model.onnx\n");
    return 2;
  }
  const absl::Status status = fuselage::Export(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "export_onnx: %s\n", std::string(status.message()).c_str());
  return 1;
}
