// Calibration: the pipeline's Runner, on float kernels that give the same bits on every machine.
#ifndef FUSELAGE_COMPILER_CALIBRATION_RUNNER_H_
#define FUSELAGE_COMPILER_CALIBRATION_RUNNER_H_

#include <functional>
#include <memory>
#include <string>

#include "compiler/samples.h"
#include "kernels/core/isa.h"
#include "kernels/core/registry.h"
#include "passes/core/pass.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace fuselage::compiler {

struct CalibrationOptions {
  int64_t samples = 0;  // The first ones.
  int64_t max_memory_bytes = 0;
  // The values depend on neither; tests compare them.
  kernels::Isa isa = kernels::BestIsa();
  const kernels::KernelRegistry* kernels = nullptr;  // Borrowed; null: RegisterAllReproducible's.
  std::function<void(int done)> progress;
  int parts = 1;  // See Runner::Parts.
};

// Each sample runs alone on one thread, several at once: the values do not depend on the number of threads.
// Borrows samples and pool.
class CalibrationRunner : public passes::Runner {
 public:
  CalibrationRunner(const Samples& samples, runtime::ThreadPool* pool, CalibrationOptions options);

  // A usage error where there are no samples; Unimplemented where an op cannot run with the same bits
  // everywhere.
  absl::Status ForEachSample(
      const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override;

  int Parts() const override { return options_.parts; }
  absl::Status ForEachSampleOfPart(
      int part, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override;

  // "256 images, inputs f32[3,224,224], sha256 ..., arithmetic 1"; the last is kernels/reproducible's version.
  std::string DataKey() const override;

 private:
  int NumSamples() const;
  absl::StatusOr<std::shared_ptr<const runtime::Program>> MakeProgram(const ir::Graph& graph) const;
  // Samples begin, ..., end - 1.
  absl::Status Run(int begin, int end, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
                   const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit);

  const Samples& samples_;
  kernels::KernelRegistry kernels_;
  runtime::ThreadPool* const pool_;
  const CalibrationOptions options_;
};

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_CALIBRATION_RUNNER_H_
