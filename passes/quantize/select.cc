#include "passes/quantize/select.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/elementwise.h"
#include "ir/base/hash_map.h"
#include "ir/base/suggest.h"
#include "ir/match/bytes.h"
#include "ir/match/channel_affine.h"
#include "ir/match/properties.h"
#include "passes/core/quantized_form.h"
#include "passes/quantize/exact.h"
#include "passes/quantize/maxima.h"
#include "passes/quantize/observers.h"

namespace fuselage::quantize {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

// An op that computes on codes, or hands them on.
bool HasRule(const ir::OpRegistry& ops, const ir::OpSchema& op) {
  const ir::OpSchema* form = ops.FindQuantizedFormOrNull(op.name);
  return form != nullptr ? !form->unbounded_error : op.keeps_range;
}

// Why a chain of elementwise steps stays in FP32: one of them would. Empty where none would, and for other ops.
std::string WhyNotSteps(const Node& node) {
  if (node.op()->FindAttributeOrNull("steps") == nullptr) return "";
  const absl::StatusOr<std::vector<ElementwiseStep>> steps =
      ParseElementwiseSteps(node.attribute("steps").as_strings(), node.num_operands());
  if (!steps.ok()) return std::string(steps.status().message());
  const ir::OpRegistry& ops = node.graph().ops();
  for (const ElementwiseStep& step : *steps) {
    const ir::OpSchema* op = ops.FindOrNull(step.op);
    if (op == nullptr || !HasRule(ops, *op)) return absl::StrCat("its step ", step.op, " has no quantized form");
  }
  return "";
}

// One tensor of f32, or several.
bool HasFloats(const Node& node) {
  const std::vector<TensorType>& types = node.type().elements();
  return std::all_of(types.begin(), types.end(), [](const TensorType& type) { return type.dtype == DType::kF32; });
}

// Hands on what it is given, codes or floats.
bool OnlyMoves(const Node& node) {
  return node.op()->keeps_range && node.graph().ops().FindQuantizedFormOrNull(node.op()->name) == nullptr;
}

// Why an op that hands codes on cannot take these operands as codes; empty where it can.
std::string WhyNoCodes(const Node& node) {
  const ir::Graph& graph = node.graph();
  if (!OnlyMoves(node)) return "";
  std::vector<const ir::Type*> types = graph.OperandTypes(node);
  std::vector<ir::Type> codes;
  codes.reserve(types.size());
  for (const ir::Type*& type : types) {
    if (type == nullptr || !type->is_tensor() || type->tensor().dtype != DType::kF32) continue;
    type = &codes.emplace_back(TensorType{DType::kU8, type->tensor().shape, PerTensor(1, 0), Layout::kRowMajor});
  }
  return std::string(ir::Infer(*node.op(), node.attributes(), types).status().message());
}

bool Fits(absl::string_view glob, const Node& node) {
  return GlobMatches(glob, node.name()) || (node.module() != nullptr && GlobMatches(glob, node.module()->path));
}

template <typename List, typename Value>
bool Contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Disjoint sets of values, of which each but one was joined to another (Galler and Fischer, 1964).
class Groups {
 public:
  int Add() {
    parents_.push_back(static_cast<int>(parents_.size()));
    return parents_.back();
  }
  int Find(int group) {
    while (parents_[group] != group) {
      parents_[group] = parents_[parents_[group]];
      group = parents_[group];
    }
    return group;
  }
  // The lower one stands for both.
  void Join(int a, int b) {
    a = Find(a);
    b = Find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int> parents_;
};

class Selector {
 public:
  Selector(const QuantizeOptions& options, const ir::Graph& graph, FourBitWeights& four_bits, Remarks& remarks,
           const KeptInFloat& kept)
      : options_(options),
        graph_(graph),
        remarks_(remarks),
        kept_(kept),
        exact_(ExactValues(graph)),
        four_bits_(four_bits.Find(options, graph)) {}

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
    DropStatistics();
    DropAmongFloats();
    DropIdleMoves();

