// Calibration: the pipeline's Runner, on the runtime's FP32 kernels.
#ifndef FUSELAGE_HARNESS_MEASURE_CALIBRATION_RUNNER_H_
#define FUSELAGE_HARNESS_MEASURE_CALIBRATION_RUNNER_H_

#include <functional>
#include <string>

#include "harness/measure/samples.h"
#include "kernels/core/registry.h"
#include "passes/core/pass.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {

struct CalibrationOptions {
  int images = 0;  // The first ones of `samples`.
  int64_t max_memory_bytes = 0;
  std::function<void(int done)> progress;
};

// Each image runs alone on one thread, several images at once: the values do not depend on the number of threads.
// Borrows everything.
class CalibrationRunner : public passes::Runner {
 public:
  CalibrationRunner(const Samples& samples, const kernels::KernelRegistry& kernels, runtime::ThreadPool* pool,
                    CalibrationOptions options)
      : samples_(samples), kernels_(kernels), pool_(pool), options_(std::move(options)) {}

  // A usage error where there are no calibration images.
  absl::Status ForEachSample(
      const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override;

  // "256 images, inputs f32[3,224,224], sha256 ..., avx512_vnni": FP32 kernels round differently on other CPUs.
  std::string DataKey() const override;

 private:
  int NumImages() const;

  const Samples& samples_;
  const kernels::KernelRegistry& kernels_;
  runtime::ThreadPool* const pool_;
  const CalibrationOptions options_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_CALIBRATION_RUNNER_H_
