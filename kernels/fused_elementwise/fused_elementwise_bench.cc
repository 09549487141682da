#include "benchmark/benchmark.h"
#include "ir/base/elementwise.h"
#include "kernels/core/testing/testing.h"
#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::fused_elementwise {
namespace {

void Measure(benchmark::State& state, kernels::KernelDesc desc, kernels::Isa isa) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  desc.isa = isa;
  const auto kernel = Create(desc);
  const Tensor x = SeededTensor(desc.input(0), 1), y = SeededTensor(desc.input(1), 2);
  Tensor result(desc.output());
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*kernel)->Run({{x.raw_data(), x.byte_size()}, {y.raw_data(), y.byte_size()}},
                       {{result.raw_data(), result.byte_size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * desc.output().num_elements());
  state.SetBytesProcessed(state.iterations() * (x.byte_size() + y.byte_size() + result.byte_size()));
}

// z * sigmoid(z) with z = x + y: three kernels' work in one pass. range(0): elements; range(1): codes.
void Chain(benchmark::State& state, kernels::Isa isa) {
  const bool codes = state.range(1) != 0;
  kernels::KernelDesc desc;
  desc.op = codes ? "int8.fused_elementwise" : "fused_elementwise";
  desc.attributes = {{"steps", Attribute(std::vector<std::string>{"add(0, 1)", "sigmoid(2)", "mul(2, 3)"})}};
  const TensorType type =
      codes ? kernels::Codes(DType::kU8, {state.range(0)}, 0.02f, 128) : kernels::Floats({state.range(0)});
  desc.inputs = {type, type};
  desc.outputs = {type};
  Measure(state, desc, isa);
}

// Squeeze and excite: an image's channels by a factor each. range(0): channels; range(1): height and width.
void Scale(benchmark::State& state, kernels::Isa isa) {
  const int64_t channels = state.range(0), size = state.range(1);
  kernels::KernelDesc desc;
  desc.op = "int8.mul";
  const Shape shape = {1, channels, size, size}, factors = {1, channels, 1, 1};
  // Scales as ranges give them: of equal ones many products would lie in the middle between two codes.
  desc.inputs = {kernels::Codes(DType::kU8, shape, 0.0217f, 13, Layout::kNhwc),
                 kernels::Codes(DType::kU8, factors, 0.00391f, 0, Layout::kNhwc)};
  desc.outputs = {kernels::Codes(DType::kU8, shape, 0.0198f, 14, Layout::kNhwc)};
  Measure(state, desc, isa);
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    const kernels::Isa isa = variant.isa;
    const std::string name = variant.name;
    benchmark::RegisterBenchmark((name + "/chain").c_str(), [isa](benchmark::State& state) { Chain(state, isa); })
        ->ArgNames({"n", "codes"})
        ->ArgsProduct({{10000, 1 << 22}, {0, 1}});
    benchmark::RegisterBenchmark((name + "/scale").c_str(), [isa](benchmark::State& state) { Scale(state, isa); })
        ->ArgNames({"c", "hw"})
        ->Args({32, 112})
        ->Args({144, 56})
        ->Args({240, 28})
        ->Args({672, 14});
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::fused_elementwise
