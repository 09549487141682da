#include "passes/quant_lift/quant_lift.h"

#include <string>

#include "benchmark/benchmark.h"
#include "ir/ops/register_all.h"
#include "passes/quant_lift/testing/synthetic.h"

namespace fuselage::quant_lift {
namespace {

void Run(benchmark::State& state, const Synthetic& synthetic) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const std::unique_ptr<ir::Graph> graph = synthetic.build(ops, state.range(0) / synthetic.nodes_of_unit);
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<ir::Graph> copy = graph->Clone();
    passes::Remarks remarks;
    state.ResumeTiming();
    if (!QuantLift().Run(*copy, remarks).ok()) return state.SkipWithError("the pass failed");
    state.PauseTiming();
    copy.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * graph->num_nodes());
  state.SetComplexityN(state.range(0));
}

const bool kRegistered = [] {
  for (const Synthetic& synthetic : kSynthetics) {
    benchmark::RegisterBenchmark(synthetic.name, [&synthetic](benchmark::State& state) { Run(state, synthetic); })
        ->ArgName("nodes")
        ->Arg(1'000)
        ->Arg(10'000)
        ->Arg(100'000)
        ->Unit(benchmark::kMillisecond)
        ->Complexity();
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::quant_lift
