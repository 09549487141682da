#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/peak.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear {
namespace {

// M rows of K to N channels.
struct Layer {
  int64_t rows, channels, depth;
  const char* activation;  // u8 result; null: none, f32.
};
// The second is ResNet18's classifier on ImageNet; two are ViT-B's MLP, two the gate of a LLaMA layer's, 5,120 wide as a
// 32B model's; the last mixes the heads of CaiT's attention.
constexpr Layer kLayers[] = {
    {1, 10, 512, nullptr},    {1, 1000, 512, nullptr},  {16, 1000, 512, nullptr},  {256, 512, 512, nullptr},
    {197, 3072, 768, "gelu"}, {197, 768, 3072, "none"}, {1, 25600, 5120, nullptr}, {128, 25600, 5120, nullptr},
    {38416, 4, 4, "none"},
};

void Run(benchmark::State& state, const Variant& variant, const Layer& layer) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t rows = layer.rows, channels = layer.channels, depth = layer.depth;
  Tensor weight(kernels::Codes(DType::kI8, {channels, depth}, 0.01f, 0));
  // Codes of 7 bits, which every variant takes, bell-shaped as after training. They repeat: millions of draws take
  // long.
  std::minstd_rand random;
  int8_t codes[10007];
  for (int8_t& code : codes) {
    code = -62;
    for (int draw = 0; draw < 4; ++draw) code = static_cast<int8_t>(code + (random() >> 8 & 31));
  }
  for (int64_t i = 0; i < weight.num_elements(); ++i) weight.data<int8_t>()[i] = codes[i % 10007];
  kernels::KernelDesc desc;
  desc.op = "int8.linear";
  desc.inputs = {kernels::Codes(DType::kU8, {rows, depth}, 0.02f, 3)};
  desc.outputs = {layer.activation == nullptr ? kernels::Floats({rows, channels})
                                              : kernels::Codes(DType::kU8, {rows, channels}, 0.5f, 20)};
  desc.attributes = {{"activation", Attribute(layer.activation == nullptr ? "none" : layer.activation)}};
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
    for (const Layer& layer : kLayers) {
      if (variant.isa == kernels::Isa::kScalar && layer.channels > 3072) continue;
      const std::string activation = layer.activation == nullptr ? "" : absl::StrCat("/", layer.activation);
      benchmark::RegisterBenchmark(
          absl::StrCat(variant.name, "/M:", layer.rows, "/N:", layer.channels, "/K:", layer.depth, activation).c_str(),
          [&variant, &layer](benchmark::State& state) { Run(state, variant, layer); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::linear
