#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/peak.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/linear/linear.h"
#include "kernels/int8/matmul/matmul.h"

namespace fuselage::int8::matmul {
namespace {

struct Case {
  const char* name;
  int64_t heads, m, k, n;
  bool float_result;  // The scores of attention; else u8.
};
constexpr Case kCases[] = {
    {"vit_b scores", 12, 197, 64, 197, true}, {"vit_b mixed", 12, 197, 197, 64, false},
    {"bert scores", 12, 128, 64, 128, true},  {"square", 1, 1024, 64, 1024, true},
    {"convbert", 384, 64, 9, 1, false},       {"vector", 1, 1024, 1024, 1, false},
};

void Time(benchmark::State& state, const kernels::Kernel& kernel, const std::vector<Tensor>& inputs, double macs,
          kernels::Isa isa) {
  kernels::GuardedMemory y(kernel.outputs()[0].byte_size()), scratch(kernel.scratch_bytes());
  kernels::Serial serial;
  std::vector<kernels::ConstBuffer> buffers;
  for (const Tensor& input : inputs) buffers.push_back({input.raw_data(), input.byte_size()});
  for (auto _ : state) {
    const absl::Status status =
        kernel.Run(buffers, {kernels::Buffer{y.data(), y.size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError("the kernel failed");
    benchmark::ClobberMemory();
  }
  macs *= static_cast<double>(state.iterations());
  state.counters["GMAC/s"] = benchmark::Counter(macs * 1e-9, benchmark::Counter::kIsRate);
  if (const double peak = kernels::PeakMacsPerSecond(isa); peak > 0) {
    state.counters["peak_%"] = benchmark::Counter(macs / peak * 100, benchmark::Counter::kIsRate);
  }
}

// Codes with zero points on both sides. Beside it, as int8.linear: the rows of all heads times one packed weight.
void Run(benchmark::State& state, const linear::Variant& variant, const Case& c, bool as_linear) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  kernels::KernelDesc desc;
  desc.inputs = {kernels::Codes(DType::kU8, {c.heads, c.m, c.k}, 0.02f, 131)};
  desc.outputs = {c.float_result ? kernels::Floats({c.heads, c.m, c.n})
                                 : kernels::Codes(DType::kU8, {c.heads, c.m, c.n}, 0.5f, 120)};
  desc.attributes = {{"activation", Attribute("none")}};
  std::vector<Tensor> inputs = {SeededTensor(desc.input(0), 1)};
  const Tensor weight = SeededTensor(kernels::Codes(DType::kI8, {c.n, c.k}, 0.01f, 0), 2);
  std::unique_ptr<kernels::Kernel> kernel;
  if (as_linear) {
    desc.op = "int8.linear";
    desc.parameters = {{"weight", &weight}};
    kernel = *linear::CreateVariant(desc, variant);
  } else {
    desc.op = "int8.matmul";
    desc.inputs.push_back(kernels::Codes(DType::kU8, {c.heads, c.k, c.n}, 0.01f, 125));
    inputs.push_back(SeededTensor(desc.input(1), 2));
    kernel = *matmul::CreateVariant(desc, variant);
  }
  Time(state, *kernel, inputs, static_cast<double>(c.heads * c.m * c.k * c.n), variant.isa);
}

const bool kRegistered = [] {
  for (const linear::Variant& variant : linear::VariantsOfAnyWeight()) {
    for (const Case& c : kCases) {
      for (const bool as_linear : {false, true}) {
        benchmark::RegisterBenchmark(
            absl::StrCat(variant.name, "/", c.name, as_linear ? "/linear" : "").c_str(),
            [&variant, &c, as_linear](benchmark::State& state) { Run(state, variant, c, as_linear); });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::matmul
