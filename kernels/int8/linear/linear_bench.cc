#include <memory>

#include "benchmark/benchmark.h"
#include "kernels/core/testing/peak.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

// M rows of K = 512 to N channels, f32 result; 1 x 1000 is ResNet18's classifier on ImageNet.
void Run(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t rows = state.range(0), channels = state.range(1), depth = 512;
  const Tensor weight = SeededTensor(kernels::Codes(DType::kI8, {channels, depth}, 0.01f, 0), 1);
  kernels::KernelDesc desc;
  desc.op = "int8.linear";
  desc.inputs = {kernels::Codes(DType::kU8, {rows, depth}, 0.02f, 3)};
  desc.outputs = {kernels::Floats({rows, channels})};
  desc.attributes = {{"activation", Attribute("none")}};
  desc.parameters = {{"weight", &weight}};
  const std::unique_ptr<kernels::Kernel> kernel = std::move(*CreateVariant(desc, variant));
  const Tensor x = SeededTensor(desc.input(0), 2);
  kernels::GuardedMemory y(desc.output().byte_size()), scratch(kernel->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        kernel->Run({kernels::ConstBuffer{x.raw_data(), x.byte_size()}}, {kernels::Buffer{y.data(), y.size()}},
                    {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError("the kernel failed");
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * channels * depth);
  const double macs = static_cast<double>(state.iterations() * rows * channels * depth);
  state.counters["GMAC/s"] = benchmark::Counter(macs * 1e-9, benchmark::Counter::kIsRate);
  if (const double peak = kernels::PeakMacsPerSecond(variant.isa); peak > 0) {
    state.counters["peak_%"] = benchmark::Counter(macs / peak * 100, benchmark::Counter::kIsRate);
  }
  state.SetBytesProcessed(state.iterations() * kernel->weight_bytes());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [&variant](benchmark::State& state) { Run(state, variant); })
        ->ArgNames({"M", "N"})
        ->Args({1, 10})
        ->Args({1, 1000})
        ->Args({16, 1000})
        ->Args({256, 512});
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::linear
