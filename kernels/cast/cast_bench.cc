#include "benchmark/benchmark.h"
#include "kernels/cast/cast.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::cast {
namespace {

// The sums of an integer product to floats.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t n = 128 * 768;
  kernels::GuardedMemory x(4 * n), y(4 * n);
  x.FillRandom(1);
  for (auto _ : state) {
    variant.run({DType::kI32, DType::kF32}, x.data(), y.data(), n);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * 8 * n);
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); });
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::cast
