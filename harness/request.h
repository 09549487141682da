// What one run of the harness is to do.
#ifndef FUSELAGE_HARNESS_REQUEST_H_
#define FUSELAGE_HARNESS_REQUEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/library.h"
#include "compiler/profiler.h"
#include "harness/base/files.h"
#include "harness/config.pb.h"
#include "runtime/cuda/backend.h"

namespace fuselage::harness {

struct RunRequest {
  HarnessConfig config;  // Valid, with the flags applied.
  std::string name;      // The config's, for the report.
  SearchPath search;
  int64_t max_memory_bytes = 0;  // 0: the defaults of the frontend and the runtime.
  bool allow_nonfinite = false;
  bool explain = false;                 // Only the passes, and what they did.
  bool accuracy_only = false;           // Nothing is timed.
  std::string cache_folder;             // Keeps the machine's peaks and what passes keep; empty: nothing is kept.
  compiler::ProfilerOptions profiling;  // Its cache folder is that one.
  const compiler::Library* library = nullptr;  // Ops, passes and kernels; null: this tree's.
  // Called where a variant runs on CUDA.
  std::function<absl::StatusOr<std::unique_ptr<runtime::cuda::Backend>>()> open_cuda = runtime::cuda::OpenBackend;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_REQUEST_H_
