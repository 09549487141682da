// The quantizing ops: what each does, apart from its spelling, and how that looks in front of a view.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_LIFTABLE_H_
#define FUSELAGE_PASSES_QUANT_LIFT_LIFTABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "passes/quant_lift/view_axes.h"

namespace fuselage::quant_lift {

bool IsLiftable(const ir::Node& node);

// Codes, scale and offset at most.
constexpr int kMostResults = 3;

// The result of a liftable tuple that a getitem takes, in [0, kMostResults).
int ResultIndex(const ir::Node& getitem);

// What `quantize` does, to a value that may be another than its own: one in front of views.
struct Quantizing {
  const ir::Node* quantize = nullptr;
  // What it says of axes, in canonical form for the value:
  //   quantize                 the axis of its scales; empty: one scale
  //   dynamic_quantize_*       dims; empty: the whole tensor
  //   dynamic_quantize_mxfp4   group_size, at most the last dimension
  Axes axes;
};

// What `quantize` does to its own value.
Quantizing OwnQuantizing(const ir::Node& quantize);

// What to do to the view's operand, so that the view of it is what `behind` makes of the view's result.
absl::StatusOr<Quantizing> InFrontOf(const ir::Node& view, const View& axes, const Quantizing& behind);

// The attributes of a call that does it.
AttributeMap AttributesOf(const Quantizing& quantizing);

// The types of its results for a value of type `input`: one, or those of a tuple.
absl::StatusOr<ir::Type> ResultsOf(const Quantizing& quantizing, const TensorType& input);

// Numbers quantizings: two have the same number where they do the same to any value, however they are spelled.
class Keys {
 public:
  int Of(const Quantizing& quantizing);

 private:
  int Number(std::string text) {
    return numbers_.emplace(std::move(text), static_cast<int>(numbers_.size())).first->second;
  }
  std::string OperandText(const ir::Node& quantize, int i);

  HashMap<std::string, int> numbers_;
  HashMap<std::string, int> constants_;  // By parameter: equal tensors have equal numbers.
};

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_LIFTABLE_H_
