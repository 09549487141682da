// One run of the harness: model, passes, accuracy, latency, layers, gates. The library behind the binary.
#ifndef FUSELAGE_HARNESS_RUN_H_
#define FUSELAGE_HARNESS_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/library.h"
#include "harness/base/files.h"
#include "harness/config.pb.h"
#include "harness/recorder.h"
#include "harness/report/progress.h"
#include "runtime/cuda/backend.h"

namespace fuselage::harness {

struct RunRequest {
  HarnessConfig config;  // Valid, with the flags applied.
  std::string name;      // Of the config, for the report.
  SearchPath search;
  int64_t max_memory_bytes = 0;  // 0: the defaults of the frontend and the runtime.
  bool allow_nonfinite = false;
  bool explain = false;      // Only the passes, and what they did.
  std::string cache_folder;  // Keeps the machine's peaks and what passes keep; empty: nothing is kept.
  const compiler::Library* library = nullptr;  // Ops, passes and kernels; null: this tree's.
  // Called where a variant runs on CUDA.
  std::function<absl::StatusOr<std::unique_ptr<runtime::cuda::Backend>>()> open_cuda = runtime::cuda::OpenBackend;
};

// Fills the recorder as it goes; the caller finishes it. A missed gate is a gate error, after everything was measured.
absl::Status RunHarness(const RunRequest& request, report::Progress& progress, Recorder& recorder);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_RUN_H_
