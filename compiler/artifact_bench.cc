// What it takes to come to a session: from an ONNX file, from a .fuse file with and without packed weights.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <string>

#include "compiler/compiler.h"

namespace fuselage {
namespace {

const std::string kOnnx = "models/resnet18_fashion_mnist.onnx";

// ResNet18 in INT8, as a file.
std::string FuseFile(bool packed) {
  static const Model int8 = [] {
    const Model network = *Load(kOnnx);
    TensorType type = network.inputs()[0].type;
    type.shape[0] = 2;
    return *Compile(network, {{network.inputs()[0].name, SeededTensor(type, 1)}});
  }();
  const char* folder = getenv("TEST_TMPDIR");
  const std::string path =
      std::string(folder == nullptr ? "/tmp" : folder) + (packed ? "/bench.fuse" : "/bench_unpacked.fuse");
  SaveOptions options;
  if (!packed) options.isas.clear();
  if (!Save(int8, path, options).ok()) abort();
  return path;
}

void BM_LoadOnnx(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Load(kOnnx).value());
}
BENCHMARK(BM_LoadOnnx)->Unit(benchmark::kMillisecond);

void BM_LoadFuse(benchmark::State& state) {
  const std::string path = FuseFile(true);
  for (auto _ : state) {
    absl::StatusOr<Model> model = Load(path);
    benchmark::DoNotOptimize(model);
    state.PauseTiming();  // Unmapping the file is no part of loading it.
    model = absl::CancelledError();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_LoadFuse)->Unit(benchmark::kMillisecond);

// The model is new each time, so that its weights are not packed yet where the file has none.
void LoadAndPrepare(benchmark::State& state, bool packed) {
  const std::string path = FuseFile(packed);
  for (auto _ : state) {
    const Model model = Load(path).value();
    benchmark::DoNotOptimize(Prepare(model).value());
  }
}
void BM_LoadAndPrepare(benchmark::State& state) { LoadAndPrepare(state, true); }
void BM_LoadAndPrepareUnpacked(benchmark::State& state) { LoadAndPrepare(state, false); }
BENCHMARK(BM_LoadAndPrepare)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_LoadAndPrepareUnpacked)->Unit(benchmark::kMillisecond);

// Another session of a model that has one.
void BM_PrepareAgain(benchmark::State& state) {
  const Model model = Load(FuseFile(true)).value();
  const Session first = Prepare(model).value();
  for (auto _ : state) benchmark::DoNotOptimize(Prepare(model).value());
}
BENCHMARK(BM_PrepareAgain)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fuselage
