// GroupNorm of images as the networks that have it normalize them, in groups of 16 channels or in one, on one thread:
// bazel run //kernels/int8/group_norm:bench -- --benchmark_min_time=0.5
#include "benchmark/benchmark.h"
#include "ir/base/attribute.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/group_norm/group_norm.h"

namespace fuselage::int8::group_norm {
namespace {

void Normalize(benchmark::State& state, kernels::Isa isa, const char* activation) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  kernels::KernelDesc desc;
  desc.op = "int8.group_norm";
  desc.isa = isa;
  const Shape shape = {1, state.range(0), state.range(1), state.range(1)};
  desc.inputs = {kernels::Codes(DType::kU8, shape, 0.021f, 131, Layout::kNhwc)};
  desc.outputs = {kernels::Codes(DType::kU8, shape, 0.017f, 120, Layout::kNhwc)};
  desc.attributes = {
      {"num_groups", Attribute(state.range(2))}, {"eps", Attribute(1e-5)}, {"activation", Attribute(activation)}};
  const auto kernel = Create(desc);
  const Tensor x = SeededTensor(desc.input(0), 1);
  Tensor y(desc.output());
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status = (*kernel)->Run({{x.raw_data(), x.byte_size()}}, {{y.raw_data(), y.byte_size()}},
                                               {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * y.num_elements());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    for (const char* activation : {"none", "silu"}) {
      const kernels::Isa isa = variant.isa;
      benchmark::RegisterBenchmark((std::string(variant.name) + "/" + activation).c_str(),
                                   [isa, activation](benchmark::State& state) { Normalize(state, isa, activation); })
          ->ArgNames({"c", "hw", "groups"})
          ->Args({64, 56, 1})
          ->Args({128, 56, 8})
          ->Args({320, 32, 32})
          ->Args({512, 14, 32})
          ->Args({24, 56, 1});
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::group_norm
