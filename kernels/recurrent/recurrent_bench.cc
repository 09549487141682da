#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/recurrent/recurrent.h"

namespace fuselage::recurrent {
namespace {

// A step of an LSTM of 512 units, and the inputs of 64 steps: panels of 2048 columns by 512 rows.
void Run(benchmark::State& state, const Variant& variant, int64_t rows) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  constexpr int64_t kDepth = 512, kPanels = 64;
  const Tensor x = SeededTensor(kernels::Floats({rows, kDepth}), 1);
  const Tensor weight = SeededTensor(kernels::Floats({kPanels, kDepth, kPanel}), 2);
  const Tensor bias = SeededTensor(kernels::Floats({kPanel}), 3);
  kernels::GuardedMemory sums(4 * rows * kPanel);
  for (auto _ : state) {
    for (int64_t panel = 0; panel < kPanels; ++panel) {
      variant.multiply(x.data<float>(), kDepth, rows, weight.data<float>() + panel * kDepth * kPanel, kDepth,
                       {bias.data<float>(), 0}, sums.as<float>());
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * weight.num_elements());
  state.SetBytesProcessed(state.iterations() * weight.byte_size());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    for (const int64_t rows : {1, 64}) {
      benchmark::RegisterBenchmark(absl::StrCat(variant.name, " rows ", rows).c_str(),
                                   [&variant, rows](benchmark::State& state) { Run(state, variant, rows); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::recurrent
