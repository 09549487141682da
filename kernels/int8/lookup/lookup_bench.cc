#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/lookup/lookup.h"
#include "kernels/int8/lookup/lookup_cases.h"

namespace fuselage::int8::lookup {
namespace {

// An image of 224x224, to NHWC.
void Image(benchmark::State& state, const Variant& variant, Layout layout) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t channels = state.range(0);
  const KernelDesc desc = Desc({1, channels, 224, 224}, channels, layout);
  const Params params = *MakeParams(desc);
  const Tensor x = SeededTensor(desc.input(0), 1);
  kernels::GuardedMemory y(x.byte_size());
  for (auto _ : state) {
    variant.run(params, desc.ParameterOrNull("table")->data<uint8_t>(), x.data<uint8_t>(), y.data(), 0, params.pixels);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.num_elements());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    for (const auto& [name, layout] : {std::make_pair(" planes", Layout::kRowMajor), {" pixels", Layout::kNhwc}}) {
      benchmark::RegisterBenchmark((std::string(variant.name) + name).c_str(),
                                   [&variant, layout = layout](auto& state) { Image(state, variant, layout); })
          ->ArgName("channels")
          ->Arg(1)
          ->Arg(3);
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::lookup
