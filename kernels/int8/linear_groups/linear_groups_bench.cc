#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/peak.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/linear_groups/linear_groups.h"

namespace fuselage::int8::linear_groups {
namespace {

// A projection and the gate of a LLaMA layer's MLP, 5,120 wide as a 32B model's: one token and 128.
struct Layer {
  int64_t rows, channels, depth;
};
constexpr Layer kLayers[] = {{1, 1024, 5120}, {128, 1024, 5120}, {1, 25600, 5120}, {128, 25600, 5120}};

constexpr const char* kFormats[] = {"mxfp4", "int4", "int8"};

void Run(benchmark::State& state, const Variant& variant, const Layer& layer, Format format, int64_t group) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t rows = layer.rows, channels = layer.channels, depth = layer.depth;
  const bool is_mxfp4 = format == Format::kMxfp4;
  Tensor weight({is_mxfp4 ? DType::kU8 : DType::kI8, {channels, depth}, std::nullopt, Layout::kRowMajor});
  Tensor scale({is_mxfp4 ? DType::kU8 : DType::kF32, {channels, depth / group}, std::nullopt, Layout::kRowMajor});
  const int64_t codes = is_mxfp4 || format == Format::kInt4 ? 8 : 128;
  for (int64_t i = 0; i < weight.num_elements(); ++i) static_cast<uint8_t*>(weight.raw_data())[i] = i % codes;
  for (int64_t i = 0; i < scale.num_elements(); ++i) scale.Set(i, is_mxfp4 ? 120 : 0.01);
  kernels::KernelDesc desc;
  desc.op = "int8.linear_groups";
  desc.inputs = {TensorType{DType::kI8, {rows, depth}, std::nullopt, Layout::kRowMajor}, kernels::Floats({rows, 1})};
  desc.outputs = {kernels::Floats({rows, channels})};
  desc.attributes = {{"activation", Attribute("none")}, {"group_size", Attribute(group)}};
  desc.parameters = {{"weight", &weight}, {"weight_scale", &scale}};
  const std::unique_ptr<kernels::Kernel> kernel = std::move(*CreateVariant(desc, variant));
  const Tensor x = SeededTensor(desc.input(0), 2), x_scale = SeededTensor(desc.input(1), 3);
  kernels::GuardedMemory y(desc.output().byte_size()), scratch(kernel->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        kernel->Run({kernels::ConstBuffer{x.raw_data(), x.byte_size()},
                     kernels::ConstBuffer{x_scale.raw_data(), x_scale.byte_size()}},
                    {kernels::Buffer{y.data(), y.size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError("the kernel failed");
    benchmark::ClobberMemory();
  }
  const double macs = static_cast<double>(state.iterations() * rows * channels * depth);
  state.counters["GMAC/s"] = benchmark::Counter(macs * 1e-9, benchmark::Counter::kIsRate);
  if (const double peak = kernels::PeakMacsPerSecond(variant.isa); peak > 0) {
    state.counters["peak_%"] = benchmark::Counter(macs / peak * 100, benchmark::Counter::kIsRate);
  }
  state.SetBytesProcessed(state.iterations() * kernel->weight_bytes());
}

// What one token takes at least: weights of so many bits are read from memory once, by what looks for a byte in vain.
void Read(benchmark::State& state, const Layer& layer, double bits) {
  const std::string bytes(static_cast<size_t>(static_cast<double>(layer.channels * layer.depth) * bits / 8), 1);
  for (auto _ : state) benchmark::DoNotOptimize(std::memchr(bytes.data(), 0, bytes.size()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes.size()));
}

const bool kRegistered = [] {
  for (const double bits : {4.25, 8.0}) {
    benchmark::RegisterBenchmark(absl::StrCat("read/bits:", bits, "/N:25600/K:5120").c_str(),
                                 [bits](benchmark::State& state) {
                                   Read(state, {1, 25600, 5120}, bits);
                                 });
  }
  for (const Variant& variant : Variants()) {
    for (const Layer& layer : kLayers) {
      if (variant.isa == kernels::Isa::kScalar && layer.rows > 1 && layer.channels > 1024) continue;
      for (const Format format : {Format::kMxfp4, Format::kInt4, Format::kInt8}) {
        for (const int64_t group : {32, 128}) {
          if (format != Format::kInt4 && group != kUnit) continue;
          if (format != Format::kMxfp4 && layer.channels > 1024) continue;
          benchmark::RegisterBenchmark(absl::StrCat(variant.name, "/", kFormats[static_cast<int>(format)], "/G:", group,
                                                    "/M:", layer.rows, "/N:", layer.channels, "/K:", layer.depth)
                                           .c_str(),
                                       [&variant, &layer, format, group](benchmark::State& state) {
                                         Run(state, variant, layer, format, group);
                                       });
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::linear_groups
