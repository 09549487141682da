#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::int8::quantize {
namespace {

// An image of 224x224: NCHW f32 to NHWC u8.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  Params params;
  params.channels = state.range(0);
  params.pixels = 224 * 224;
  params.scale = 0.02f;
  params.zero_point = 114;
  const int64_t n = params.channels * params.pixels;
  const Tensor x = SeededTensor(kernels::Floats({n}), 1);
  kernels::GuardedMemory y(n);
  for (auto _ : state) {
    variant.run(params, x.data<float>(), y.data(), 0, params.pixels);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * 5 * n);
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); })
        ->ArgName("channels")
        ->Arg(1)
        ->Arg(3)
        ->Arg(16)
        ->Arg(20)
        ->Arg(64);
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::quantize
