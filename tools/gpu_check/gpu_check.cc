// gpu_check [--quick] [--batches=1,64]: docs/cuda.md. Exit codes: 0 ok, 1 a mismatch or an error, 2 usage or no device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/base/status.h"
#include "kernels/core/isa.h"
#include "kernels/cuda/device.h"
#include "kernels/register_all.h"
#include "kernels/register_all_cuda.h"
#include "runtime/thread_pool.h"
#include "tools/gpu_check/cases.h"

namespace fuselage::gpu_check {
namespace {

using cuda::DeviceBuffer;
using cuda::ToStatus;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;

constexpr int kQuickCases = 24, kRandomCases = 400;
constexpr int kInner = 10, kWarmups = 3, kSamples = 31;
// Between two events: the first of them passes before a launch has reached an idle device.
constexpr int kReplays = 20;
// Beyond these the CPU's best instruction set stands in for the scalar kernel; its tests hold the two to the same bits.
constexpr int64_t kScalarMacs = 4000000000;
// What lies behind an output on the device, and must stay.
constexpr int64_t kGuardBytes = 256;
constexpr uint8_t kGuard = 0xa5;

struct Options {
  bool quick = false;
  std::vector<int> batches = {1, 64, 256};
};

// Dense INT8 operations of one multiprocessor in one cycle (NVIDIA's architecture whitepapers); 0: not known.
double OperationsPerCycle(int sm) {
  switch (sm) {
    case 80: return 4096;
    case 86:
    case 87:
    case 89: return 2048;
    case 90: return 8192;
    default: return 0;
  }
}

double PeakTops(const cuda::DeviceProperties& device) {
  int kilohertz = 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0) != cudaSuccess) return 0;
  return OperationsPerCycle(device.sm) * device.multiprocessors * kilohertz * 1e3 / 1e12;
}

absl::StatusOr<std::vector<Tensor>> RunOnCpu(const Case& c, const kernels::KernelEntry& entry,
                                             runtime::ThreadPool* pool) {
  kernels::KernelDesc desc = c.desc;
  desc.isa = c.macs > kScalarMacs ? kernels::BestIsa() : kernels::Isa::kScalar;
  desc.threads = pool->threads();
  ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, entry.create(desc));
  std::vector<ConstBuffer> inputs;
  for (const auto& input : c.inputs) {
    inputs.push_back(input ? ConstBuffer{input->raw_data(), input->byte_size()} : ConstBuffer());
  }
  Tensor scratch(DType::kU8, {kernel->scratch_bytes()});
  std::vector<Tensor> results(desc.outputs.begin(), desc.outputs.end());
  std::vector<Buffer> outputs;
  for (Tensor& result : results) outputs.push_back({result.raw_data(), result.byte_size()});
  RETURN_IF_ERROR(kernel->Run(inputs, outputs, {pool, {scratch.raw_data(), scratch.byte_size()}}));
  return results;
}

// A kernel with its operands on the device.
class OnDevice {
 public:
  static absl::StatusOr<std::unique_ptr<OnDevice>> Create(const Case& c, const kernels::KernelEntry& entry) {
    auto made = std::make_unique<OnDevice>();
    ASSIGN_OR_RETURN(made->kernel_, entry.create(c.desc));
    for (const auto& input : c.inputs) {
      DeviceBuffer buffer;
      if (input) {
        ASSIGN_OR_RETURN(buffer, DeviceBuffer::Upload(input->raw_data(), input->byte_size(), "an input"));
      }
      made->inputs_.push_back({buffer.data(), buffer.bytes()});
      made->owned_.push_back(std::move(buffer));
    }
    if (made->kernel_->scratch_bytes() > 0) {
      ASSIGN_OR_RETURN(made->scratch_, DeviceBuffer::Allocate(made->kernel_->scratch_bytes(), "scratch"));
      // Not zeros, which would hide that a kernel reads what nobody wrote.
      RETURN_IF_ERROR(ToStatus(cudaMemset(made->scratch_.data(), kGuard, made->scratch_.bytes()), "cudaMemset"));
    }
    for (const TensorType& type : c.desc.outputs) {
      const int64_t bytes = type.byte_size() + kGuardBytes;
      ASSIGN_OR_RETURN(DeviceBuffer output, DeviceBuffer::Allocate(bytes, "an output"));
      RETURN_IF_ERROR(ToStatus(cudaMemset(output.data(), kGuard, bytes), "cudaMemset"));
      made->outputs_.push_back({output.data(), type.byte_size()});
      made->owned_.push_back(std::move(output));
    }
    RETURN_IF_ERROR(ToStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
    return made;
  }

  absl::Status Launch(cudaStream_t stream) {
    RETURN_IF_ERROR(kernel_->Run(inputs_, outputs_, {&serial_, {scratch_.data(), scratch_.bytes()}, stream}));
    return ToStatus(cudaGetLastError(), kernel_->variant());
  }

  // "" where the device has the same bytes, and none behind them.
  absl::StatusOr<std::string> Difference(const std::vector<Tensor>& wanted) const {
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSIGN_OR_RETURN(std::string difference, Difference(outputs_[i], wanted[i]));
      if (!difference.empty()) return i == 0 ? difference : absl::StrCat("output ", i, ": ", difference);
    }
    return std::string();
  }

