#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"

namespace fuselage::int8::avg_pool2d {
namespace {

// ResNet18's head: 7x7x512 to 512.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  Params params;
  params.window.channels = 512;
  for (auto& axis : params.window.axes) axis = {7, 1, 7, 1, 1, 0, 0};
  kernels::GuardedMemory x(7 * 7 * 512), y(512);
  x.FillRandom(1);
  for (auto _ : state) {
    variant.run(params, x.data(), y.data(), 0, 1);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.size());
  state.SetBytesProcessed(state.iterations() * (x.size() + y.size()));
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); });
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::avg_pool2d
