#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/dequantize/dequantize.h"

namespace fuselage::int8::dequantize {
namespace {

// 56x56: in order (1 channel of 200,704), and 64 channels from NHWC to row-major.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  Params params;
  params.channels = params.pixel_step = state.range(0);
  params.pixels = 56 * 56 * 64 / params.channels;
  params.scale = 0.02f;
  params.zero_point = 114;
  const int64_t n = params.channels * params.pixels;
  kernels::GuardedMemory x(n), y(4 * n);
  x.FillRandom(1);
  for (auto _ : state) {
    variant.run(params, x.data(), y.as<float>(), 0, params.pixels);
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
        ->Arg(64);
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::dequantize
