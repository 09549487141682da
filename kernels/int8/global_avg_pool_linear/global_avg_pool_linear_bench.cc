#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"
#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear.h"
#include "kernels/int8/linear/linear.h"
#include "runtime/thread_pool.h"

namespace fuselage::int8::global_avg_pool_linear {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;

// ResNet18's head: 7x7x512 to f32 logits of so many classes, as two kernels (fused:0) and as one.
void Head(benchmark::State& state) {
  const bool fused = state.range(0) == 1;
  const int64_t batch = state.range(1), classes = state.range(3);
  const int threads = static_cast<int>(state.range(2));
  const Tensor weight = SeededTensor(kernels::Codes(DType::kI8, {classes, 512}, 0.01f, 0), 1);
  KernelDesc whole;
  whole.isa = kernels::BestIsa();
  whole.threads = threads;
  whole.inputs = {kernels::Codes(DType::kU8, {batch, 512, 7, 7}, 0.02f, 0, Layout::kNhwc)};
  whole.outputs = {kernels::Floats({batch, classes})};
  whole.parameters["weight"] = &weight;
  whole.attributes = {{"activation", "none"},
                      {"pool_out_dtype", DType::kU8},
                      {"pool_out_scale", Attribute(0.005)},
                      {"pool_out_zero_point", 0}};
  std::vector<std::unique_ptr<Kernel>> kernels;
  if (fused) {
    kernels.push_back(*Create(whole));
  } else {
    KernelDesc pool = whole, linear = whole;
    pool.op = "int8.global_avg_pool";
    pool.outputs = {kernels::Codes(DType::kU8, {batch, 512, 1, 1}, 0.005f, 0, Layout::kNhwc)};
    linear.inputs = {kernels::Codes(DType::kU8, {batch, 512}, 0.005f, 0)};
    kernels.push_back(*avg_pool2d::Create(pool));
    kernels.push_back(*linear::Create(linear));
  }
  std::vector<kernels::GuardedMemory> values;
  values.emplace_back(whole.input(0).byte_size());
  values[0].FillRandom(1);
  int64_t scratch_bytes = 0;
  for (const auto& kernel : kernels) {
    values.emplace_back(kernel->outputs()[0].byte_size());
    scratch_bytes = std::max(scratch_bytes, kernel->scratch_bytes());
  }
  kernels::GuardedMemory scratch(scratch_bytes);
  runtime::ThreadPool parallel(threads);
  for (auto _ : state) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      const absl::Status status = kernels[i]->Run({ConstBuffer{values[i].data(), values[i].size()}},
                                                  {Buffer{values[i + 1].data(), values[i + 1].size()}},
                                                  {&parallel, {scratch.data(), scratch.size()}});
      if (!status.ok()) return state.SkipWithError("the kernel failed");
    }
  }
  state.SetItemsProcessed(state.iterations() * batch);
  state.SetBytesProcessed(state.iterations() * (values[0].size() + weight.byte_size()));
}

BENCHMARK(Head)
    ->ArgNames({"fused", "batch", "threads", "classes"})
    ->ArgsProduct({{0, 1}, {1, 16}, {1, 2}, {10, 1000}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace fuselage::int8::global_avg_pool_linear
