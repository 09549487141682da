#include "passes/quantize/select.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/quantize/observers.h"

namespace fuselage::quantize {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

struct OpRule {
  absl::string_view op;
  bool float_result;  // The quantized form can leave its result in f32: accumulators need no codes behind them.
  bool keeps_range;   // Every result is one of the inputs.
};
constexpr OpRule kOps[] = {
    {"add", false, false},   {"avg_pool2d", false, false}, {"conv2d", true, false}, {"global_avg_pool", false, false},
    {"linear", true, false}, {"max_pool2d", false, true},  {"relu", false, false},
};

const OpRule* FindRuleOrNull(absl::string_view op) {
  for (const OpRule& rule : kOps) {
    if (rule.op == op) return &rule;
  }
  return nullptr;
}

bool IsF32(const Node* node) { return node->type().is_tensor() && node->tensor_type().dtype == DType::kF32; }

// Moves elements, and loses or repeats none.
bool IsView(const Node* node) {
  if (node->op() == nullptr || !node->op()->view || node->num_operands() == 0) return false;
  const Node* source = node->operand(0);
  return IsF32(node) && IsF32(source) && node->tensor_type().num_elements() == source->tensor_type().num_elements();
}

// A residual is added in codes, so there must be an output scale.
bool HasFloatResult(const Node& node) {
  return FindRuleOrNull(node.op()->name)->float_result && DataOperands(node).size() == 1;
}

class Selector {
 public:
  Selector(const QuantizeOptions& options, const ir::Graph& graph, Remarks& remarks)
      : options_(options), graph_(graph), remarks_(remarks) {}

  absl::StatusOr<Selection> Run() {
    RETURN_IF_ERROR(CheckOptions());
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      Node* root = IsView(node) ? view_root_.at(node->operand(0)) : node;
      view_root_[node] = root;
      if (!IsCandidate(*node)) continue;
      const std::string reason = WhyNot(*node);
      if (reason.empty()) {
        selected_.insert(node);
      } else {
        remarks_.Missed(*node, reason);
      }
    }
    DropOutputs();
    DropSharedModules();

