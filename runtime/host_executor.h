// HostExecutor: the CPU.
#ifndef FUSELAGE_RUNTIME_HOST_EXECUTOR_H_
#define FUSELAGE_RUNTIME_HOST_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "runtime/thread_pool.h"

namespace fuselage::runtime {

// `pool` is null where nothing will run.
class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(ThreadPool* pool) : pool_(pool) {}

  absl::string_view name() const override { return "CPU"; }
  bool on_host() const override { return true; }

  // Pages touched once so that no run pays for it; huge pages where the system gives them.
  absl::StatusOr<uint8_t*> Allocate(int64_t bytes, absl::string_view what) override;
  absl::StatusOr<const uint8_t*> Place(const Tensor& constant) override {
    return static_cast<const uint8_t*>(constant.raw_data());
  }
  absl::Status Run(const BoundProgram& program, absl::Span<const Tensor* const>, absl::Span<Tensor* const>,
                   std::vector<double>* seconds) override;
  absl::StatusOr<std::vector<StepSpan>> RunRecorded(const BoundProgram& program, absl::Span<const Tensor* const>,
                                                    absl::Span<Tensor* const>) override;

 private:
  struct Unmap {
    int64_t bytes = 0;
    void operator()(uint8_t* data) const;
  };

  absl::Status Copy(const void* from, void* to, int64_t bytes) override;
  absl::Status Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel& parallel) override;

  ThreadPool* const pool_;
  std::vector<std::unique_ptr<uint8_t, Unmap>> memory_;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_HOST_EXECUTOR_H_
