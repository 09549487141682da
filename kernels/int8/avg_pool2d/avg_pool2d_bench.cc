#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/avg_pool2d/avg_pool2d.h"

namespace fuselage::int8::avg_pool2d {
namespace {

struct Pool {
  const char* name;
  int64_t channels;
  kernels::PoolWindow::Axis axis;
};
constexpr Pool kPools[] = {
    {"resnet18 head", 512, {7, 1, 7, 1, 1, 0, 0}},   {"densenet121", 256, {28, 14, 2, 2, 1, 0, 0}},
    {"inception 3x3", 192, {35, 35, 3, 1, 1, 1, 1}}, {"short 24", 24, {56, 28, 2, 2, 1, 0, 0}},
    {"short 12", 12, {56, 56, 3, 1, 1, 1, 1}},       {"lenet5", 6, {28, 14, 2, 2, 1, 0, 0}},
};

void Run(benchmark::State& state, const Variant& variant, const Pool& pool) {
  if (!kernels::CpuSupports(variant.isa)) return state.SkipWithError("this CPU lacks the instruction set");
  Params params;
  params.window.channels = pool.channels;
  for (auto& axis : params.window.axes) axis = pool.axis;
  const auto bytes = [&](int64_t size) { return size * size * pool.channels; };
  params.window.x = {0, bytes(pool.axis.in), pool.axis.in * pool.channels, pool.channels};
  params.window.y = {0, bytes(pool.axis.out), pool.axis.out * pool.channels, pool.channels};
  kernels::GuardedMemory x(bytes(pool.axis.in)), y(bytes(pool.axis.out));
  x.FillRandom(1);
  for (auto _ : state) {
    variant.run(params, x.data(), y.data(), 0, pool.axis.out);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * y.size());
  state.SetBytesProcessed(state.iterations() * (x.size() + y.size()));
}

const bool kRegistered = [] {
  for (const Variant& variant : Variants()) {
    for (const Pool& pool : kPools) {
      benchmark::RegisterBenchmark(absl::StrCat(variant.name, "/", pool.name).c_str(),
                                   [&](benchmark::State& state) { Run(state, variant, pool); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace fuselage::int8::avg_pool2d
