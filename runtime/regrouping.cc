#include "runtime/regrouping.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace fuselage::runtime {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

bool IsView(const Node& node) { return node.op() != nullptr && node.op()->view == ir::View::kSameOrder; }

// For each axis of a permute's result, the operand's.
Ints DimsOf(const Node& permute) {
  Ints dims = permute.attribute("dims").as_ints();
  for (int64_t& dim : dims) dim += dim < 0 ? static_cast<int64_t>(dims.size()) : 0;
  return dims;
}

// The axes of `parts` in the order in which they lie in NHWC, where the first is N and the others are, in their order,
// those that C, H and W of `whole` are made of.
std::optional<Ints> AxesInNhwc(const Shape& whole, const Shape& parts) {
  if (whole.size() != 4 || parts.size() <= 4 || parts[0] != whole[0]) return std::nullopt;
  size_t begin = 1, channels = 0;
  for (size_t axis = 1; axis < 4; ++axis) {
    int64_t product = 1;
    for (; begin < parts.size() && product < whole[axis]; ++begin) product *= parts[begin];
    if (product != whole[axis]) return std::nullopt;
    if (axis == 1) channels = begin - 1;
  }
  Ints axes(parts.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.begin() + 1 + channels, axes.end());
  return axes;
}

bool IsRegrouping(const Regrouping& regrouping) {
  const Node &view = *regrouping.view, &permute = *regrouping.permute, &last = *regrouping.last;
  return IsView(view) && view.has_one_use() && permute.has_one_use() && last.tensor_type().num_elements() > 0 &&
         DimsOf(permute)[0] == 0 &&
         AxesInNhwc(regrouping.x().tensor_type().shape, view.tensor_type().shape).has_value() &&
         AxesInNhwc(last.tensor_type().shape, permute.tensor_type().shape).has_value();
}

Shape Permuted(const Shape& shape, const Ints& axes) {
  Shape permuted;
  for (const int64_t axis : axes) permuted.push_back(shape[axis]);
  return permuted;
}

}  // namespace

std::vector<Regrouping> RegroupingsOf(const ir::Graph& graph) {
  std::vector<Regrouping> found;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!IsView(*node) || !node->operand(0)->IsOp("permute")) continue;
    const Node* permute = node->operand(0);
    const Regrouping regrouping = {permute->operand(0), permute, node};
    if (IsRegrouping(regrouping)) found.push_back(regrouping);
  }
  return found;
}

kernels::KernelDesc InNhwc(const Regrouping& regrouping) {
  TensorType from = regrouping.view->tensor_type(), to = regrouping.last->tensor_type();
  const Ints from_axes = *AxesInNhwc(regrouping.x().tensor_type().shape, from.shape);
  const Ints to_axes = *AxesInNhwc(to.shape, regrouping.permute->tensor_type().shape);
  from.shape = Permuted(from.shape, from_axes);
  to.layout = Layout::kNhwc;
  const Ints dims = DimsOf(*regrouping.permute);
  Ints in_nhwc;
  for (const int64_t axis : to_axes) {
    in_nhwc.push_back(std::find(from_axes.begin(), from_axes.end(), dims[axis]) - from_axes.begin());
  }
  kernels::KernelDesc desc;
  desc.op = "permute";
  desc.attributes = {{"dims", Attribute(in_nhwc)}};
  desc.inputs = {std::move(from)};
  desc.outputs = {std::move(to)};
  return desc;
}

}  // namespace fuselage::runtime
