#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/lookup/lookup.h"
#include "kernels/int8/lookup/lookup_cases.h"

namespace fuselage::int8::lookup {
namespace {

// An image of 224x224, to NHWC.
void Image(benchmark::State& state, Layout layout) {
  const int64_t channels = state.range(0);
  const KernelDesc desc = Desc({1, channels, 224, 224}, channels, layout);
  const Params params = *MakeParams(desc);
  const Tensor x = SeededTensor(desc.input(0), 1);
  kernels::GuardedMemory y(x.byte_size());
  for (auto _ : state) {
    Run(params, desc.ParameterOrNull("table")->data<uint8_t>(), x.data<uint8_t>(), y.data(), 0, params.pixels);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.num_elements());
}
BENCHMARK_CAPTURE(Image, planes, Layout::kRowMajor)->ArgName("channels")->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(Image, pixels, Layout::kNhwc)->ArgName("channels")->Arg(3);

}  // namespace
}  // namespace fuselage::int8::lookup
