// Random numbers that are the same on every machine, which the standard library's distributions are not.
#ifndef FUSELAGE_IR_TESTING_RANDOM_H_
#define FUSELAGE_IR_TESTING_RANDOM_H_

#include <cstdint>
#include <vector>

namespace fuselage::testing {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  // With a probability of one in `n`.
  bool OneIn(int n) { return Next() % n == 0; }
  template <typename T>
  const T& From(const std::vector<T>& choices) {
    return choices[Next() % choices.size()];
  }
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[Next() % i]);
  }

 private:
  uint64_t state_;
};

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_RANDOM_H_
