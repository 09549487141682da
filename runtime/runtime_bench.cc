// What the runtime costs: its joins, its steps, and a whole network beside the noise of the machine.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"
#include "ir/ops/register_all.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/int8_graph_builder.h"
#include "runtime/thread_pool.h"

namespace fuselage::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Latencies of single runs, as counters.
class Percentiles {
 public:
  template <typename Run>
  void Time(const Run& run) {
    const Clock::time_point start = Clock::now();
    run();
    ms_.push_back(MillisecondsSince(start));
  }
  void Report(benchmark::State& state) {
    if (ms_.empty()) return;
    std::sort(ms_.begin(), ms_.end());
    const double median = ms_[ms_.size() / 2];
    state.counters["median_ms"] = median;
    state.counters["p99/median"] = ms_[ms_.size() * 99 / 100] / median;
  }

 private:
  std::vector<double> ms_;
};

void EmptyFor(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    pool.For(pool.threads(), [](int, int) {});
  }
}
BENCHMARK(EmptyFor)->Arg(1)->Arg(2)->UseRealTime();

struct Network {
  Network(const std::function<ir::Node*(Int8GraphBuilder&)>& build, int threads) : pool(threads) {
    ops::RegisterAll(ops);
    kernels::RegisterAll(kernels);
    Int8GraphBuilder builder(ops, DType::kU8);
    ir::Node* result = build(builder);
    const ir::Graph& graph = builder.Output({result});
    inputs = SeededInputs(graph);
    executable = *Executable::Create(graph, kernels, &pool);
    for (const Tensor& input : inputs) input_pointers.push_back(&input);
    for (const TensorType& type : executable->output_types()) outputs.emplace_back(type);
    for (Tensor& output : outputs) output_pointers.push_back(&output);
  }
  void Run() { benchmark::DoNotOptimize(executable->Run(input_pointers, absl::MakeSpan(output_pointers))); }

  ir::OpRegistry ops;
  kernels::KernelRegistry kernels;
  ThreadPool pool;
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
};

// Steps on 64 codes: next to nothing but the runtime.
void TrivialStep(benchmark::State& state) {
  constexpr int kSteps = 1000;
  Network network(
      [](Int8GraphBuilder& g) {
        ir::Node* x = g.Quantized({1, 64});
        for (int i = 0; i < kSteps; ++i) x = g.Relu(x);
        return x;
      },
      static_cast<int>(state.range(0)));
  for (auto _ : state) network.Run();
  state.SetItemsProcessed(state.iterations() * kSteps);
}
BENCHMARK(TrivialStep)->Arg(1)->Arg(2)->UseRealTime();

void ResNet18(benchmark::State& state) {
  Network network([](Int8GraphBuilder& g) { return g.ResNet18(1, 1000); }, static_cast<int>(state.range(0)));
  network.Run();
  Percentiles percentiles;
  for (auto _ : state) percentiles.Time([&] { network.Run(); });
  percentiles.Report(state);
}
BENCHMARK(ResNet18)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// Threads that only count, and meet as often as those of ResNet18 do: what no runtime can be steadier than.
void Counting(benchmark::State& state) {
  constexpr int kMeetings = 20;
  constexpr int kCount = 500000;
  const int threads = static_cast<int>(state.range(0));
  std::atomic<int64_t> arrived{0};
  std::atomic<bool> stop{false};
  const auto meet = [&](int64_t meeting) {
    for (int i = 0; i < kCount; ++i) benchmark::DoNotOptimize(i);
    ++arrived;
    while (arrived < meeting * threads && !stop) {
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int64_t meeting = 1; !stop; ++meeting) meet(meeting);
    });
  }
  int64_t meeting = 0;
  Percentiles percentiles;
  for (auto _ : state) {
    percentiles.Time([&] {
      for (int i = 0; i < kMeetings; ++i) meet(++meeting);
    });
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
  percentiles.Report(state);
}
BENCHMARK(Counting)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fuselage::runtime
