#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/relu/relu.h"

namespace fuselage::int8::relu {
namespace {

// 56x56x64: the largest activation after ResNet18's stem; range(1): with equal scales.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t n = state.range(0);
  kernels::GuardedMemory x(n), y(n);
  x.FillRandom(1);
  Params params;
  params.same = state.range(1) != 0;
  params.multiplier = params.same ? 1 : 0.7f;
  for (auto _ : state) {
    variant.run(params, x.data(), y.data(), n);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * 2 * n);
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); })
        ->ArgNames({"n", "same"})
        ->Args({56 * 56 * 64, 0})
        ->Args({56 * 56 * 64, 1});
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::relu
