// What conv_bn may fold into: layers that are linear in their input.
#ifndef FUSELAGE_PASSES_CONV_BN_LAYERS_H_
#define FUSELAGE_PASSES_CONV_BN_LAYERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/graph.h"
#include "passes/conv_bn/fold.h"

namespace fuselage::conv_bn {

constexpr int kEveryAxis = -1;

// Why nodes were declined, in their order.
using Missed = std::vector<std::pair<const ir::Node*, std::string>>;

// a + b or, of the op `sub`, a - b of f32, and nothing else.
bool IsSum(const ir::Node& node, absl::string_view op = "add");
// A convolution, transposed or not, or a linear.
bool IsLayer(const ir::Node& node);
// In the layer's result, and in its input, which has the same rank.
int ChannelAxis(const ir::Node& layer);

// Why `layer`'s weights cannot change by a map along `axis`; empty where they can. Those of kFloats are of f32; by
// kCodes they may be codes that FoldAfter takes, too.
enum class Weights { kFloats, kCodes };
std::string WhyNotFoldable(const ir::Node& layer, int axis, Weights weights, Layer* parts);
// Why the layer's result is more than products and a bias; empty where it is not.
std::string WhyNotLinear(const ir::Node& layer);

// Gives the layer's module new weights of the same shape, and a bias where it had one or has one now. Nothing here can
// fail but for the module's own check, which keeps types.
absl::Status SetWeights(ir::Graph& graph, ir::Node* layer, Folded folded, bool has_bias);

}  // namespace fuselage::conv_bn

#endif  // FUSELAGE_PASSES_CONV_BN_LAYERS_H_
