#include "harness/measure/peaks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/text_format.h"
#include "harness/base/files.h"
#include "ir/base/sha256.h"
#include "ir/base/status.h"
#include "ir/text.h"
#include "kernels/core/isa.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

constexpr double kSecondsEach = 0.1;  // For each of the four, and at least
constexpr int kLeastRuns = 5;         // runs: neighbours on the machine take their share of its memory in bursts.
constexpr int kChain = 64;

// Large enough to be bound by arithmetic, small enough for the caches.
constexpr char kFloatLinear[] = R"(graph @f32 {
  param @w: f32[512,512] = seed(1)
  module @fc = linear(weight=@w)
  %x: f32[256,512] = placeholder
  %y: f32[256,512] = call_module @fc(%x)
  output(%y)
})";
// Dilated: Winograd, which saves multiplications, would show a peak that the machine does not have.
constexpr char kInt8Conv[] = R"(graph @int8 {
  param @w: i8[128,128,3,3]<scale=0.01> = seed(1)
  module @conv = int8.conv2d(dilation=[2, 2], out_scale=4.0, padding=[2, 2, 2, 2], weight=@w)
  %x: u8[1,128,28,28]<scale=0.02, zp=3> = placeholder
  %y: u8[1,128,28,28]<scale=4> = call_module @conv(%x)
  output(%y)
})";

absl::StatusOr<std::unique_ptr<runtime::Executable>> Compiled(const std::string& text, const ir::OpRegistry& ops,
                                                              const kernels::KernelRegistry& kernels,
                                                              runtime::ThreadPool* pool) {
  ASSIGN_OR_RETURN(const auto graph, ir::Parse(text, ops, "peaks"));
  return runtime::Executable::Create(*graph, kernels, pool);
}

