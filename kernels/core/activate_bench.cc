// Activations on tiles of 64 values, as kernels' epilogues call them: ns for sixteen values, by instruction set and
// function. The tiles lie side by side in the first-level cache and are copied in before they are mapped: a function's
// own results would approach 0, and a tile that was just copied in narrower stores would have its loads wait for them.
#include <cstring>

#include "benchmark/benchmark.h"
#include "ir/base/activation.h"
#include "kernels/core/activate.h"
#include "kernels/core/isa.h"

namespace fuselage::kernels {
namespace {

constexpr int kTile = 64, kValues = 64 * kTile;

void BM_Activate(benchmark::State& state, Isa isa, ActivateFunction* activate, const ElementwiseInstruction& function) {
  if (!CpuSupports(isa)) {
    state.SkipWithError("this CPU lacks the instruction set");
    return;
  }
  alignas(64) float inputs[kValues], values[kValues];
  for (int i = 0; i < kValues; ++i) inputs[i] = 0.1f * static_cast<float>(i % kTile - kTile / 2);
  for (auto _ : state) {
    std::memcpy(values, inputs, sizeof(values));
    for (int i = 0; i < kValues; i += kTile) activate(function, values + i, kTile);
    benchmark::DoNotOptimize(values[0]);
    benchmark::ClobberMemory();
  }
  state.counters["ns_of_16"] = benchmark::Counter(static_cast<double>(state.iterations()) * kValues / 16 * 1e-9,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void RegisterAll() {
  const struct {
    const char* name;
    Isa isa;
    ActivateFunction* activate;
  } sets[] = {{"avx2/", Isa::kAvx2, avx2::Activate}, {"avx512_vnni/", Isa::kAvx512Vnni, avx512_vnni::Activate}};
  for (const auto& set : sets) {
    for (const auto& [op, for_codes] : elementwise::kActivations) {
      Activation activation;
      activation.function = ElementwiseInstruction{op, 0, 0, 0.1f, 0.5f};
      const std::string name = set.name + ToString(activation);
      benchmark::RegisterBenchmark(name.c_str(), BM_Activate, set.isa, set.activate, *activation.function);
      if (for_codes == op) continue;
      benchmark::RegisterBenchmark((name + "/for_codes").c_str(), BM_Activate, set.isa, set.activate,
                                   elementwise::ForCodes(*activation.function));
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
