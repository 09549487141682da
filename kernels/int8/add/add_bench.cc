#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/add/add.h"

namespace fuselage::int8::add {
namespace {

// The largest add of ResNet18: 56x56x64.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t n = state.range(0);
  kernels::GuardedMemory a(n), b(n), y(n);
  a.FillRandom(1);
  b.FillRandom(2);
  Params params;
  params.multiplier_a = 0.7f;
  params.multiplier_b = 0.4f;
  for (auto _ : state) {
    variant.run(params, a.data(), b.data(), y.data(), n);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * 3 * n);
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); })
        ->Arg(1000)
        ->Arg(56 * 56 * 64);
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::add
