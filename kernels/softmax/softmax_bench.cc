// Rows of each length beside oneDNN, in one run and on one thread.
#include "kernels/softmax/softmax.h"

#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/fp32/fp32.h"

namespace fuselage::softmax {
namespace {

using KernelOr = absl::StatusOr<std::unique_ptr<kernels::Kernel>>;

// range(0) rows of range(1).
void Run(benchmark::State& state, kernels::Isa isa, KernelOr (*create)(const kernels::KernelDesc& desc)) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  kernels::KernelDesc desc;
  desc.op = "softmax";
  desc.isa = isa;
  desc.inputs = {kernels::Floats({state.range(0), state.range(1)})};
  desc.outputs = {*desc.inputs[0]};
  desc.attributes = {{"dim", Attribute(int64_t{1})}};
  const auto kernel = create(desc);
  if (!kernel.ok()) return state.SkipWithError(std::string(kernel.status().message()).c_str());
  const Tensor x = SeededTensor(desc.input(0), 1);
  Tensor y(desc.output());
  kernels::Serial serial;
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  for (auto _ : state) {
    const absl::Status status = (*kernel)->Run({{x.raw_data(), x.byte_size()}}, {{y.raw_data(), y.byte_size()}},
                                               {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * x.num_elements());
  state.SetBytesProcessed(state.iterations() * 2 * x.byte_size());
  state.SetLabel((*kernel)->variant());
}

KernelOr CreateOther(const kernels::KernelDesc& desc) {
  kernels::KernelRegistry registry;
  fp32::Register(registry);
  return registry.FindOrNull("softmax")->create(desc);
}

const bool kRegistered = [] {
  const auto add = [](const char* name, kernels::Isa isa, auto create) {
    auto* bench = benchmark::RegisterBenchmark(name, Run, isa, create)->ArgNames({"rows", "length"});
    for (const int64_t length : {2, 3, 4, 8, 16, 21, 32, 64}) bench->Args({(1 << 20) / length, length});
    bench->Args({10000, 2})->Args({458752, 4});
  };
  for (const Variant& variant : Variants()) add(variant.name, variant.isa, Create);
  add("fp32", kernels::BestIsa(), CreateOther);
  return true;
}();

}  // namespace
}  // namespace fuselage::softmax
