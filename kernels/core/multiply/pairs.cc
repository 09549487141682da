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
  Sums sums;
  for (int lane = 0; lane < kSums / 2; ++lane) {
    const int a = static_cast<int8_t>(step[2 * lane]), b = static_cast<int8_t>(step[2 * lane + 1]);
    sums[lane] = static_cast<uint8_t>(std::max(a, 0) + std::max(b, 0));
    sums[kSums / 2 + lane] = static_cast<uint8_t>(-std::min(a, 0) - std::min(b, 0));
  }
  return sums;
}

struct Group {
  Sums room;  // What its sums may still grow by.
  int steps[kMaxGroupSteps];
  int count = 0;

  Group() { room.fill(kMaxSum); }
  bool Takes(const Sums& more) const {
    uint8_t exceeds = 0;  // A byte, as what is compared: the loop becomes vectors.
    for (int i = 0; i < kSums; ++i) exceeds |= more[i] > room[i];
    return exceeds == 0;
  }
  void Add(int step, const Sums& more) {
    for (int i = 0; i < kSums; ++i) room[i] = static_cast<uint8_t>(room[i] - more[i]);
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
  size_t first = 0;  // That is not full.
  const auto add = [&](int step) {
    while (first < groups.size() && groups[first].count == kMaxGroupSteps) ++first;
    size_t i = first;
    while (i < groups.size() && (groups[i].count == kMaxGroupSteps || !groups[i].Takes(sums[step]))) ++i;
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
