// Times every tiling of ResNet18's layers on the current device and prints the best ones as rows of TunedTilings(),
// each behind a comment with each tile's best splits and their time, and the stem's time by rows of a segment:
//
//   bazel run -c opt //kernels/int8/conv2d/cuda:tiling_bench -- 1 64 256          batches
//
// A time is the median over replays of a graph with kRuns launches of the kernel, which overlap as they do in a network
// where they can, its operands in the L2 cache as they are in one of small batches.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"
#include "kernels/int8/conv2d/cuda/conv2d_cuda.h"
#include "kernels/int8/conv2d/cuda/kernel_id.h"
#include "kernels/int8/conv2d/cuda/testing.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::NextLaunch;
using ::fuselage::cuda::Overlap;
using ::fuselage::cuda::ToStatus;

constexpr int kRuns = 20, kReplays = 9;

// Records `kernel` kRuns times; the graph owns nothing else.
absl::StatusOr<cudaGraphExec_t> Record(const kernels::Kernel& kernel, absl::Span<const kernels::ConstBuffer> inputs,
                                       const kernels::Buffer& output, const kernels::Buffer& scratch,
                                       cudaStream_t stream) {
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  context.scratch = scratch;
  context.stream = stream;
  // Before the capture: uploads are done, and the kernels' code is loaded.
  RETURN_IF_ERROR(ToStatus(cudaDeviceSynchronize(), "uploads"));
  RETURN_IF_ERROR(kernel.Run(inputs, {output}, context));
  RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream), kernel.variant()));
  RETURN_IF_ERROR(ToStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture"));
  absl::Status status;
  for (int i = 0; i < kRuns && status.ok(); ++i) {
    if (i > 0 && CurrentDevice()->sm >= 90) NextLaunch() = Overlap::kNext;
    status = kernel.Run(inputs, {output}, context);
  }
  NextLaunch() = Overlap::kNone;
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(ToStatus(error, "capture"));
  cudaGraphExec_t exec = nullptr;
  const absl::Status instantiated = ToStatus(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
  RETURN_IF_ERROR(instantiated);
  return exec;
}

// Microseconds of one run. `desc` is of the instance.
absl::StatusOr<float> Time(const kernels::KernelDesc& desc, const Instance& instance, const PlanOptions& options,
                           cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto kernel, Create(desc, options));
  ASSIGN_OR_RETURN(const auto input, DeviceBuffer::Upload(instance.input.data(), instance.input.size(), "the input"));
  DeviceBuffer residual;
  if (!instance.residual.empty()) {
    ASSIGN_OR_RETURN(residual,
                     DeviceBuffer::Upload(instance.residual.data(), instance.residual.size(), "the residual"));
  }
  ASSIGN_OR_RETURN(const auto scratch,
                   DeviceBuffer::Allocate(std::max<int64_t>(1, kernel->scratch_bytes()), "scratch"));
  ASSIGN_OR_RETURN(const auto output, DeviceBuffer::Allocate(kernel->outputs()[0].byte_size(), "the output"));
  const kernels::ConstBuffer inputs[] = {{input.data(), input.bytes()}, {residual.data(), residual.bytes()}};
  ASSIGN_OR_RETURN(cudaGraphExec_t exec,
                   Record(*kernel, absl::MakeConstSpan(inputs, desc.inputs.size()), {output.data(), output.bytes()},
                          {scratch.data(), scratch.bytes()}, stream));
  cudaEvent_t begin, end;
  RETURN_IF_ERROR(ToStatus(cudaEventCreate(&begin), "cudaEventCreate"));
  RETURN_IF_ERROR(ToStatus(cudaEventCreate(&end), "cudaEventCreate"));
  std::vector<float> times;
  absl::Status status;
  for (int i = 0; i <= kReplays && status.ok(); ++i) {
    cudaEventRecord(begin, stream);
    cudaGraphLaunch(exec, stream);
    cudaEventRecord(end, stream);
    status = ToStatus(cudaStreamSynchronize(stream), kernel->variant());
    float ms = 0;
    if (status.ok()) status = ToStatus(cudaEventElapsedTime(&ms, begin, end), kernel->variant());
    if (i > 0) times.push_back(ms * 1000 / kRuns);  // The first warms up.
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  RETURN_IF_ERROR(status);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

std::string Initializer(const Tiling& tiling) {
  return absl::StrFormat("{%d, %d%s}", tiling.tile, tiling.splits, tiling.clusters ? ", true" : "");
}

absl::Status Tune(const Case& c, const ::fuselage::cuda::DeviceProperties& device, cudaStream_t stream) {
  const Instance instance(c, 1);
  ASSIGN_OR_RETURN(const Problem problem, ProblemOf(instance.Desc()));
  const GemmSize size = GemmSizeOf(problem.geometry);
  const Tiling chosen = ChooseTiling(size, device, {});
  Tiling best;
  float least = 0, of_chosen = 0;
  std::string of_tiles;  // The best of each.
  for (int tile = 0; tile < kTileCount; ++tile) {
    Tiling best_splits;
    float least_of_tile = 0;
    // Splits are for products that leave multiprocessors idle.
    const int64_t blocks = int64_t{size.rows} * size.columns / kTiles[tile].rows / kTiles[tile].columns;
    const int most = blocks > 2 * device.multiprocessors ? 1 : std::min(16, size.steps / 2 + 1);
    for (int i = 2; i <= 2 * most + 1; ++i) {
      const Tiling tiling = {tile, /*splits=*/i / 2, /*clusters=*/i % 2 == 1};
      if (!TilingRuns(size, tiling, device)) continue;
      PlanOptions options;
      options.family = Family::kGemm;
      options.tiling = tiling;
      ASSIGN_OR_RETURN(const float time, Time(instance.Desc(), instance, options, stream));
      if (least == 0 || time < least) least = time, best = tiling;
      if (least_of_tile == 0 || time < least_of_tile) least_of_tile = time, best_splits = tiling;
      if (tiling == chosen) of_chosen = time;
    }
    if (least_of_tile > 0) absl::StrAppendFormat(&of_tiles, " %s %.2f", Initializer(best_splits), least_of_tile);
  }
  std::printf("    //%s\n", of_tiles.c_str());
  std::printf("    {%d, {%d, %d, %d, %d, %d, %d}, %s},  // %.2f us; the model's choice %s: %.2f us\n", device.sm,
              size.rows, size.columns, size.steps, size.taps, size.slices, size.around, Initializer(best).c_str(),
              least, Initializer(chosen).c_str(), of_chosen);
  std::fflush(stdout);
  return absl::OkStatus();
}

// A stem with its max pool of 3x3 in steps of 2.
absl::Status TimeSegments(const Case& c, cudaStream_t stream) {
  const Instance instance(c, 1);
  const kernels::PoolWindow pool = SquarePool(c, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
  std::string times;
  for (const int rows : {1, 2, 4, 7, 10, 14, 19, 28}) {
    PlanOptions options;
    options.segment = rows;
    ASSIGN_OR_RETURN(const float time, Time(PooledDesc(instance, pool), instance, options, stream));
    absl::StrAppendFormat(&times, " %d: %.2f us", rows, time);
  }
  std::printf("    // stem, batch %d, by rows of a segment:%s\n", c.batch, times.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Main(const std::vector<int>& batches) {
  const auto device = CurrentDevice();
  if (device.status().code() == absl::StatusCode::kUnavailable) {
    std::printf("SKIPPED: no CUDA device\n");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(device.status());
  cudaStream_t stream;
  RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  for (const int batch : batches) {
    std::set<std::tuple<int, int, int>> seen;  // The residual does not distinguish entries; the last layer has it.
    std::vector<Case> layers = ResNet18(batch);
    RETURN_IF_ERROR(TimeSegments(layers[0], stream));
    std::reverse(layers.begin(), layers.end());
    for (const Case& c : layers) {
      if (c.in_channels % 16 != 0) continue;
      if (!seen.insert({c.out_height(), c.out_channels, c.in_channels * c.kernel_height * c.kernel_width}).second) {
        continue;
      }
      RETURN_IF_ERROR(Tune(c, *device, stream));
    }
  }
  return ToStatus(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

}  // namespace
}  // namespace fuselage::int8::conv2d::cuda

int main(int argc, char** argv) {
  std::vector<int> batches;
  for (int i = 1; i < argc; ++i) batches.push_back(std::atoi(argv[i]));
  if (batches.empty()) batches = {1};
  for (const int batch : batches) {
    if (batch < 1 || batch > 4096) {
      std::fprintf(stderr, "tiling_bench: batches in [1, 4096] wanted\n");
      return 2;
    }
  }
  const absl::Status status = fuselage::int8::conv2d::cuda::Main(batches);
  if (!status.ok()) std::fprintf(stderr, "tiling_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