  const Kernel& kernel() const { return *kernel_; }

 private:
  absl::StatusOr<std::string> Difference(const Buffer& output, const Tensor& wanted) const {
    std::vector<uint8_t> found(output.bytes + kGuardBytes);
    RETURN_IF_ERROR(
        ToStatus(cudaMemcpy(found.data(), output.data, found.size(), cudaMemcpyDeviceToHost), kernel_->variant()));
    const auto* bytes = static_cast<const uint8_t*>(wanted.raw_data());
    const int64_t size = wanted.byte_size();
    int64_t different = 0, first = -1;
    for (int64_t i = 0; i < size; ++i) {
      if (found[i] == bytes[i]) continue;
      if (different++ == 0) first = i;
    }
    if (different > 0) {
      return absl::StrCat(different, " of ", size, " bytes differ, first byte ", first, ": found ", found[first],
                          ", wanted ", bytes[first]);
    }
    if (std::any_of(found.begin() + size, found.end(), [](uint8_t byte) { return byte != kGuard; })) {
      return std::string("bytes behind the output were written");
    }
    return std::string();
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<DeviceBuffer> owned_;
  std::vector<ConstBuffer> inputs_;
  std::vector<Buffer> outputs_;
  DeviceBuffer scratch_;
  kernels::Serial serial_;
};

// Median time of what `launch` puts on the stream, in microseconds: `inner` times in one CUDA graph.
absl::StatusOr<double> Microseconds(cudaStream_t stream, int inner, const std::function<absl::Status()>& launch) {
  RETURN_IF_ERROR(ToStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture"));
  absl::Status status;
  for (int i = 0; i < inner && status.ok(); ++i) status = launch();
  cudaGraph_t graph = nullptr;
  const cudaError_t captured = cudaStreamEndCapture(stream, &graph);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(ToStatus(captured, "end capture"));
  cudaGraphExec_t exec = nullptr;
  RETURN_IF_ERROR(ToStatus(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate"));
  cudaEvent_t start, end;
  RETURN_IF_ERROR(ToStatus(cudaEventCreate(&start), "event"));
  RETURN_IF_ERROR(ToStatus(cudaEventCreate(&end), "event"));
  std::vector<float> times;
  for (int i = 0; i < kWarmups + kSamples; ++i) {
    RETURN_IF_ERROR(ToStatus(cudaEventRecord(start, stream), "event"));
    for (int replay = 0; replay < kReplays; ++replay) {
      RETURN_IF_ERROR(ToStatus(cudaGraphLaunch(exec, stream), "graph launch"));
    }
    RETURN_IF_ERROR(ToStatus(cudaEventRecord(end, stream), "event"));
    RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream), "graph"));
    float ms = 0;
    RETURN_IF_ERROR(ToStatus(cudaEventElapsedTime(&ms, start, end), "event"));
    if (i >= kWarmups) times.push_back(ms);
  }
  cudaEventDestroy(end);
  cudaEventDestroy(start);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] * 1e3 / (inner * kReplays);
}

