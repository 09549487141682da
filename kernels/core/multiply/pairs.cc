#include "kernels/core/multiply/pairs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace fuselage::kernels {
namespace {

constexpr int kSums = 4 * kPanel;  // Of a step: positive and negative weights in each 16-bit lane, in magnitude.
constexpr int kMaxSum = 2 * kMaxPairWeight;
using Sums = std::array<uint8_t, kSums>;

Sums SumsOf(const uint8_t* step) {
  Sums sums = {};
  for (int i = 0; i < kPanelBytes; ++i) {
    const int weight = static_cast<int8_t>(step[i]);
    sums[i / 2 + (weight < 0 ? kSums / 2 : 0)] += static_cast<uint8_t>(weight < 0 ? -weight : weight);
  }
  return sums;
}

struct Group {
  Sums sums;
  int steps[kMaxGroupSteps];
  int count = 0;

  bool Takes(const Sums& more) const {
    if (count == kMaxGroupSteps) return false;
    bool exceeds = false;
    for (int i = 0; i < kSums; ++i) exceeds |= sums[i] + more[i] > kMaxSum;
    return !exceeds;
  }
  void Add(int step, const Sums& more) {
    for (int i = 0; i < kSums; ++i) sums[i] = static_cast<uint8_t>(sums[i] + more[i]);
    steps[count++] = step;
  }
};

// First fit, decreasing (D. S. Johnson, "Near-optimal bin packing algorithms", 1973), in as many dimensions as sums.
std::vector<Group> Grouped(int64_t steps, const uint8_t* weights) {
  std::vector<Sums> sums(steps);
  std::vector<uint8_t> largest(steps);
  for (int64_t step = 0; step < steps; ++step) {
    sums[step] = SumsOf(weights + step * kPanelBytes);
    largest[step] = *std::max_element(sums[step].begin(), sums[step].end());
  }
  std::vector<Group> groups;
  groups.reserve(steps);
  const auto add = [&](int step) {
    size_t i = 0;
    while (i < groups.size() && !groups[i].Takes(sums[step])) ++i;
    if (i == groups.size()) groups.push_back({});
    groups[i].Add(step, sums[step]);
  };
  for (int size = kMaxSum; size >= 0; --size) {
    for (int64_t step = 0; step < steps; ++step) {
      if (largest[step] == size) add(static_cast<int>(step));
    }
  }
  return groups;
}

void GroupChunk(int64_t steps, const uint8_t* weights, uint8_t* chunk) {
  auto* groups = reinterpret_cast<PairGroups*>(chunk + steps * kPanelBytes);
  std::memset(groups, 0, PairChunkBytes(steps) - steps * kPanelBytes);
  int32_t* to = groups->steps();
  const std::vector<Group> all = Grouped(steps, weights);
  for (int size = kMaxGroupSteps; size > 0; --size) {
    for (const Group& group : all) {
      if (group.count != size) continue;
      ++groups->count[kMaxGroupSteps - size];
      for (int i = 0; i < size; ++i, chunk += kPanelBytes) {
        std::memcpy(chunk, weights + int64_t{group.steps[i]} * kPanelBytes, kPanelBytes);
        *to++ = group.steps[i];
      }
    }
  }
}

}  // namespace

void GroupPairs(int64_t steps, uint8_t* panel) {
  const std::vector<uint8_t> weights(panel, panel + steps * kPanelBytes);
  const int64_t chunk = PairChunkSteps(steps);
  for (int64_t step = 0; step < steps; step += chunk, panel += PairChunkBytes(chunk)) {
    GroupChunk(std::min(chunk, steps - step), weights.data() + step * kPanelBytes, panel);
  }
}

}  // namespace fuselage::kernels
