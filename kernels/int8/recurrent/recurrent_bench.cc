#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/recurrent/recurrent.h"
#include "kernels/recurrent/recurrent.h"
#include "runtime/thread_pool.h"

namespace fuselage::int8::recurrent {
namespace {

// 64 steps of one sequence, as many inputs as units: beside the layer of floats.
void Layer(benchmark::State& state, const std::string& op) {
  const int64_t units = state.range(0), rows = fuselage::recurrent::GatesOf(absl::StripPrefix(op, "int8.")) * units;
  const bool codes = absl::StartsWith(op, "int8.");
  const auto weight = [&](uint64_t seed) {
    const TensorType floats = kernels::Floats({1, rows, units});
    return SeededTensor(codes ? kernels::Codes(DType::kI8, floats.shape, 0.0005f, 0) : floats, seed);
  };
  const Tensor input_weight = weight(1), recurrent_weight = weight(2);
  kernels::KernelDesc desc;
  desc.op = op;
  desc.isa = kernels::BestIsa();
  desc.threads = static_cast<int>(state.range(1));
  const Shape x = {64, 1, units};
  desc.inputs = {codes ? kernels::Codes(DType::kU8, x, 0.01f, 128) : kernels::Floats(x)};
  desc.outputs = {kernels::Floats({64, 1, 1, units}), kernels::Floats({1, 1, units}), kernels::Floats({1, 1, units})};
  if (absl::EndsWith(op, "gru")) desc.outputs.pop_back();
  desc.parameters = {{"weight", &input_weight}, {"recurrent_weight", &recurrent_weight}};
  desc.attributes = {{"direction", "forward"},
                     {"activations", std::vector<std::string>{}},
                     {"alpha", std::vector<double>{}},
                     {"beta", std::vector<double>{}},
                     {"clip", 0.0},
                     {"linear_before_reset", true},
                     {"input_forget", false}};
  const auto kernel = codes ? *Create(desc) : *fuselage::recurrent::Create(desc);
  kernels::GuardedMemory input(desc.input(0).byte_size()), scratch(kernel->scratch_bytes());
  if (codes) input.FillRandom(1);
  std::vector<kernels::GuardedMemory> results;
  std::vector<kernels::Buffer> outputs;
  for (const TensorType& type : desc.outputs) results.emplace_back(type.byte_size());
  for (kernels::GuardedMemory& result : results) outputs.push_back({result.data(), result.size()});
  runtime::ThreadPool parallel(desc.threads);
  for (auto _ : state) {
    const absl::Status status = kernel->Run({kernels::ConstBuffer{input.data(), input.size()}}, outputs,
                                            {&parallel, {scratch.data(), scratch.size()}});
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
  }
  state.SetItemsProcessed(state.iterations() * 64 * 2 * rows * units);
  state.SetBytesProcessed(state.iterations() * 64 * recurrent_weight.byte_size());
  state.SetLabel(kernel->variant());
}

const bool kRegistered = [] {
  for (const char* op : {"lstm", "int8.lstm", "gru", "int8.gru"}) {
    auto* bench = benchmark::RegisterBenchmark(op, [op](benchmark::State& state) { Layer(state, op); });
    bench->ArgNames({"units", "threads"})->ArgsProduct({{128, 512, 1024}, {1, 2}})->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::recurrent
