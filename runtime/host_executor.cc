#include "runtime/host_executor.h"

#include <sys/mman.h>

#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/reorder.h"
#include "runtime/span_recorder.h"

namespace fuselage::runtime {

void HostExecutor::Unmap::operator()(uint8_t* data) const { munmap(data, bytes); }

absl::StatusOr<uint8_t*> HostExecutor::Allocate(int64_t bytes, absl::string_view what) {
  if (bytes == 0) return nullptr;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes for ", what));
  }
  memory_.push_back(std::unique_ptr<uint8_t, Unmap>(static_cast<uint8_t*>(data), Unmap{bytes}));
  madvise(data, bytes, MADV_HUGEPAGE);  // Advice: any outcome will do.
  std::memset(data, 0, bytes);
  return memory_.back().get();
}

absl::Status HostExecutor::Run(const BoundProgram& program, absl::Span<const Tensor* const>, absl::Span<Tensor* const>,
                               std::vector<double>* seconds) {
  using Clock = std::chrono::steady_clock;
  for (const BoundStep& step : program.steps) {
    const auto start = seconds == nullptr ? Clock::time_point() : Clock::now();
    RETURN_IF_ERROR(RunStep(step, pool_));
    if (seconds != nullptr) (*seconds)[step.index] += std::chrono::duration<double>(Clock::now() - start).count();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StepSpan>> HostExecutor::RunRecorded(const BoundProgram& program,
                                                                absl::Span<const Tensor* const>,
                                                                absl::Span<Tensor* const>) {
  SpanRecorder recorder(pool_);
  for (const BoundStep& step : program.steps) {
    recorder.BeginStep(step.index);
    RETURN_IF_ERROR(RunStep(step, &recorder));
    recorder.EndStep();
  }
  return recorder.Spans();
}

absl::Status HostExecutor::Copy(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status HostExecutor::Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel& parallel) {
  runtime::Reorder(type, from, to, parallel);
  return absl::OkStatus();
}

}  // namespace fuselage::runtime
