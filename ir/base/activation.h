// What an op does to each element of its result at last, as its attribute `activation` says:
//
//   "none"   "relu"   "clamp(min=0.0, max=6.0)"
//
// All three are a clamp: of nothing, from below, from both sides.
#ifndef FUSELAGE_IR_BASE_ACTIVATION_H_
#define FUSELAGE_IR_BASE_ACTIVATION_H_

#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage {

struct Activation {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();

  bool is_none() const { return *this == Activation(); }
  bool is_relu() const { return *this == Relu(); }
  static Activation Relu() { return {0, std::numeric_limits<float>::infinity()}; }

  // NaN stays NaN. T: float or double.
  template <typename T>
  T operator()(T x) const {
    const T y = x < T{min} ? T{min} : x;
    return y > T{max} ? T{max} : y;
  }

  bool operator==(const Activation& other) const { return min == other.min && max == other.max; }
};

std::string ToString(const Activation& activation);

// InvalidArgument says what was wanted.
absl::StatusOr<Activation> ParseActivation(absl::string_view text);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_ACTIVATION_H_
