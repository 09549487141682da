#include "runtime/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fuselage::runtime {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

}  // namespace

MemoryPlan PlanMemory(absl::Span<const Lifetime> buffers) {
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return buffers[a].bytes > buffers[b].bytes; });

  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<int> placed;  // By offset.
  for (int buffer : order) {
    const int64_t bytes = Aligned(buffers[buffer].bytes);
    if (bytes == 0) continue;
    int64_t end = 0;  // Where the neighbours seen so far end.
    int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max();
    for (int other : placed) {
      if (buffers[other].last < buffers[buffer].first || buffers[buffer].last < buffers[other].first) continue;
      const int64_t gap = plan.offsets[other] - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, plan.offsets[other] + Aligned(buffers[other].bytes));
    }
    const int64_t offset = best >= 0 ? best : end;
    plan.offsets[buffer] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](int64_t value, int other) { return value < plan.offsets[other]; }),
                  buffer);
  }
  return plan;
}

}  // namespace fuselage::runtime
