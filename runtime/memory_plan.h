// Where in one arena each buffer lies, so that buffers which live at the same time do not overlap.
//
// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", MLSys 2020,
// sec. 5.2): from the largest buffer down, each takes the smallest gap that fits between the placed buffers it lives
// together with.
#ifndef FUSELAGE_RUNTIME_MEMORY_PLAN_H_
#define FUSELAGE_RUNTIME_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace fuselage::runtime {

inline constexpr int64_t kArenaAlignment = 64;

// A buffer is alive from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // One per buffer, multiples of kArenaAlignment.
  int64_t bytes = 0;             // The arena's.
};

// Takes O(n^2) time in the number of buffers, at worst.
MemoryPlan PlanMemory(absl::Span<const Lifetime> buffers);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_MEMORY_PLAN_H_