    Selection selection;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const bool selected = selected_.contains(node);
      const bool shares = IsView(node) || (selected && FindRuleOrNull(node->op()->name)->keeps_range);
      Node* source = shares ? selection.range_source.at(node->operand(0)) : node;
      selection.range_source[node] = source;
      if (selected) {
        selection.nodes.push_back(node);
        for (const int i : DataOperands(*node)) selection.edges.push_back({node->operand(i), node, i});
      } else if (!IsView(node)) {
        AddFloatEdges(node, selection.edges);
      }
    }
    return selection;
  }

 private:
  absl::Status CheckOptions() const {
    for (const std::string& op : options_.ops()) {
      if (FindRuleOrNull(op) != nullptr) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "ops: '", op, "' has no quantized form, wanted one of ",
          absl::StrJoin(kOps, ", ", [](std::string* out, const OpRule& rule) { absl::StrAppend(out, rule.op); })));
    }
    if (options_.input_channel_multiple() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input_channel_multiple is ", options_.input_channel_multiple(), ", wanted at least 0"));
    }
    for (const std::string& glob : options_.skip()) {
      bool found = false;
      for (const Node* node = graph_.first(); node != nullptr && !found; node = node->next()) {
        found = node->is_call() && Fits(glob, *node);
      }
      if (!found) return absl::InvalidArgumentError(absl::StrCat("skip: '", glob, "' fits no node and no module"));
    }
    return absl::OkStatus();
  }

  static bool Fits(absl::string_view glob, const Node& node) {
    return GlobMatches(glob, node.name()) || (node.module() != nullptr && GlobMatches(glob, node.module()->path));
  }

  bool IsCandidate(const Node& node) const {
    if (node.op() == nullptr || FindRuleOrNull(node.op()->name) == nullptr) return false;
    if (options_.ops().empty()) return true;
    for (const std::string& op : options_.ops()) {
      if (op == node.op()->name) return true;
    }
    return false;
  }

  // Why a candidate stays in FP32 whatever its neighbours do; empty where nothing speaks against it.
  std::string WhyNot(const Node& node) const {
    for (const std::string& glob : options_.skip()) {
      if (Fits(glob, node)) return absl::StrCat("kept in FP32: skip '", glob, "'");
    }
    if (!IsF32(&node)) return absl::StrCat("result is ", ToString(node.type()), ", wanted f32");
    for (const int i : DataOperands(node)) {
      const Node& operand = *node.operand(i);
      if (!IsF32(&operand)) return absl::StrCat("%", operand.name(), " is ", ToString(operand.type()), ", wanted f32");
    }
    if (node.op()->OperandIndex("weight") < 0) return "";
    if (node.module() == nullptr) return "its weight is an operand, wanted a module's parameter (see normalize)";
    const Tensor* weight = graph_.ParameterOfOrNull(node, "weight");
    if (weight->dtype() != DType::kF32) return absl::StrCat("weight is ", ToString(weight->type()), ", wanted f32");
    if (weight->num_elements() == 0) return "weight is empty";
    const absl::StatusOr<Range> range = FiniteRange(weight->values<float>());
    if (!range.ok()) return absl::StrCat("weight: ", range.status().message());
    const int multiple = options_.input_channel_multiple();
    if (multiple > 1 && weight->dim(1) % multiple != 0) {
      return absl::StrCat("kept in FP32: ", weight->dim(1), " input channels, no multiple of ", multiple);
    }
    return "";
  }

  // Without quantize_outputs, what feeds the graph's outputs must be able to produce floats.
  void DropOutputs() {
    if (options_.quantize_outputs() || graph_.output() == nullptr) return;
    for (const Node* value : graph_.output()->operands()) {
      Node* producer = view_root_[value];
      if (!selected_.contains(producer) || HasFloatResult(*producer)) continue;
      selected_.erase(producer);
      remarks_.Missed(*producer,
                      "kept in FP32: its result is a graph output and would be codes (option quantize_outputs)");
    }
  }

  // Call sites of one module share its weight.
  void DropSharedModules() {
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!selected_.contains(node) || node->module() == nullptr || node->op()->OperandIndex("weight") < 0) continue;
      for (const Node* other : node->module()->call_sites) {
        if (selected_.contains(other)) continue;
        selected_.erase(node);
        remarks_.Missed(*node, absl::StrCat("module @", node->module()->path, " is also called in FP32"));
        break;
      }
    }
  }

  // A float reader of a quantized op without a float form gets a pair of its own.
  void AddFloatEdges(Node* user, std::vector<Edge>& edges) {
    if (user->kind() == NodeKind::kOutput && !options_.quantize_outputs()) return;
    for (int i = 0; i < user->num_operands(); ++i) {
      Node* value = user->operand(i);
      if (value == nullptr || !selected_.contains(view_root_[value])) continue;
      if (user->kind() == NodeKind::kOutput || !HasFloatResult(*view_root_[value])) edges.push_back({value, user, i});
    }
  }

  const QuantizeOptions& options_;
  const ir::Graph& graph_;
  Remarks& remarks_;
  absl::flat_hash_map<const Node*, Node*> view_root_;  // The value above a chain of views.
  absl::flat_hash_set<const Node*> selected_;
};

}  // namespace

std::vector<int> DataOperands(const ir::Node& node) {
  std::vector<int> indices;
  int next = 0;
  for (const ir::OperandSpec& spec : node.op()->operands) {
    if (spec.parameter && node.module() != nullptr) continue;
    const int i = next++;
    if (!spec.parameter && i < node.num_operands() && node.operand(i) != nullptr) indices.push_back(i);
  }
  return indices;
}

bool GlobMatches(absl::string_view glob, absl::string_view text) {
  // On a mismatch the latest '*' takes one character more; that is all the backtracking globs need.
  size_t g = 0, t = 0, star = absl::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g, ++t;
    } else if (star != absl::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

absl::StatusOr<Selection> Select(const QuantizeOptions& options, const ir::Graph& graph, Remarks& remarks) {
  return Selector(options, graph, remarks).Run();
}

}  // namespace fuselage::quantize
