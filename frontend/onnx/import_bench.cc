// Loads an ONNX model and prints what that took:
//
//   bazel run -c opt //frontend/onnx:import_bench -- model.onnx
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "frontend/onnx/onnx.h"
#include "ir/ops/register_all.h"

namespace fuselage::onnx {
namespace {

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Kilobytes on Linux.
}

int Measure(const char* path) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const double before = PeakMegabytes();
  const auto start = std::chrono::steady_clock::now();
  const auto graph = Load(path, ops);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!graph.ok()) {
    std::fprintf(stderr, "%s\n", std::string(graph.status().message()).c_str());
    return 1;
  }
  int nodes = 0;
  for (const ir::Node* node = (*graph)->first(); node != nullptr; node = node->next()) ++nodes;
  const double file = static_cast<double>(std::filesystem::file_size(path)) / (1 << 20),
               peak = PeakMegabytes() - before;
  std::printf("%.1f MB, %d nodes: %.3f s, peak %.1f MB (%.2f times the file)\n", file, nodes, seconds.count(), peak,
              peak / file);
  return 0;
}

}  // namespace
}  // namespace fuselage::onnx

int main(int argc, char** argv) {
  if (argc == 2) return fuselage::onnx::Measure(argv[1]);
  std::fprintf(stderr, "usage: import_bench MODEL\n");
  return 2;
}
