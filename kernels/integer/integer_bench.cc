#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/integer/integer.h"
#include "kernels/integer/tile.h"

namespace fuselage::integer {
namespace {

// range(0) rows of 768 by a known matrix of 768 x 768: a layer of a transformer.
void Matmul(benchmark::State& state, const Variant& variant, DType right) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const auto codes = [](DType dtype, Shape shape) {
    return TensorType{dtype, std::move(shape), std::nullopt, Layout::kRowMajor};
  };
  kernels::KernelDesc desc;
  desc.op = "matmul_integer";
  desc.isa = variant.isa;
  desc.inputs = {codes(DType::kU8, {state.range(0), 768}), codes(right, {768, 768}), codes(DType::kU8, {})};
  desc.outputs = {{DType::kI32, {state.range(0), 768}, std::nullopt, Layout::kRowMajor}};
  const Tensor a = SeededTensor(desc.input(0), 1), b = SeededTensor(desc.input(1), 2),
               zero = SeededTensor(desc.input(2), 3);
  desc.parameters = {{"b", &b}};
  const auto kernel = CreateMatmul(desc);
  Tensor c(desc.output());
  kernels::GuardedMemory scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*kernel)->Run({{a.raw_data(), a.byte_size()}, {b.raw_data(), b.byte_size()}, {zero.raw_data(), 1}},
                       {{c.raw_data(), c.byte_size()}}, {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * a.num_elements() * 768);
  state.SetBytesProcessed(state.iterations() * (a.byte_size() + (*kernel)->weight_bytes() + c.byte_size()));
}

// Layers of MobileNetV2, as many channels out as in.
void Conv(benchmark::State& state, const Variant& variant) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  const int64_t channels = state.range(0), groups = state.range(1), size = state.range(2), kernel = state.range(3);
  const auto codes = [](DType dtype, Shape shape, Layout layout) {
    return TensorType{dtype, std::move(shape), std::nullopt, layout};
  };
  using Ints = std::vector<int64_t>;
  const int64_t pad = kernel / 2;
  kernels::KernelDesc desc;
  desc.op = "conv_integer2d";
  desc.isa = variant.isa;
  desc.attributes = {{"stride", Attribute(Ints{1, 1})},
                     {"padding", Attribute(Ints{pad, pad, pad, pad})},
                     {"dilation", Attribute(Ints{1, 1})},
                     {"groups", Attribute(groups)}};
  desc.inputs = {codes(DType::kU8, {1, channels, size, size}, Layout::kNhwc), codes(DType::kU8, {}, Layout::kRowMajor)};
  desc.outputs = {{DType::kI32, {1, channels, size, size}, std::nullopt, Layout::kNhwc}};
  const Tensor x = SeededTensor(desc.input(0), 1), zero = SeededTensor(desc.input(1), 3);
  const Tensor weight =
      SeededTensor(codes(DType::kI8, {channels, channels / groups, kernel, kernel}, Layout::kRowMajor), 2);
  desc.parameters = {{"weight", &weight}};
  const auto made = CreateConv(desc);
  if (!made.ok()) return state.SkipWithError(std::string(made.status().message()).c_str());
  Tensor y(desc.output());
  kernels::GuardedMemory scratch((*made)->scratch_bytes());
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*made)->Run({{x.raw_data(), x.byte_size()}, {zero.raw_data(), 1}}, {{y.raw_data(), y.byte_size()}},
                     {&serial, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * size * size * weight.num_elements());
  state.SetLabel((*made)->variant());
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    benchmark::RegisterBenchmark((std::string("conv/") + variant.name).c_str(),
                                 [&variant](benchmark::State& state) { Conv(state, variant); })
        ->ArgNames({"channels", "groups", "size", "kernel"})
        ->Args({144, 144, 56, 3})
        ->Args({576, 576, 14, 3})
        ->Args({96, 1, 14, 1})
        ->Args({64, 1, 28, 3});
    for (const DType right : {DType::kI8, DType::kU8}) {  // Without a zero point, so that those of u8 are shifted.
      benchmark::RegisterBenchmark(absl::StrCat(variant.name, " ", DTypeName(right)).c_str(),
                                   [&variant, right](benchmark::State& state) { Matmul(state, variant, right); })
          ->ArgName("rows")
          ->Arg(1)
          ->Arg(21)
          ->Arg(128);
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::integer