// The shortest of the runs that fit into kSecondsEach.
absl::StatusOr<double> BestSeconds(const std::function<absl::Status()>& run) {
  using Clock = std::chrono::steady_clock;
  RETURN_IF_ERROR(run());
  double best = INFINITY, total = 0;
  for (int runs = 0; runs < kLeastRuns || total < kSecondsEach; ++runs) {
    const auto start = Clock::now();
    RETURN_IF_ERROR(run());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

absl::StatusOr<double> BestSecondsOf(runtime::Executable& executable) {
  const Tensor input = SeededTensor(executable.input_types()[0], 2);
  Tensor output(executable.output_types()[0]);
  const Tensor* inputs[] = {&input};
  Tensor* outputs[] = {&output};
  return BestSeconds([&] { return executable.Run(inputs, outputs); });
}

// The time of the graph's one arithmetic step at its best: changes of layout around it do not count.
absl::StatusOr<double> OperationsPerSecond(const std::string& text, const ir::OpRegistry& ops,
                                           const kernels::KernelRegistry& kernels) {
  runtime::ThreadPool pool(1);
  ASSIGN_OR_RETURN(const auto executable, Compiled(text, ops, kernels, &pool));
  executable->EnableProfile(true);
  RETURN_IF_ERROR(BestSecondsOf(*executable).status());
  for (const runtime::StepProfile& step : executable->profile()) {
    if (step.macs == 0) continue;
    return 2 * step.macs / *std::min_element(step.seconds.begin(), step.seconds.end());
  }
  return absl::InternalError("machine peaks: no step computes");
}

std::string Chain() {
  std::string text = "graph @chain {\n  %v0: f32[1,16] = placeholder\n";
  for (int i = 1; i <= kChain; ++i)
    absl::StrAppendFormat(&text, "  %%v%d: f32[1,16] = call_function relu(%%v%d)\n", i, i - 1);
  return absl::StrCat(text, "  output(%v", kChain, ")\n}");
}

// Floats for the triad a = b + s * c (McCalpin, STREAM), in all three arrays.
class Arrays {
 public:
  explicit Arrays(int64_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~Arrays() {
    if (ok()) munmap(data_, bytes_);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  float* data() const { return static_cast<float*>(data_); }

 private:
  const int64_t bytes_;
  void* data_;
};

constexpr int64_t kBlock = 1024;  // Floats: a constant trip count, which GCC vectorizes at -O2.

void Triad(float* __restrict a, const float* __restrict b, const float* __restrict c, int64_t blocks) {
  for (int64_t block = 0; block < blocks; ++block, a += kBlock, b += kBlock, c += kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) a[i] = b[i] + 0.5f * c[i];
  }
}

absl::StatusOr<double> MemoryBytesPerSecond() {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{3} << 30;
  const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const int64_t bytes = std::max(kLeast, std::min({4 * cache, memory / 8, kMost}));
  const int64_t blocks = bytes / 3 / (kBlock * static_cast<int64_t>(sizeof(float)));
  const Arrays arrays(bytes);
  if (!arrays.ok()) return absl::ResourceExhaustedError(absl::StrCat("machine peaks: no ", bytes, " bytes of memory"));
  float* const a = arrays.data();
  float* const b = a + blocks * kBlock;
  float* const c = b + blocks * kBlock;
  // Untouched pages would all be the one page of zeros.
  std::fill(b, c + blocks * kBlock, 1.0f);
  ASSIGN_OR_RETURN(const double seconds, BestSeconds([&] {
                     Triad(a, b, c, blocks);
                     return a[0] == 1.5f ? absl::OkStatus() : absl::InternalError("machine peaks: the triad is wrong");
                   }));
  return static_cast<double>(3 * blocks * kBlock * sizeof(float)) / seconds;
}

// What the peaks depend on beside the machine's load.
std::string MachineName() { return absl::StrCat(kernels::CpuName(), ", ", kernels::IsaName(kernels::BestIsa())); }

}  // namespace

absl::StatusOr<Results::Peaks> MeasurePeaks(const ir::OpRegistry& ops, const kernels::KernelRegistry& kernels) {
  ASSIGN_OR_RETURN(const double f32, OperationsPerSecond(kFloatLinear, ops, kernels));
  ASSIGN_OR_RETURN(const double int8, OperationsPerSecond(kInt8Conv, ops, kernels));
  runtime::ThreadPool pool(1);
  ASSIGN_OR_RETURN(const auto executable, Compiled(Chain(), ops, kernels, &pool));
  ASSIGN_OR_RETURN(const double chain, BestSecondsOf(*executable));
  Results::Peaks peaks;
  ASSIGN_OR_RETURN(const double bandwidth, MemoryBytesPerSecond());
  // The process's peak memory counts anew (proc(5)): the arrays were not the network's. Where it does not, no harm.
  std::ofstream("/proc/self/clear_refs") << 5;
  peaks.set_f32_flops_per_second(f32);
  peaks.set_int8_ops_per_second(int8);
  peaks.set_bytes_per_second(bandwidth);
  peaks.set_seconds_per_call(chain / kChain);
  peaks.set_cpu(kernels::CpuName());
  peaks.set_isa(std::string(kernels::IsaName(kernels::BestIsa())));
  return peaks;
}

std::string PeaksFile(const std::string& folder) {
  Sha256 sha;
  sha.Update(MachineName());
  return absl::StrCat(folder, "/peaks-", sha.Finish().substr(0, 12), ".textproto");
}

absl::StatusOr<Results::Peaks> ReadPeaks(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  Results::Peaks peaks;
  google::protobuf::TextFormat::Parser parser;
  const bool parsed = parser.ParseFromString(text, &peaks);
  for (double value : {peaks.f32_flops_per_second(), peaks.int8_ops_per_second(), peaks.bytes_per_second(),
                       peaks.seconds_per_call()}) {
    if (!parsed || !(value > 0) || !std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": want four positive numbers"));
    }
  }
  if (absl::StrCat(peaks.cpu(), ", ", peaks.isa()) != MachineName()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": of ", peaks.cpu(), ", ", peaks.isa(), ", this is ", MachineName()));
  }
  return peaks;
}

absl::Status WritePeaks(const std::string& file, const Results::Peaks& peaks) {
  RETURN_IF_ERROR(MakeWritableFolder(file.substr(0, file.rfind('/'))));
  std::string text;
  google::protobuf::TextFormat::PrintToString(peaks, &text);
  return WriteFileAtomic(
      file, absl::StrCat("# Measured by the harness on one thread; --remeasure_peaks replaces it.\n", text));
}

passes::MachinePeaks ToMachinePeaks(const Results::Peaks& peaks) {
  passes::MachinePeaks machine;
  machine.f32_flops_per_second = peaks.f32_flops_per_second();
  machine.int8_ops_per_second = peaks.int8_ops_per_second();
  machine.bytes_per_second = peaks.bytes_per_second();
  machine.seconds_per_call = peaks.seconds_per_call();
  return machine;
}

}  // namespace fuselage::harness
