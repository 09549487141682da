// MemoryCounter: what a thread really moved to and from memory, by the CPU's count of last-level cache misses
// (perf_event_open(2)). Prefetches that the counter does not see are missing from it.
#ifndef FUSELAGE_HARNESS_MEASURE_MEMORY_COUNTER_H_
#define FUSELAGE_HARNESS_MEASURE_MEMORY_COUNTER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fuselage::harness {

class MemoryCounter {
 public:
  static constexpr char kSource[] = "last-level cache misses x 64 B (perf_event_open)";

  // Counts for the calling thread, in user space. Unavailable says why this machine does not.
  static absl::StatusOr<std::unique_ptr<MemoryCounter>> Open();
  ~MemoryCounter();
  MemoryCounter(const MemoryCounter&) = delete;
  MemoryCounter& operator=(const MemoryCounter&) = delete;

  void Start();
  // Bytes since Start.
  absl::StatusOr<int64_t> Stop();

 private:
  explicit MemoryCounter(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

// Why perf_event_open failed with `error`, in words.
std::string CounterReason(int error);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_MEMORY_COUNTER_H_