class Checker {
 public:
  absl::Status Init() {
    kernels::RegisterAll(cpu_);
    kernels::RegisterAllCuda(cuda_);
    ASSIGN_OR_RETURN(device_, cuda::CurrentDevice());
    cudaDeviceProp properties;
    RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, 0), "properties"));
    peak_tops_ = PeakTops(device_);
    std::printf("%s, sm_%d, %d multiprocessors, peak %.0f INT8 TOPS\n", properties.name, device_.sm,
                device_.multiprocessors, peak_tops_);
    return ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  }

  // Null: there is no CUDA kernel for it.
  absl::StatusOr<std::unique_ptr<OnDevice>> Check(const Case& c) {
    const kernels::KernelEntry* entry = cuda_.FindOrNull(c.desc.op);
    if (entry == nullptr) {
      ++missing_[c.desc.op];
      return std::unique_ptr<OnDevice>();
    }
    const kernels::KernelEntry* cpu = cpu_.FindOrNull(c.desc.op);
    if (cpu == nullptr) return absl::NotFoundError(absl::StrCat(c.desc.op, " has no CPU kernel to compare with"));
    ASSIGN_OR_RETURN(std::unique_ptr<OnDevice> on_device, OnDevice::Create(c, *entry));
    ASSIGN_OR_RETURN(const std::vector<Tensor> wanted, RunOnCpu(c, *cpu, &pool_));
    RETURN_IF_ERROR(on_device->Launch(stream_));
    RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_), on_device->kernel().variant()));
    ASSIGN_OR_RETURN(difference_, on_device->Difference(wanted));
    ++checked_;
    if (!difference_.empty()) {
      ++mismatches_;
      std::printf("MISMATCH: %s (%s): %s\n", c.name.c_str(), on_device->kernel().variant().c_str(),
                  difference_.c_str());
    }
    return on_device;
  }

  absl::Status CheckRandom(int count) {
    for (const Case& c : RandomCases(count)) {
      const auto checked = Check(c);
      if (!checked.ok()) return Annotate(checked.status(), c.name);
    }
    std::printf("random shapes: %d checked, %d mismatches\n", checked_, mismatches_);
    return absl::OkStatus();
  }

  // `images`: that the layers are a whole network's, in order, for so many; 0: they are not.
  absl::Status CheckLayers(const std::string& title, const std::vector<Case>& cases, int images) {
    std::printf("\n%s\n%-40s %-28s %9s %8s %7s %s\n", title.c_str(), "layer", "variant", "us", "TOPS", "% peak", "ok");
    std::vector<std::unique_ptr<OnDevice>> layers;
    std::vector<int> repetitions;
    double total = 0;
    std::string without;
    for (const Case& c : cases) {
      auto checked = Check(c);
      if (!checked.ok()) return Annotate(checked.status(), c.name);
      if (*checked == nullptr) {
        std::printf("%-40s %-28s\n", c.name.c_str(), "no CUDA kernel");
        without += (without.empty() ? "" : ", ") + c.name;
        continue;
      }
      OnDevice& layer = **checked;
      ASSIGN_OR_RETURN(const double us, Microseconds(stream_, kInner, [&] { return layer.Launch(stream_); }));
      total += us * c.repetitions;
      const double tops = 2e-6 * static_cast<double>(c.macs) / us;
      std::printf("%-40s %-28s %9.2f %8.1f %7.1f %s%s\n", c.name.c_str(), layer.kernel().variant().c_str(), us, tops,
                  peak_tops_ > 0 ? 100 * tops / peak_tops_ : 0.0, difference_.empty() ? "ok" : "MISMATCH",
                  c.repetitions > 1 ? absl::StrCat("  x ", c.repetitions).c_str() : "");
      layers.push_back(*std::move(checked));
      repetitions.push_back(c.repetitions);
    }
    if (images == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const double us, Microseconds(stream_, 1, [&]() -> absl::Status {
                       for (size_t i = 0; i < layers.size(); ++i) {
                         for (int n = 0; n < repetitions[i]; ++n) RETURN_IF_ERROR(layers[i]->Launch(stream_));
                       }
                       return absl::OkStatus();
                     }));
    std::printf("sum of layers: %.1f us; all in one CUDA graph: %.1f us, %.0f images/s%s\n", total, us,
                images / us * 1e6, without.empty() ? "" : (" without " + without).c_str());
    return absl::OkStatus();
  }

  bool Report() const {
    for (const auto& [op, count] : missing_)
      std::printf("no CUDA kernel for %s: %d cases not run\n", op.c_str(), count);
    std::printf("\n%d cases checked, %d mismatches: %s\n", checked_, mismatches_,
                mismatches_ == 0 && checked_ > 0 ? "ok" : "FAILED");
    return mismatches_ == 0 && checked_ > 0;
  }

 private:
  kernels::KernelRegistry cpu_, cuda_;
  runtime::ThreadPool pool_{std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
  cuda::DeviceProperties device_;
  cudaStream_t stream_ = nullptr;
  double peak_tops_ = 0;
  int checked_ = 0, mismatches_ = 0;
  std::string difference_;  // What the last check found.
  std::map<std::string, int> missing_;
};

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--quick") {
      options->quick = true;
    } else if (absl::ConsumePrefix(&argument, "--batches=")) {
      options->batches.clear();
      for (absl::string_view part : absl::StrSplit(argument, ',')) {
        int batch = 0;
        if (!absl::SimpleAtoi(part, &batch) || batch < 1) return false;
        options->batches.push_back(batch);
      }
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: gpu_check [--quick] [--batches=1,64,256]\n");
    return 2;
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "gpu_check: no CUDA device: %s\n", cudaGetErrorString(error));
    return 2;
  }
  Checker checker;
  absl::Status status = checker.Init();
  if (status.ok()) status = checker.CheckRandom(options.quick ? kQuickCases : kRandomCases);
  for (int batch : options.quick ? std::vector<int>() : options.batches) {
    const std::string of_batch = absl::StrCat(", batch ", batch);
    if (status.ok()) status = checker.CheckLayers("ResNet18" + of_batch, ResNet18(batch), batch);
    if (status.ok())
      status = checker.CheckLayers("other networks' layers" + of_batch, OtherLayers(batch), /*images=*/0);
  }
  const bool same = checker.Report();
  if (!status.ok()) std::fprintf(stderr, "gpu_check: %s\n", std::string(status.message()).c_str());
  return status.ok() && same ? 0 : 1;
}

}  // namespace
}  // namespace fuselage::gpu_check

int main(int argc, char** argv) { return fuselage::gpu_check::Main(argc, argv); }
