#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/integer/integer.h"
#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

// range(0) rows of 768 by a known matrix of 768 x 768: a layer of a transformer.
void Matmul(benchmark::State& state, kernels::Isa isa) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const auto codes = [](Shape shape) {
    return TensorType{DType::kU8, std::move(shape), std::nullopt, Layout::kRowMajor};
  };
  kernels::KernelDesc desc;
  desc.op = "matmul_integer";
  desc.isa = isa;
  desc.inputs = {codes({state.range(0), 768}), codes({768, 768}), codes({}), codes({})};
  desc.outputs = {{DType::kI32, {state.range(0), 768}, std::nullopt, Layout::kRowMajor}};
  const Tensor a = SeededTensor(desc.input(0), 1), b = SeededTensor(desc.input(1), 2),
               zero = SeededTensor(codes({}), 3);
  desc.parameters = {{"b", &b}, {"b_zero_point", &zero}};
  const auto kernel = CreateMatmul(desc);
  Tensor c(desc.output());
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status = (*kernel)->Run(
        {{a.raw_data(), a.byte_size()}, {b.raw_data(), b.byte_size()}, {zero.raw_data(), 1}, {zero.raw_data(), 1}},
        {{c.raw_data(), c.byte_size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * a.num_elements() * 768);
  state.SetBytesProcessed(state.iterations() * (a.byte_size() + (*kernel)->weight_bytes() + c.byte_size()));
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark(variant.name, [isa = variant.isa](benchmark::State& state) { Matmul(state, isa); })
        ->ArgName("rows")
        ->Arg(1)
        ->Arg(128);
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::integer
