#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/movement/movement.h"

namespace fuselage::movement {
namespace {

void Run(benchmark::State& state, const kernels::KernelDesc& desc) {
  const auto kernel = Create(desc);
  std::vector<Tensor> operands;
  std::vector<kernels::ConstBuffer> inputs;
  for (const auto& input : desc.inputs) operands.push_back(SeededTensor(*input, 1));
  for (const Tensor& operand : operands) inputs.push_back({operand.raw_data(), operand.byte_size()});
  Tensor y(desc.outputs[0]);
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status = (*kernel)->Run(inputs, {{y.raw_data(), y.byte_size()}}, {&serial, {}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * y.byte_size());
}

// Three images' channels behind each other, in NHWC; range(0): channels, range(1): height and width.
void Cat(benchmark::State& state) {
  kernels::KernelDesc desc;
  desc.op = "cat";
  TensorType type = {DType::kU8, {1, state.range(0), state.range(1), state.range(1)}, std::nullopt, Layout::kNhwc};
  desc.inputs = {type, type, type};
  type.shape[1] *= 3;
  desc.outputs = {type};
  desc.attributes = {{"dim", Attribute(1)}};
  Run(state, desc);
}
BENCHMARK(Cat)->ArgNames({"c", "hw"})->ArgsProduct({{3, 8, 12, 16, 24, 32, 48, 64, 96}, {56}});

// From NCHW to NHWC by a permute; range(0): bytes of an element, range(1): channels, range(2): height and width.
void Permute(benchmark::State& state) {
  kernels::KernelDesc desc;
  desc.op = "permute";
  const int64_t channels = state.range(1), size = state.range(2);
  const DType dtype = state.range(0) == 1 ? DType::kU8 : DType::kF32;
  desc.inputs = {TensorType{dtype, {1, channels, size, size}, std::nullopt, Layout::kRowMajor}};
  desc.outputs = {TensorType{dtype, {1, size, size, channels}, std::nullopt, Layout::kRowMajor}};
  desc.attributes = {{"dims", Attribute(std::vector<int64_t>{0, 2, 3, 1})}};
  Run(state, desc);
}
BENCHMARK(Permute)
    ->ArgNames({"bytes", "c", "hw"})
    ->ArgsProduct({{1, 4}, {64}, {56}})
    ->ArgsProduct({{1, 4}, {8, 32}, {28}});

}  // namespace
}  // namespace fuselage::movement
