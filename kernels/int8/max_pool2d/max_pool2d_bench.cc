#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::max_pool2d {
namespace {

// ResNet18's pool: 3x3, stride 2, 112x112x64 to 56x56x64.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  Params params;
  params.window.channels = 64;
  for (auto& axis : params.window.axes) axis = {112, 56, 3, 2, 1, 1, 1};
  kernels::GuardedMemory x(112 * 112 * 64), y(56 * 56 * 64);
  x.FillRandom(1);
  for (auto _ : state) {
    variant.run(params, x.data(), y.data(), 0, 56);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * y.size());
  state.SetBytesProcessed(state.iterations() * (x.size() + y.size()));
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); });
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::max_pool2d
