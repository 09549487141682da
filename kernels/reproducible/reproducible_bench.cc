// Beside oneDNN in the same run, on one thread: bazel run //kernels/reproducible:bench -- --benchmark_min_time=0.5
#include "kernels/reproducible/reproducible.h"

#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/fp32/fp32.h"

namespace fuselage::reproducible {
namespace {

using kernels::Floats;
using kernels::KernelDesc;
using Ints = std::vector<int64_t>;

struct Case {
  const char* name;
  int64_t channels, size, filters, kernel, stride, groups;
};
constexpr Case kCases[] = {
    {"stem", 3, 224, 64, 7, 2, 1},          {"layer1", 64, 56, 64, 3, 1, 1},
    {"layer2", 128, 28, 128, 3, 1, 1},      {"layer2_down", 64, 56, 128, 3, 2, 1},
    {"layer3", 256, 14, 256, 3, 1, 1},      {"layer4", 512, 7, 512, 3, 1, 1},
    {"pointwise", 96, 56, 24, 1, 1, 1},     {"pointwise_wide", 160, 7, 960, 1, 1, 1},
    {"depthwise", 144, 56, 144, 3, 1, 144}, {"grouped", 128, 28, 128, 3, 1, 32},
    {"linear", 768, 14, 3072, 1, 1, 1},
};

void Run(benchmark::State& state, const Case& c, bool onednn, kernels::Isa isa) {
  if (!kernels::CpuSupports(isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const Tensor weight = SeededTensor(Floats({c.filters, c.channels / c.groups, c.kernel, c.kernel}), 1);
  const int64_t pad = c.kernel / 2, out = (c.size + 2 * pad - c.kernel) / c.stride + 1;
  KernelDesc desc;
  desc.op = "conv2d";
  desc.isa = isa;
  desc.attributes = {{"stride", Attribute(Ints{c.stride, c.stride})},
                     {"padding", Attribute(Ints{pad, pad, pad, pad})},
                     {"dilation", Attribute(Ints{1, 1})},
                     {"groups", Attribute(c.groups)},
                     {"activation", Attribute("relu")}};
  desc.inputs = {Floats({1, c.channels, c.size, c.size}, Layout::kNhwc)};
  desc.outputs = {Floats({1, c.filters, out, out}, Layout::kNhwc)};
  desc.parameters = {{"weight", &weight}};
  kernels::KernelRegistry registry;
  onednn ? fp32::Register(registry) : Register(registry);
  const auto kernel = registry.FindOrNull("conv2d")->create(desc);
  if (!kernel.ok()) return state.SkipWithError(std::string(kernel.status().message()).c_str());

  const Tensor x = SeededTensor(desc.input(0), 2);
  Tensor y(desc.output());
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status = (*kernel)->Run({{x.raw_data(), x.byte_size()}}, {{y.raw_data(), y.byte_size()}},
                                               {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * desc.output().num_elements() * weight.num_elements() / c.filters);
  state.SetLabel((*kernel)->variant());
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    const std::string name = c.name;
    benchmark::RegisterBenchmark((name + "/onednn").c_str(), Run, c, true, kernels::BestIsa());
    for (const Primitives& primitives : AllPrimitives()) {
      if (primitives.isa == kernels::Isa::kScalar) continue;  // Seconds.
      benchmark::RegisterBenchmark((name + "/" + primitives.name).c_str(), Run, c, false, primitives.isa);
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::reproducible
