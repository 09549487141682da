// Activations on a tile of 64 values that lies in the first-level cache, as kernels' epilogues call them: values a
// second by instruction set and function. The values are set each time, for the functions' own would approach 0.
#include "benchmark/benchmark.h"
#include "ir/base/activation.h"
#include "kernels/core/activate.h"
#include "kernels/core/isa.h"

namespace fuselage::kernels {
namespace {

constexpr int kValues = 64;

void BM_Activate(benchmark::State& state, Isa isa, ActivateFunction* activate, ElementwiseOp op) {
  if (!CpuSupports(isa)) {
    state.SkipWithError("this CPU lacks the instruction set");
    return;
  }
  const ElementwiseInstruction function{op, 0, 0, 0.1f, 0.5f};
  alignas(64) float values[kValues];
  for (auto _ : state) {
    for (int i = 0; i < kValues; ++i) values[i] = 0.1f * static_cast<float>(i - kValues / 2);
    activate(function, values, kValues);
    benchmark::DoNotOptimize(values[0]);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kValues);
}

void RegisterAll() {
  const struct {
    const char* name;
    Isa isa;
    ActivateFunction* activate;
  } sets[] = {{"avx2/", Isa::kAvx2, avx2::Activate}, {"avx512_vnni/", Isa::kAvx512Vnni, avx512_vnni::Activate}};
  for (const auto& set : sets) {
    for (const ElementwiseOp op : elementwise::kActivations) {
      Activation activation;
      activation.function = ElementwiseInstruction{op};
      benchmark::RegisterBenchmark((set.name + ToString(activation)).c_str(), BM_Activate, set.isa, set.activate, op);
    }
  }
}

}  // namespace
}  // namespace fuselage::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  fuselage::kernels::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}
