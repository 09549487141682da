// Shuffle: one random order, the same on every machine.
#ifndef FUSELAGE_HARNESS_DATASETS_SHUFFLE_H_
#define FUSELAGE_HARNESS_DATASETS_SHUFFLE_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace fuselage::datasets {

// Fisher-Yates with a fixed linear congruential generator (Knuth's MMIX). At least one value.
template <typename T>
void Shuffle(std::vector<T>* values) {
  uint64_t state = 1;
  for (size_t i = values->size() - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap((*values)[i], (*values)[(state >> 33) % (i + 1)]);
  }
}

}  // namespace fuselage::datasets

#endif  // FUSELAGE_HARNESS_DATASETS_SHUFFLE_H_
