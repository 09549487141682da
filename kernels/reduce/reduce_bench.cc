#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/reduce/reduce.h"

namespace fuselage::reduce {
namespace {

// rows: the mean of each of 197 rows of 768, as in a layer normalization; pixels: of 49 pixels of 1280 channels.
void Run(benchmark::State& state, const Variant& variant, bool rows) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  Params params;
  params.count = rows ? 768 : 49;
  params.loops[params.num_loops++] = {params.count, rows ? 1 : 1280};
  params.result_stride = rows ? 768 : 1;
  const int64_t results = rows ? 197 : 1280;
  const Tensor x = SeededTensor(kernels::Floats({results * params.count}), 1);
  kernels::GuardedMemory y(4 * results);
  for (auto _ : state) {
    variant.run(params, x.data<float>(), y.as<float>(), results);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.num_elements());
  state.SetBytesProcessed(state.iterations() * x.byte_size());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    for (const bool rows : {true, false}) {
      benchmark::RegisterBenchmark(absl::StrCat(variant.name, rows ? " rows" : " pixels").c_str(),
                                   [&variant, rows](benchmark::State& state) { Run(state, variant, rows); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::reduce
