#include "runtime/channel_permute.h"

#include <algorithm>
#include <utility>

namespace fuselage::runtime {
namespace {

using ir::Node;

bool IsView(const Node& node) { return node.op() != nullptr && node.op()->view == ir::View::kSameOrder; }

// Are the shapes the same but for what is between the first axis and the last two?
bool DifferInChannels(const Shape& a, const Shape& b) {
  return a.size() >= 4 && b.size() >= 4 && a[0] == b[0] && std::equal(a.end() - 2, a.end(), b.end() - 2);
}

// For each axis of a permute's result, the operand's.
std::vector<int64_t> DimsOf(const Node& permute) {
  std::vector<int64_t> dims = permute.attribute("dims").as_ints();
  for (int64_t& dim : dims) dim += dim < 0 ? static_cast<int64_t>(dims.size()) : 0;
  return dims;
}

bool IsChannelPermute(const ChannelPermute& channels) {
  const Node &view = *channels.view, &permute = *channels.permute, &last = *channels.last;
  if (!IsView(view) || !permute.IsOp("permute") || !IsView(last) || !view.has_one_use() || !permute.has_one_use()) {
    return false;
  }
  const std::vector<int64_t> dims = DimsOf(permute);
  const int64_t rank = static_cast<int64_t>(dims.size());
  return channels.x().tensor_type().rank() == 4 && last.tensor_type().rank() == 4 && rank > 4 && dims[0] == 0 &&
         dims[rank - 2] == rank - 2 && dims[rank - 1] == rank - 1 &&
         DifferInChannels(channels.x().tensor_type().shape, view.tensor_type().shape) &&
         DifferInChannels(permute.tensor_type().shape, last.tensor_type().shape);
}

// H and W in front of what is between them and N.
template <typename List>
List SpatialFirst(List list) {
  std::rotate(list.begin() + 1, list.end() - 2, list.end());
  return list;
}

}  // namespace

std::vector<ChannelPermute> ChannelPermutesOf(const ir::Graph& graph) {
  std::vector<ChannelPermute> found;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!IsView(*node) || !node->operand(0)->IsOp("permute")) continue;
    const Node* permute = node->operand(0);
    const ChannelPermute channels = {permute->operand(0), permute, node};
    if (IsView(*channels.view) && IsChannelPermute(channels)) found.push_back(channels);
  }
  return found;
}

kernels::KernelDesc InNhwc(const ChannelPermute& channels) {
  TensorType from = channels.view->tensor_type(), to = channels.permute->tensor_type();
  from.shape = SpatialFirst(std::move(from.shape));
  to.shape = SpatialFirst(std::move(to.shape));
  const std::vector<int64_t> dims = SpatialFirst(DimsOf(*channels.permute));
  // Where each axis of the operand has gone.
  std::vector<int64_t> axes(dims.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = static_cast<int64_t>(axis);
  const std::vector<int64_t> moved = SpatialFirst(axes);
  std::vector<int64_t> in_nhwc;
  for (const int64_t dim : dims) in_nhwc.push_back(std::find(moved.begin(), moved.end(), dim) - moved.begin());
  kernels::KernelDesc desc;
  desc.op = "permute";
  desc.attributes = {{"dims", Attribute(in_nhwc)}};
  desc.inputs = {std::move(from)};
  desc.outputs = {std::move(to)};
  return desc;
}

}  // namespace fuselage::runtime
