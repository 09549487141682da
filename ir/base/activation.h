// What an op does to each element of its result at last, as its attribute `activation` says:
//
//   "none"   "relu"   "clamp(min=0.0, max=6.0)"
//   "hardswish"   "leaky_relu(negative_slope=0.1)"   "gelu(approximate=tanh)"   ...
//   "leaky_relu(negative_slope=0.1), clamp(min=-0.5, max=inf)"
//
// The first three are a clamp: of nothing, from below, from both sides. The others are elementwise operators
// (elementwise_math.h: kActivations) with their attributes, of which those that are absent have their defaults, and a
// clamp may follow them.
#ifndef FUSELAGE_IR_BASE_ACTIVATION_H_
#define FUSELAGE_IR_BASE_ACTIVATION_H_

#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/elementwise.h"

namespace fuselage {

struct Activation {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
  std::optional<ElementwiseInstruction> function = std::nullopt;  // In front of the clamp.

  bool is_clamp() const { return !function; }
  bool is_function() const { return function && bounds().is_none(); }
  bool is_none() const { return *this == Activation(); }
  bool is_relu() const { return *this == Relu(); }
  static Activation Relu() { return {0, std::numeric_limits<float>::infinity(), std::nullopt}; }
  Activation bounds() const { return {min, max, std::nullopt}; }
  Activation without_bounds() const;
  // The two together, `clamp` being one.
  Activation Then(const Activation& clamp) const;

  // NaN stays NaN. Of float by the arithmetic that all kernels have, of double as the operators' references.
  template <typename T>
  T operator()(T x) const {
    if (function) x = Apply(x);
    const T y = x < T{min} ? T{min} : x;
    return y > T{max} ? T{max} : y;
  }

  bool operator==(const Activation& other) const {
    return min == other.min && max == other.max && function == other.function;
  }

 private:
  float Apply(float x) const { return elementwise::Activated(*function, x); }
  double Apply(double x) const;
};

std::string ToString(const Activation& activation);

// InvalidArgument says what was wanted.
absl::StatusOr<Activation> ParseActivation(absl::string_view text);

// The activation that an elementwise operator of one operand is; none where it is no activation other than a clamp.
Activation FunctionOf(absl::string_view op, const AttributeMap& attributes);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_ACTIVATION_H_