    Selection selection;
    selection.four_bits = four_bits_;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const bool selected = selected_.contains(node);
      if (selected) {
        selection.nodes.push_back(node);
        const bool per_token = IsPerToken(*node);
        AddFloatEdges(node, selection.edges, per_token ? std::vector<int>() : DataOperands(*node));
        for (const int i : DataOperands(*node)) {
          (per_token ? selection.rows : selection.edges).push_back({node->operand(i), node, i});
        }
      } else if (!IsView(node)) {
        AddFloatEdges(node, selection.edges);
      }
    }
    Group(selection);
    return selection;
  }

 private:
  absl::Status CheckOptions() const {
    std::vector<std::string> known;
    for (const ir::OpSchema* op : graph_.ops().SortedByName()) {
      if (HasRule(graph_.ops(), *op)) known.push_back(op->name);
    }
    for (const auto* ops : {&options_.ops(), &options_.skip_ops()}) {
      for (const std::string& op : *ops) {
        if (Contains(known, op)) continue;
        return absl::InvalidArgumentError(absl::StrCat(ops == &options_.ops() ? "ops" : "skip_ops", ": '", op,
                                                       "' has no quantized form, wanted one of ",
                                                       absl::StrJoin(known, ", "), DidYouMean(op, known)));
      }
    }
    for (const auto& [name, multiple] :
         {std::make_pair("input_channel_multiple", options_.input_channel_multiple()),
          std::make_pair("output_channel_multiple", options_.output_channel_multiple())}) {
      if (multiple < 0) return absl::InvalidArgumentError(absl::StrCat(name, " is ", multiple, ", wanted at least 0"));
    }
    for (const std::string& glob : options_.skip()) RETURN_IF_ERROR(CheckGlob("skip", glob));
    for (const std::string& glob : options_.per_token()) RETURN_IF_ERROR(CheckGlob("per_token", glob));
    return absl::OkStatus();
  }

