#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/dynamic_quantize/dynamic_quantize.h"

namespace fuselage::dynamic_quantize {
namespace {

// One group: the activations of a transformer's layer.
void Run(benchmark::State& state, kernels::Isa isa) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const Shape shape = {128, 768};
  kernels::KernelDesc desc;
  desc.op = "dynamic_quantize_asymmetric";
  desc.isa = isa;
  desc.inputs = {kernels::Floats(shape)};
  const TensorType codes{DType::kU8, shape, std::nullopt, Layout::kRowMajor};
  desc.outputs = {codes, kernels::Floats({}), {DType::kU8, {}, std::nullopt, Layout::kRowMajor}};
  const auto kernel = Create(desc);
  const Tensor x = SeededTensor(desc.input(0), 1);
  kernels::GuardedMemory y(x.num_elements()), scale(4), offset(1), scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*kernel)->Run({{x.raw_data(), x.byte_size()}}, {{y.data(), y.size()}, {scale.data(), 4}, {offset.data(), 1}},
                       {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.num_elements());
  state.SetBytesProcessed(state.iterations() * 9 * x.num_elements());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [isa = variant.isa](benchmark::State& state) { Run(state, isa); });
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::dynamic_quantize
