// Calibration's forward passes of ResNet18 on the kernels with the same bits everywhere, beside oneDNN's in the same
// run.
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "compiler/calibration_runner.h"
#include "compiler/samples.h"
#include "frontend/onnx/onnx.h"
#include "google/protobuf/text_format.h"
#include "ir/ops/register_all.h"
#include "kernels/register_all.h"
#include "passes/core/pipeline.h"
#include "passes/register_all.h"

namespace fuselage::harness {
namespace {

constexpr char kModel[] = "models/resnet18_fashion_mnist.onnx";
constexpr char kPipeline[] = R"(
  steps { pass { [type.googleapis.com/fuselage.NormalizeOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
  steps { pass { [type.googleapis.com/fuselage.FusionOptions] {} } })";

// Every result shown, nothing made of it. Items: images.
void Calibrate(benchmark::State& state, bool onednn) {
  constexpr int kImages = 8;
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  passes::PassRegistry passes;
  passes::RegisterAll(passes);
  kernels::KernelRegistry all;
  kernels::RegisterAll(all);
  const std::unique_ptr<ir::Graph> graph = *onnx::Load(kModel, ops);
  PipelineConfig pipeline;
  google::protobuf::TextFormat::ParseFromString(kPipeline, &pipeline);
  if (!passes::RunPipeline(pipeline, passes, {}, *graph).ok()) return state.SkipWithError("the pipeline failed");
  std::vector<const ir::Node*> nodes;
  for (const ir::Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->is_call()) nodes.push_back(node);
  }
  runtime::ThreadPool pool(static_cast<int>(state.range(0)));
  const compiler::RandomSamples samples(1, kImages, &pool);
  compiler::CalibrationOptions options;
  options.samples = kImages;
  if (onednn) options.kernels = &all;
  compiler::CalibrationRunner runner(samples, &pool, options);
  for (auto _ : state) {
    const absl::Status status =
        runner.ForEachSample(*graph, nodes, [](int, absl::Span<const Tensor* const>) { return absl::OkStatus(); });
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK_CAPTURE(Calibrate, onednn, true)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Calibrate, reproducible, false)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fuselage::harness