  absl::Status CheckGlob(absl::string_view option, const std::string& glob) const {
    std::vector<std::string> names;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!node->is_call()) continue;
      if (Fits(glob, *node)) return absl::OkStatus();
      names.push_back(node->name());
      if (node->module() != nullptr) names.push_back(node->module()->path);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": '", glob, "' fits no node and no module", DidYouMean(glob, names)));
  }

  bool IsPerToken(const Node& node) const {
    if (!TakesRows(node)) return false;
    return four_bits_.contains(node.module()->parameters.at("weight")) ||
           FittingOrNull(options_.per_token(), node) != nullptr;
  }

  bool IsCandidate(const Node& node) const {
    if (node.op() == nullptr || IsView(&node) || !HasRule(graph_.ops(), *node.op())) return false;
    return match::IsF32(node) || !OnlyMoves(node);  // Sizes and indices are no candidates.
  }

  // Why a candidate stays in FP32 whatever its neighbours do; empty where nothing speaks against it.
  std::string WhyNot(const Node& node) const {
    if (const auto it = kept_.find(node.name()); it != kept_.end()) return it->second;
    if (const std::string* glob = FittingOrNull(options_.skip(), node); glob != nullptr) {
      return absl::StrCat("kept in FP32: skip '", *glob, "'");
    }
    const std::string& op = node.op()->name;
    if (Contains(options_.skip_ops(), op)) return absl::StrCat("kept in FP32: skip_ops '", op, "'");
    if (!options_.ops().empty() && !Contains(options_.ops(), op)) {
      return absl::StrCat("kept in FP32: ops does not list '", op, "'");
    }
    if (!HasFloats(node)) return absl::StrCat("result is ", ToString(node.type()), ", wanted f32");
    for (const int i : DataOperands(node)) {
      const Node& operand = *node.operand(i);
      if (!match::IsF32(operand))
        return absl::StrCat("%", operand.name(), " is ", ToString(operand.type()), ", wanted f32");
    }
    if (node.op()->elementwise && !match::ChainFromBytes(node).empty())
      return "a function of bytes: a table of codes has it";
    if (const std::string reason = WhyNotSteps(node); !reason.empty()) return reason;
    if (const std::string reason = WhyNotFactors(node); !reason.empty()) return reason;
    const Node* layer = options_.quantize_outputs() && FeedsOutput(node) ? nullptr : match::LayerInFrontOrNull(node);
    // Whether the layer is kept or not: samples tell nothing of the value between the two.
    if (layer != nullptr && (selected_.contains(layer) || kept_.contains(layer->name()))) {
      return absl::StrCat("scales what %", layer->name(), " rounds to codes");
    }
    const std::vector<const ir::OperandSpec*> weights = passes::WeightsOf(*node.op());
    if (exact_.contains(&node) && graph_.CostOf(node).macs == 0) return "kept in FP32: it decides what is selected";
    if (weights.empty()) return WhyNoCodes(node);
    if (node.module() == nullptr) return "its weight is an operand, wanted a module's parameter (see normalize)";
    for (const ir::OperandSpec* weight : weights) {
      if (const std::string reason = WhyNotWeight(node, *weight); !reason.empty()) return reason;
    }
    const ir::OpSchema& form = *graph_.ops().FindQuantizedFormOrNull(op);
    return std::string(passes::InferForm(node, form, DataOperands(node)).status().message());
  }

  // Statistics that an elementwise op repeats, such as the reciprocal of a deviation in a norm that no pattern has: one
  // code in error is an error of all that it is repeated to, and small ones have few codes.
  std::string WhyNotFactors(const Node& node) const {
    if (!node.op()->elementwise) return "";
    for (const int i : DataOperands(node)) {
      const Node& value = SourceOf(*node.operand(i));
      if (value.op() == nullptr || !value.op()->elementwise || !match::ChainFromBytes(value).empty()) continue;
      if (value.tensor_type().num_elements() == node.tensor_type().num_elements()) continue;
      if (HasRule(graph_.ops(), *value.op()) && WhyNotSteps(value).empty()) continue;
      return absl::StrCat("it repeats %", value.name(), ", which has no quantized form");
    }
    return "";
  }

  std::string WhyNotWeight(const Node& node, const ir::OperandSpec& operand) const {
    const Tensor& weight = *graph_.ParameterOfOrNull(node, operand.name);
    if (weight.dtype() != DType::kF32) {
      return absl::StrCat(operand.name, " is ", ToString(weight.type()), ", wanted f32");
    }
    if (weight.num_elements() == 0) return absl::StrCat(operand.name, " is empty");
    const absl::StatusOr<Range> range = FiniteRange(weight.values<float>());
    if (!range.ok()) return absl::StrCat(operand.name, ": ", range.status().message());
    return WhyNotAligned(node, weight, operand.channel_axis);
  }

  // The weight is [..., output channels, input channels of one group, ...]; a linear is one group.
  std::string WhyNotAligned(const Node& node, const Tensor& weight, int channel_axis) const {
    const bool grouped = node.op()->FindAttributeOrNull("groups") != nullptr;
    const int64_t groups = grouped ? node.attribute("groups").as_int() : 1;
    const int64_t inputs = weight.dim(channel_axis + 1), outputs = weight.dim(channel_axis) / groups;
    const absl::string_view what = groups > 1 ? " channels of one group" : grouped ? " channels" : " features";
    const auto check = [&](absl::string_view side, int64_t found, int multiple) -> std::string {
      if (multiple <= 1 || found % multiple == 0) return "";
      return absl::StrCat("kept in FP32: ", found, " ", side, what, ", no multiple of ", multiple);
    };
    const std::string reason = check("input", inputs, options_.input_channel_multiple());
    return reason.empty() ? check("output", outputs, options_.output_channel_multiple()) : reason;
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
    HashMap<const ir::Module*, bool> also_float;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (node->module() != nullptr) also_float[node->module()] |= !selected_.contains(node);
    }
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!selected_.contains(node) || node->module() == nullptr || passes::WeightsOf(*node->op()).empty()) continue;
      if (!also_float[node->module()]) continue;
      selected_.erase(node);
      remarks_.Missed(*node, absl::StrCat("module @", node->module()->path, " is also called in FP32"));
    }
  }

  // Statistics of which floats alone are made, and what is computed between them and floats: of codes, which become
  // floats again at once, they would be less exact and no faster.
  void DropStatistics() {
    HashSet<const Node*> between;  // Codes that are made for each other and for floats alone.
    std::vector<Node*> nodes;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const bool light = selected_.contains(node) && !node->op()->keeps_range && graph_.CostOf(*node).macs == 0;
      if (!light || HasFloatResult(*node)) continue;
      nodes.push_back(node);
      between.insert(node);
    }
    const auto is_between = [&](const Node& node) {
      if (IsReadAsCodes(node, between)) return false;
      const std::vector<int> data = DataOperands(node);
      return Reduces(node) || std::all_of(data.begin(), data.end(), [&](int i) {
               const Node& source = SourceOf(*node.operand(i));
               return !selected_.contains(&source) || HasFloatResult(source) || between.contains(&source);
             });
    };
    for (bool changed = true; changed;) {
      changed = false;
      const auto drop = [&](const Node* node) {
        changed |= between.contains(node) && !is_between(*node) && between.erase(node) > 0;
      };
      std::for_each(nodes.rbegin(), nodes.rend(), drop);  // From readers to what they read,
      std::for_each(nodes.begin(), nodes.end(), drop);    // and back: long chains take one walk each way.
    }
    Groups groups;
    HashMap<const Node*, int> group_of;
    std::vector<int> reducing;
    for (const Node* node : nodes) {
      if (!between.contains(node)) continue;
      const int group = group_of[node] = groups.Add();
      const std::vector<Node*> readers = node->users();
      if (std::any_of(readers.begin(), readers.end(), [&](const Node* reader) { return Reduces(*reader); }) ||
          Reduces(*node)) {
        reducing.push_back(group);
      }
      for (const int i : DataOperands(*node)) {
        const Node& source = SourceOf(*node->operand(i));
        if (Reduces(source)) reducing.push_back(group);
        if (const auto from = group_of.find(&source); from != group_of.end()) groups.Join(group, from->second);
      }
    }
    HashSet<int> statistics;
    for (const int group : reducing) statistics.insert(groups.Find(group));
    for (Node* node : nodes) {
      if (!between.contains(node) || !statistics.contains(groups.Find(group_of.at(node)))) continue;
      selected_.erase(node);
      remarks_.Missed(*node, "kept in FP32: all that reads it reads floats");
    }
  }

  bool Reduces(const Node& node) const {
    if (node.op() == nullptr || !node.type().is_tensor() || graph_.CostOf(node).macs > 0) return false;
    const std::vector<int> data = DataOperands(node);
    return !data.empty() && std::all_of(data.begin(), data.end(), [&](int i) {
      const ir::Type& type = node.operand(i)->type();
      return type.is_tensor() && type.tensor().num_elements() > node.tensor_type().num_elements();
    });
  }

  // Itself, or seen through views.
  static bool FeedsOutput(const Node& value) {
    const std::vector<Node*> users = value.users();
    return std::any_of(users.begin(), users.end(), [](const Node* user) {
      return user->kind() == NodeKind::kOutput ||
             (user->op() != nullptr && user->op()->view != ir::View::kNone && FeedsOutput(*user));
    });
  }

  // By a quantized op that is none of `but`, or as a graph output, itself or seen through views.
  bool IsReadAsCodes(const Node& value, const HashSet<const Node*>& but) const {
    const std::vector<ir::Use> uses = value.uses();
    return std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
      const Node& reader = *use.user;
      if (reader.kind() == NodeKind::kOutput) return options_.quantize_outputs();
      const bool view = reader.op() != nullptr && reader.op()->view != ir::View::kNone && use.index == 0;
      return view ? IsReadAsCodes(reader, but) : ReadsCodes(reader, use.index) && !but.contains(&reader);
    });
  }

  // Ops without products that take what ops in FP32 give and give it to such, with all that is between them: codes would
  // be made for nothing.
  void DropAmongFloats() {
    Groups groups;
    HashMap<const Node*, int> group_of;
    std::vector<Node*> nodes;
    std::vector<int> busy;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!selected_.contains(node)) continue;
      nodes.push_back(node);
      const int group = group_of[node] = groups.Add();
      bool of_floats = graph_.CostOf(*node).macs == 0 && !(options_.quantize_outputs() && FeedsOutput(*node));
      for (const int i : DataOperands(*node)) {
        const Node& source = SourceOf(*node->operand(i));
        of_floats &= source.kind() != NodeKind::kPlaceholder;
        if (const auto from = group_of.find(&source); from != group_of.end()) groups.Join(group, from->second);
      }
      if (!of_floats) busy.push_back(group);
    }
    HashSet<int> with_work;
    for (const int group : busy) with_work.insert(groups.Find(group));
    for (Node* node : nodes) {
      if (with_work.contains(groups.Find(group_of.at(node)))) continue;
      selected_.erase(node);
      remarks_.Missed(*node, "kept in FP32: it has no products, and is among ops in FP32");
    }
  }

  // What only moves elements is on codes where an op that computes on them is beside it, or beside another such op that
  // it hands elements to or takes them from. Elsewhere codes would be made for nothing.
  void DropIdleMoves() {
    Groups groups;
    HashMap<const Node*, const Node*> sources;  // The value above a chain of views and slices.
    HashMap<const Node*, int> group_of;
    std::vector<Node*> moves;  // By group, before they are joined.
    std::vector<int> busy;     // Groups beside which something computes.
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const bool view = node->op() != nullptr && node->op()->view != ir::View::kNone && node->num_operands() > 0;
      const Node* above = view ? sources.at(node->operand(0)) : node;
      sources[node] = above;
      if (!selected_.contains(node)) continue;
      const bool moves_only = OnlyMoves(*node);
      if (moves_only) {
        group_of[node] = groups.Add();
        moves.push_back(node);
      }
      for (const int i : DataOperands(*node)) {
        const Node* source = sources.at(node->operand(i));
        if (!selected_.contains(source)) continue;
        const auto from = group_of.find(source);
        if (moves_only && from != group_of.end()) {
          groups.Join(group_of.at(node), from->second);
        } else if (moves_only || from != group_of.end()) {
          busy.push_back(moves_only ? group_of.at(node) : from->second);
        }
      }
    }
    std::vector<bool> is_busy(moves.size());
    for (const int group : busy) is_busy[groups.Find(group)] = true;
    for (size_t i = 0; i < moves.size(); ++i) {
      if (is_busy[groups.Find(static_cast<int>(i))]) continue;
      selected_.erase(moves[i]);
      remarks_.Missed(*moves[i], "kept in FP32: nothing beside it computes on codes");
    }
  }

  // A float reader of a quantized op without a float form gets a pair of its own; `codes` are operands that it does not
  // read as floats.
  void AddFloatEdges(Node* user, std::vector<Edge>& edges, const std::vector<int>& codes = {}) {
    if (user->kind() == NodeKind::kOutput && !options_.quantize_outputs()) return;
    for (int i = 0; i < user->num_operands(); ++i) {
      Node* value = user->operand(i);
      if (value == nullptr || Contains(codes, i) || !selected_.contains(view_root_[value])) continue;
      if (user->kind() == NodeKind::kOutput || !HasFloatResult(*view_root_[value])) edges.push_back({value, user, i});
    }
  }

  // Is the value read by slices, behind views or not, and is it, and what these make of it, read as codes alone?
  bool IsSlicedToCodes(const Node& value) const {
    bool sliced = false;
    std::vector<const Node*> values = {&value};
    while (!values.empty()) {
      const Node* read = values.back();
      values.pop_back();
      if (read->num_uses() == 0) return false;
      for (const ir::Use& use : read->uses()) {
        const Node* reader = use.user;
        const ir::View view = reader->op() != nullptr && use.index == 0 ? reader->op()->view : ir::View::kNone;
        if (view == ir::View::kNone && !ReadsCodes(*reader, use.index)) return false;
        if (view != ir::View::kNone) values.push_back(reader);
        sliced |= view == ir::View::kSelects;
      }
    }
    return sliced;
  }
  bool ReadsCodes(const Node& reader, int index) const {
    return selected_.contains(&reader) && !IsPerToken(reader) && Contains(DataOperands(reader), index);
  }

  // A slice of what is only codes is one of the codes, and shares their parameters.
  bool SelectsFromCodes(const Node* node, const HashSet<const Node*>& codes) const {
    if (node->op() == nullptr || node->op()->view != ir::View::kSelects || !match::IsF32(*node)) return false;
    return codes.contains(view_root_.at(node->operand(0)));
  }

  void Group(Selection& selection) const {
    Groups groups;
    std::vector<Node*> members;  // By group, before they are joined: the value that it began with.
    HashSet<const Node*> codes;  // Selected without a float result, or with no reader of it; slices of such.
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const bool keeps = selected_.contains(node) && node->op()->keeps_range;
      const bool selects = SelectsFromCodes(node, codes);
      const bool becomes = selected_.contains(node) && (!HasFloatResult(*node) || IsSlicedToCodes(*node));
      if (selects || becomes) codes.insert(node);
      if (!keeps && !selects && !IsView(node)) {
        selection.group_of[node] = groups.Add();
        members.push_back(node);
        continue;
      }
      const int group = selection.group_of.at(node->operand(0));
      selection.group_of[node] = group;
      if (!keeps) continue;
      for (const int i : DataOperands(*node)) groups.Join(group, selection.group_of.at(node->operand(i)));
    }
    selection.sources.resize(members.size());
    const Maxima maxima(graph_);
    for (size_t i = 0; i < members.size(); ++i) {
      maxima.AddWhatMatters(members[i], selection.sources[groups.Find(static_cast<int>(i))]);
    }
    for (auto& [node, group] : selection.group_of) group = groups.Find(group);
  }

  const QuantizeOptions& options_;
  const ir::Graph& graph_;
  Remarks& remarks_;
  const KeptInFloat& kept_;
  const HashSet<const Node*> exact_;
  HashMap<const Node*, Node*> view_root_;  // The value above a chain of views.
  const HashMap<std::string, int64_t> four_bits_;  // As Selection has them.
  HashSet<const Node*> selected_;
};

}  // namespace

