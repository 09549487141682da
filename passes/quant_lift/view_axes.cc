#include "passes/quant_lift/view_axes.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace fuselage::quant_lift {
namespace {

int64_t Product(const Shape& shape, int64_t end) {
  return std::accumulate(shape.begin(), shape.begin() + end, int64_t{1}, std::multiplies<int64_t>());
}

absl::Status CheckNotEmpty(const View& view) {
  if (Product(view.from, static_cast<int64_t>(view.from.size())) > 0) return absl::OkStatus();
  return absl::UnimplementedError("it has no elements that would tell axes apart");
}

absl::Status Lost(absl::string_view what, const View& view) {
  return absl::UnimplementedError(absl::StrCat(what, " of ", ToString(view.to), " is none of ", ToString(view.from)));
}

std::vector<int> AxesLongerThanOne(const Shape& shape) {
  std::vector<int> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

// Both shapes fall into the finest runs of axes with equal products: a run of one holds the same elements as a run of
// the other, so it is reduced as a whole or not at all.
absl::StatusOr<Axes> RunsInFront(const View& view, const Axes& axes) {
  const std::vector<int> from = AxesLongerThanOne(view.from), to = AxesLongerThanOne(view.to);
  Axes in_front;
  for (size_t i = 0, j = 0; j < to.size();) {
    const size_t first_from = i, first_to = j;
    int64_t size_from = view.from[from[i++]], size_to = view.to[to[j++]];
    while (size_from != size_to) {
      if (size_from < size_to) {
        size_from *= view.from[from[i++]];
      } else {
        size_to *= view.to[to[j++]];
      }
    }
    const auto reduced = std::count_if(to.begin() + first_to, to.begin() + j,
                                       [&](int axis) { return absl::c_linear_search(axes, axis); });
    if (reduced == 0) continue;
    if (reduced != static_cast<int64_t>(j - first_to)) return Lost(absl::StrCat("dims=", ToString(axes)), view);
    in_front.insert(in_front.end(), from.begin() + first_from, from.begin() + i);
  }
  if (in_front.empty()) {  // Axes of size 1 only: any other will do.
    const auto one = absl::c_find(view.from, 1);
    if (one == view.from.end()) return Lost(absl::StrCat("dims=", ToString(axes)), view);
    in_front.push_back(one - view.from.begin());
  }
  return in_front;
}

}  // namespace

std::optional<View> ViewOf(const ir::Node& node) {
  if (node.op() == nullptr || node.op()->view == ir::View::kNone || node.num_operands() == 0) return std::nullopt;
  View view{node.operand(0)->tensor_type().shape, node.tensor_type().shape, std::nullopt};
  const auto rank = static_cast<int64_t>(view.from.size());
  const auto own = [rank](int64_t axis) { return axis < 0 ? axis + rank : axis; };
  if (node.IsOp("permute")) {
    view.permutation = node.attribute("dims").as_ints();
    for (int64_t& axis : *view.permutation) axis = own(axis);
  } else if (node.IsOp("transpose")) {
    view.permutation.emplace(rank);
    absl::c_iota(*view.permutation, 0);
    std::swap((*view.permutation)[own(node.attribute("dim0").as_int())],
              (*view.permutation)[own(node.attribute("dim1").as_int())]);
  } else if (node.op()->view != ir::View::kSameOrder) {
    return std::nullopt;
  }
  return view;
}

absl::StatusOr<int64_t> AxisInFront(const View& view, int64_t axis) {
  RETURN_IF_ERROR(CheckNotEmpty(view));
  if (view.permutation) return (*view.permutation)[axis];
  for (size_t other = 0; other < view.from.size(); ++other) {
    if (view.from[other] == view.to[axis] && Product(view.from, other) == Product(view.to, axis)) return other;
  }
  return Lost(absl::StrCat("axis ", axis), view);
}

absl::StatusOr<Axes> AxesInFront(const View& view, const Axes& axes) {
  RETURN_IF_ERROR(CheckNotEmpty(view));
  Axes in_front;
  if (view.permutation) {
    for (int64_t axis : axes) in_front.push_back((*view.permutation)[axis]);
  } else {
    ASSIGN_OR_RETURN(in_front, RunsInFront(view, axes));
  }
  return CanonicalAxes(std::move(in_front), view.from);
}

Axes CanonicalAxes(Axes axes, const Shape& shape) {
  Axes canonical;
  for (int64_t axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    if (shape[axis] != 1) canonical.push_back(axis);
  }
  if (canonical.empty()) canonical.push_back(absl::c_find(shape, 1) - shape.begin());
  absl::c_sort(canonical);
  return canonical;
}

absl::Status CheckGroupsInFront(const View& view, int64_t size) {
  RETURN_IF_ERROR(CheckNotEmpty(view));
  const int64_t rank = static_cast<int64_t>(view.from.size()), last = view.to.back();
  // Full groups follow each other in memory, whatever the row that they are in.
  const bool same = view.permutation
                        ? view.permutation->back() == rank - 1
                        : rank > 0 && (view.from.back() == last || (view.from.back() % size == 0 && last % size == 0));
  return same ? absl::OkStatus() : Lost(absl::StrCat("a group of ", size, " along the last axis"), view);
}

}  // namespace fuselage::quant_lift
