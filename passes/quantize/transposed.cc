#include "passes/quantize/transposed.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/subpixel.h"

namespace fuselage::quantize {
namespace {

using ir::Node;
using passes::Remark;
using passes::Remarks;

// The only reader of `node`, where that is an activation that the options do not name; else null.
Node* ActivationOrNull(const QuantizeOptions& options, const Node& node) {
  if (!node.has_one_use()) return nullptr;
  Node* reader = node.only_user();
  const bool stays = fusion::ActivationOf(*reader).is_none() || FittingOrNull(options.skip(), *reader) != nullptr;
  return stays ? nullptr : reader;
}

std::vector<Node*> TransposedOf(const ir::Graph& graph, Remarks& remarks) {
  std::vector<Node*> found;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->IsOp("conv_transpose2d")) continue;
    const std::string why = fusion::WhyNotSubpixel(*node);
    if (why.empty()) {
      found.push_back(node);
    } else {
      remarks.Missed(*node, absl::StrCat("kept in FP32: ", why));
    }
  }
  return found;
}

absl::Status Rewrite(const QuantizeOptions& options, Node* node, ir::Graph& graph) {
  return fusion::RewriteAsSubpixel(node, ActivationOrNull(options, *node), graph);
}

}  // namespace

absl::StatusOr<Selection> SelectWithTransposed(const QuantizeOptions& options, ir::Graph& graph,
                                               FourBitWeights& four_bits, Remarks& remarks, KeptInFloat kept) {
  const std::vector<Node*> transposed = TransposedOf(graph, remarks);
  if (transposed.empty()) return Select(options, graph, four_bits, remarks, kept);
  const std::unique_ptr<ir::Graph> all_rewritten = graph.Clone();
  for (const Node* node : transposed) {
    const auto it = kept.find(node->name());
    const Node* activation = ActivationOrNull(options, *node);
    if (it != kept.end() && activation != nullptr) kept.emplace(activation->name(), std::string(it->second));
    RETURN_IF_ERROR(Rewrite(options, all_rewritten->FindNodeOrNull(node->name()), *all_rewritten));
  }
  Remarks tried;
  ASSIGN_OR_RETURN(const Selection selection, Select(options, *all_rewritten, four_bits, tried, kept));
  HashSet<std::string> selected;
  for (const Node* node : selection.nodes) selected.insert(node->name());
  for (Node* node : transposed) {
    if (selected.contains(node->name())) {
      remarks.Note(*node, "as a convolution and depth to space");
      RETURN_IF_ERROR(Rewrite(options, node, graph));
      continue;
    }
    for (const Remark& remark : tried.list()) {
      if (remark.node == node->name()) remarks.Missed(*node, remark.message);
    }
  }
  return Select(options, graph, four_bits, remarks, kept);
}

}  // namespace fuselage::quantize
