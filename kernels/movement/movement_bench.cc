#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/movement/movement.h"

namespace fuselage::movement {
namespace {

// 56x56x64 from NCHW to NHWC by a permute, the worst case; range(0): bytes of an element.
void Permute(benchmark::State& state) {
  kernels::KernelDesc desc;
  desc.op = "permute";
  const DType dtype = state.range(0) == 1 ? DType::kU8 : DType::kF32;
  desc.inputs = {TensorType{dtype, {1, 64, 56, 56}, std::nullopt, Layout::kRowMajor}};
  desc.outputs = {TensorType{dtype, {1, 56, 56, 64}, std::nullopt, Layout::kRowMajor}};
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
BENCHMARK(Permute)->Arg(1)->Arg(4);

}  // namespace
}  // namespace fuselage::movement
