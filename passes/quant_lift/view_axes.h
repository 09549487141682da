// Where the axes of a view's result are in its operand: what an op that speaks of axes needs to move in front of it.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_VIEW_AXES_H_
#define FUSELAGE_PASSES_QUANT_LIFT_VIEW_AXES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::quant_lift {

using Axes = std::vector<int64_t>;

// A view that keeps every element once.
struct View {
  Shape from, to;
  // For each axis of the result, the operand's. Without a value the order in memory stays: reshape, flatten, squeeze,
  // unsqueeze, identity (contiguous).
  std::optional<Axes> permutation;
};

// Without a value: no such view.
std::optional<View> ViewOf(const ir::Node& node);

// The axis that has the elements of each index of `axis` together.
absl::StatusOr<int64_t> AxisInFront(const View& view, int64_t axis);

// The axes over which a reduction has the same groups of elements as one over `axes`. Takes and gives them in canonical
// form.
absl::StatusOr<Axes> AxesInFront(const View& view, const Axes& axes);

// Axes to reduce, not empty: in [0, rank), sorted, without those of size 1, which change nothing; where all are, the
// first such axis of the shape.
Axes CanonicalAxes(Axes axes, const Shape& shape);

// Whether groups of `size` elements along the last axis, of which the last group of each row may be shorter, are the
// same ones in front of the view. `size` is at most the last dimension.
absl::Status CheckGroupsInFront(const View& view, int64_t size);

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_VIEW_AXES_H_
