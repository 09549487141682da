#include "benchmark/benchmark.h"
#include "ir/base/elementwise.h"
#include "kernels/core/testing/testing.h"
#include "kernels/fused_elementwise/fused_elementwise.h"

namespace fuselage::fused_elementwise {
namespace {

// z * sigmoid(z) with z = x + y: three kernels' work in one pass. range(0): elements; range(1): codes.
void Run(benchmark::State& state, kernels::Isa isa) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const bool codes = state.range(1) != 0;
  kernels::KernelDesc desc;
  desc.op = codes ? "int8.fused_elementwise" : "fused_elementwise";
  desc.isa = isa;
  desc.attributes = {{"steps", Attribute(std::vector<std::string>{"add(0, 1)", "sigmoid(2)", "mul(2, 3)"})}};
  const TensorType type =
      codes ? kernels::Codes(DType::kU8, {state.range(0)}, 0.02f, 128) : kernels::Floats({state.range(0)});
  desc.inputs = {type, type};
  desc.outputs = {type};
  const auto kernel = Create(desc);
  const Tensor x = SeededTensor(type, 1), y = SeededTensor(type, 2);
  Tensor result(type);
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*kernel)->Run({{x.raw_data(), x.byte_size()}, {y.raw_data(), y.byte_size()}},
                       {{result.raw_data(), result.byte_size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * 3 * type.byte_size());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [isa = variant.isa](benchmark::State& state) { Run(state, isa); })
        ->ArgNames({"n", "codes"})
        ->ArgsProduct({{10000, 1 << 22}, {0, 1}});
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::fused_elementwise
