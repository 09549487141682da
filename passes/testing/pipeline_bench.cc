// What the pipeline costs by the number of nodes, pass by pass:
//   bazel run //passes:pipeline_bench -- --benchmark_min_time=1
// "around" is what RunPipeline adds: verification and the check of the changed bit.
#include <chrono>
#include <map>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "passes/testing/pipeline_at_scale.h"

namespace fuselage::testing {
namespace {

void BM_Pipeline(benchmark::State& state) {
  const PipelineAtScale pipeline;
  std::map<std::string, double> milliseconds;
  double in_passes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<ir::Graph> graph = pipeline.MakeGraph(state.range(0));
    state.ResumeTiming();
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<std::vector<passes::PassReport>> reports = pipeline.Run(*graph);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
    state.PauseTiming();
    if (!reports.ok()) {
      state.SkipWithError(reports.status().ToString().c_str());
      break;
    }
    for (const passes::PassReport& report : *reports) {
      milliseconds[report.pass] += report.wall_ms;
      in_passes += report.wall_ms;
    }
    milliseconds["around"] += wall.count();
    graph.reset();
    state.ResumeTiming();
  }
  milliseconds["around"] -= in_passes;
  for (const auto& [pass, total] : milliseconds) {
    state.counters[absl::StrCat(pass, "_ms")] = benchmark::Counter(total, benchmark::Counter::kAvgIterations);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Pipeline)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fuselage::testing
