#include "passes/normalize/padding.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/match/sharing.h"

namespace fuselage::normalize {

namespace {

using ir::Node;

bool IsPool(const Node& node) { return node.op()->FindAttributeOrNull("kernel_size") != nullptr; }

bool IsNonNegative(const Node& node) {
  if (node.IsOp("clamp")) return node.attribute("min").as_float() >= 0;
  return node.IsOp("relu") || node.IsOp("relu6") || node.IsOp("sigmoid") || node.IsOp("hardsigmoid");
}

// Why what fills the padding of `pad` is not what the padding of `node` means; empty where it is.
std::string WhyOtherFill(const Node& node, const Node& pad) {
  if (pad.attribute("mode").as_string() != "constant") {
    return absl::StrCat("its mode is ", pad.attribute("mode").as_string());
  }
  const double value = pad.attribute("value").as_float();
  const bool pads = absl::c_any_of(node.attribute("padding").as_ints(), [](int64_t p) { return p != 0; });
  if (absl::StartsWith(node.op()->name, "max_pool")) {
    const bool is_lowest = value <= std::numeric_limits<float>::lowest();
    if (is_lowest || (value <= 0 && !pads && IsNonNegative(*pad.operand(0)))) return "";
    return absl::StrCat("it fills with ", value, ", which may be a maximum");
  }
  if (value != 0) return absl::StrCat("it fills with ", value);
  if (IsPool(node) && pads && !node.attribute("count_include_pad").as_bool()) {
    return "the pool counts its zeros, but not its own padding's";
  }
  return "";
}

// Why the pool cannot have this padding; empty where it can.
std::string WhyNotOfPool(const Node& pool, const std::vector<int64_t>& padding) {
  if (pool.attribute("ceil_mode").as_bool()) return "the pool has ceil_mode";
  const std::vector<int64_t>& kernel = pool.attribute("kernel_size").as_ints();
  const bool dilates = pool.op()->FindAttributeOrNull("dilation") != nullptr;
  for (size_t i = 0; i < padding.size(); ++i) {
    const size_t axis = i % kernel.size();
    const int64_t dilation = dilates ? pool.attribute("dilation").as_ints()[axis] : 1;
    if (padding[i] > (kernel[axis] - 1) * dilation) return "whole windows would lie in the padding";
  }
  return "";
}

}  // namespace

std::optional<AttributeMap> WithPadding(const Node& node, passes::Remarks& remarks) {
  static constexpr absl::string_view kPadded[] = {"conv1d",     "conv2d",     "conv3d",     "avg_pool1d", "avg_pool2d",
                                                  "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"};
  if (!absl::c_linear_search(kPadded, node.op()->name) || !node.operand(0)->IsOp("pad")) return std::nullopt;
  const Node& pad = *node.operand(0);
  const std::vector<int64_t>& pads = pad.attribute("pads").as_ints();  // Begins, then ends, of all axes.
  const size_t rank = pads.size() / 2, spatial = rank - 2;
  std::vector<int64_t> padding = node.attribute("padding").as_ints();
  std::string why = WhyOtherFill(node, pad);
  for (size_t i = 0; i < pads.size(); ++i) {
    const size_t axis = i % rank;
    if (pads[i] < 0) {
      why = "it cuts";
    } else if (axis < 2 && pads[i] > 0) {
      why = "it pads batch or channels";
    } else if (axis >= 2) {
      padding[i / rank * spatial + axis - 2] += pads[i];
    }
  }
  if (why.empty() && IsPool(node)) why = WhyNotOfPool(node, padding);
  if (why.empty()) why = match::SharedModule(node);
  if (!why.empty()) {
    remarks.Missed(node, absl::StrCat("does not pad in place of %", pad.name(), ": ", why));
    return std::nullopt;
  }
  AttributeMap attributes = node.attributes();
  attributes.insert_or_assign("padding", Attribute(std::move(padding)));
  if (absl::StartsWith(node.op()->name, "avg_pool")) attributes.insert_or_assign("count_include_pad", Attribute(true));
  return attributes;
}

}  // namespace fuselage::normalize
