#include "harness/measure/cold_cache.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// Twice the shared cache, since none evicts strictly what is oldest. A virtual machine may be told of the cache of a
// whole socket: more than it gets.
int64_t BytesToFlush() {
  return std::clamp<int64_t>(2 * sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t{64} << 20, int64_t{512} << 20);
}

}  // namespace

CacheFlusher::CacheFlusher(runtime::ThreadPool* pool, int64_t bytes)
    : pool_(pool), bytes_(bytes > 0 ? bytes : BytesToFlush()) {}

void CacheFlusher::Flush() {
  constexpr int64_t kLine = 64;
  kernels::ForRanges(*pool_, static_cast<int64_t>(bytes_.size()), kLine, [this](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kLine) ++bytes_[i];
  });
}

absl::StatusOr<std::vector<double>> ColdRuns(const std::function<absl::Status()>& run, int runs,
                                             CacheFlusher* flusher) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> ms;
  for (int i = 0; i < runs; ++i) {
    flusher->Flush();
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(run());
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return ms;
}

}  // namespace fuselage::harness
