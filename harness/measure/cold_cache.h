// Latency of a run that finds nothing of its own in the caches.
#ifndef FUSELAGE_HARNESS_MEASURE_COLD_CACHE_H_
#define FUSELAGE_HARNESS_MEASURE_COLD_CACHE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {

// Fills the caches of every thread of `pool`, and the one that they share, with other data.
class CacheFlusher {
 public:
  // `bytes` 0: as the machine's caches need.
  explicit CacheFlusher(runtime::ThreadPool* pool, int64_t bytes = 0);
  void Flush();

 private:
  runtime::ThreadPool* const pool_;
  std::vector<uint8_t> bytes_;
};

// Milliseconds of each run.
absl::StatusOr<std::vector<double>> ColdRuns(const std::function<absl::Status()>& run, int runs, CacheFlusher* flusher);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_COLD_CACHE_H_
