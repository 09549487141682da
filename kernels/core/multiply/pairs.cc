#include "kernels/core/multiply/pairs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ir/base/check.h"

namespace fuselage::kernels {
namespace {

constexpr int kSums = 4 * kPanel;  // Of a step: positive and negative weights in each 16-bit lane, in magnitude.
constexpr int kMaxSum = 2 * kMaxPairWeight;
using Sums = std::array<uint8_t, kSums>;

// A step, or half of its weights.
struct Part {
  int step;
  int8_t weights[kPanelBytes];
  Sums sums;
  int largest = 0;  // Of `sums`.

  Part(int step, const int8_t* from) : step(step) {
    std::memcpy(weights, from, sizeof(weights));
    for (int lane = 0; lane < kSums / 2; ++lane) {
      const int a = weights[2 * lane], b = weights[2 * lane + 1];
      const int positive = std::max(a, 0) + std::max(b, 0), negative = -std::min(a, 0) - std::min(b, 0);
      sums[lane] = static_cast<uint8_t>(positive);
      sums[kSums / 2 + lane] = static_cast<uint8_t>(negative);
      largest = std::max({largest, positive, negative});
    }
  }
};

std::vector<Part> PartsOf(int64_t steps, const int8_t* weights) {
  std::vector<Part> parts;
  parts.reserve(steps);
  for (int step = 0; step < steps; ++step, weights += kPanelBytes) {
    parts.emplace_back(step, weights);
    if (parts.back().largest <= kMaxSum) continue;
    int8_t halves[2][kPanelBytes];
    for (int i = 0; i < kPanelBytes; ++i) {
      // Of a pair's two odd weights the larger halves are in different parts: -128 and -127 are 128 in neither.
      halves[i % 2][i] = static_cast<int8_t>(weights[i] / 2);
      halves[1 - i % 2][i] = static_cast<int8_t>(weights[i] - weights[i] / 2);
    }
    parts.back() = Part(step, halves[0]);
    parts.emplace_back(step, halves[1]);
  }
  return parts;
}

struct Group {
  Sums room;  // What its sums may still grow by.
  const Part* parts[kMaxGroupParts];
  int count = 0;

  Group() { room.fill(kMaxSum); }
  bool Takes(const Sums& more) const {
    uint8_t exceeds = 0;  // A byte, as what is compared: the loop becomes vectors.
    for (int i = 0; i < kSums; ++i) exceeds |= more[i] > room[i];
    return exceeds == 0;
  }
  void Add(const Part& part) {
    for (int i = 0; i < kSums; ++i) room[i] = static_cast<uint8_t>(room[i] - part.sums[i]);
    parts[count++] = &part;
  }
};

// First fit, decreasing (D. S. Johnson, "Near-optimal bin packing algorithms", 1973), in as many dimensions as sums.
std::vector<Group> Grouped(const std::vector<Part>& parts) {
  std::vector<Group> groups;
  groups.reserve(parts.size());
  size_t first = 0;  // That is not full.
  const auto add = [&](const Part& part) {
    while (first < groups.size() && groups[first].count == kMaxGroupParts) ++first;
    size_t i = first;
    while (i < groups.size() && (groups[i].count == kMaxGroupParts || !groups[i].Takes(part.sums))) ++i;
    if (i == groups.size()) groups.push_back({});
    groups[i].Add(part);
  };
  for (int size = kMaxSum; size >= 0; --size) {
    for (const Part& part : parts) {
      if (part.largest == size) add(part);
    }
  }
  return groups;
}

void GroupChunk(int64_t steps, int parts_of_step, const int8_t* weights, uint8_t* chunk) {
  const int64_t most = steps * parts_of_step;
  const std::vector<Part> parts = PartsOf(steps, weights);
  FUSELAGE_CHECK(static_cast<int64_t>(parts.size()) <= most);
  std::memset(chunk, 0, PairChunkBytes(most));
  auto* groups = reinterpret_cast<PairGroups*>(chunk);
  int32_t* step = groups->steps();
  chunk += PairWeightsOffset(most);
  const std::vector<Group> all = Grouped(parts);
  for (int size = kMaxGroupParts; size > 0; --size) {
    for (const Group& group : all) {
      if (group.count != size) continue;
      ++groups->count[kMaxGroupParts - size];
      for (int i = 0; i < size; ++i, chunk += kPanelBytes) {
        std::memcpy(chunk, group.parts[i]->weights, kPanelBytes);
        *step++ = group.parts[i]->step;
      }
    }
  }
}

}  // namespace

void GroupPairs(const PairPanel& panel, uint8_t* weights) {
  const auto* from = reinterpret_cast<const int8_t*>(weights);
  const std::vector<int8_t> all(from, from + panel.steps * kPanelBytes);
  const int64_t chunk = panel.chunk_steps();
  for (int64_t step = 0; step < panel.steps; step += chunk, weights += panel.chunk_bytes()) {
    GroupChunk(std::min(chunk, panel.steps - step), panel.parts_of_step, all.data() + step * kPanelBytes, weights);
  }
}

}  // namespace fuselage::kernels
