#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/movement/movement.h"

namespace fuselage::movement {
namespace {

// From NCHW to NHWC by a permute; range(0): bytes of an element, range(1): channels, range(2): height and width.
void Permute(benchmark::State& state) {
  kernels::KernelDesc desc;
  desc.op = "permute";
  const int64_t channels = state.range(1), size = state.range(2);
  const DType dtype = state.range(0) == 1 ? DType::kU8 : DType::kF32;
  desc.inputs = {TensorType{dtype, {1, channels, size, size}, std::nullopt, Layout::kRowMajor}};
  desc.outputs = {TensorType{dtype, {1, size, size, channels}, std::nullopt, Layout::kRowMajor}};
  desc.attributes = {{"dims", Attribute(std::vector<int64_t>{0, 2, 3, 1})}};
  const auto kernel = Create(desc);
  const Tensor x = SeededTensor(*desc.inputs[0], 1);
  Tensor y(desc.outputs[0]);
  kernels::Serial serial;
  for (auto _ : state) {
    const absl::Status status =
        (*kernel)->Run({{x.raw_data(), x.byte_size()}}, {{y.raw_data(), y.byte_size()}}, {&serial, {}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * x.byte_size());
}
BENCHMARK(Permute)->ArgNames({"bytes", "c", "hw"})->ArgsProduct({{1, 4}, {64}, {56}})->ArgsProduct({{1, 4}, {8, 32}, {28}});

}  // namespace
}  // namespace fuselage::movement