bool IsView(const Node* node) {
  if (node->op() == nullptr || node->op()->view == ir::View::kNone || node->num_operands() == 0) return false;
  const Node* source = node->operand(0);
  return match::IsF32(*node) && match::IsF32(*source) &&
         node->tensor_type().num_elements() == source->tensor_type().num_elements();
}

const Node& SourceOf(const Node& value) {
  const Node* source = &value;
  while (source->op() != nullptr && source->op()->view != ir::View::kNone && source->num_operands() > 0) {
    source = source->operand(0);
  }
  return *source;
}

// A residual, which is optional, is added in codes, so there must be an output scale.
bool HasFloatResult(const ir::Node& node) {
  const ir::OpSchema* form = node.graph().ops().FindQuantizedFormOrNull(node.op()->name);
  if (form == nullptr || !form->float_result) return false;
  const std::vector<int> data = DataOperands(node);
  const std::vector<ir::Argument> arguments = node.arguments();
  return std::none_of(arguments.begin(), arguments.end(), [&](const ir::Argument& argument) {
    return argument.spec->optional && Contains(data, argument.index);
  });
}

std::vector<int> DataOperands(const ir::Node& node) {
  const ir::OpSchema* form = node.graph().ops().FindQuantizedFormOrNull(node.op()->name);
  std::vector<int> indices;
  for (const ir::Argument& argument : node.arguments()) {
    if (argument.spec->parameter || argument.value == nullptr) continue;
    const bool moved_by = node.op()->keeps_range && !match::IsF32(*argument.value);
    const bool as_it_is = form != nullptr && passes::TakesAsItIs(node, *form, argument.index);
    if (!moved_by && !as_it_is) indices.push_back(argument.index);
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

const std::string* FittingOrNull(const google::protobuf::RepeatedPtrField<std::string>& globs, const ir::Node& node) {
  const auto it = std::find_if(globs.begin(), globs.end(), [&](const std::string& glob) { return Fits(glob, node); });
  return it == globs.end() ? nullptr : &*it;
}

absl::StatusOr<Selection> Select(const QuantizeOptions& options, const ir::Graph& graph, FourBitWeights& four_bits,
                                 Remarks& remarks, const KeptInFloat& kept) {
  return Selector(options, graph, four_bits, remarks, kept).Run();
}

}  // namespace fuselage::quantize
