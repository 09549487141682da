#include "passes/quant_lift/lifter.h"

#include "absl/strings/str_cat.h"

namespace fuselage::quant_lift {
namespace {

using ir::Node;
using ir::NodeKind;

constexpr absl::string_view kResultNames[kMostResults] = {"_q", "_scale", "_offset"};

// Views that are no View: they are worth a remark.
bool LosesOrRepeats(const Node& node) { return node.op() != nullptr && node.op()->view == ir::View::kSelects; }

// One scale that is known beforehand: what it makes of an element depends on no other.
bool IsByElement(const Quantizing& quantizing) {
  return quantizing.quantize->IsOp("quantize") && quantizing.axes.empty();
}

}  // namespace

absl::StatusOr<bool> Lifter::Run() {
  FindQuantizes();
  FindViews();
  RETURN_IF_ERROR(Lift());
  const bool combined = Combine();
  AddSources();
  return !lifted_.empty() || combined;
}

void Lifter::ReportMissed() {
  for (const auto& [node, why] : missed_) remarks_.Missed(*node, absl::StrCat("quantize not lifted: ", why));
}

void Lifter::FindQuantizes() {
  Mutations mutations;
  for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
    const bool is_view = node->op() != nullptr && node->op()->view != ir::View::kNone && node->num_operands() > 0;
    if (is_view || IsLiftable(*node)) last_change_[node] = mutations.LastChangeOrNull(*node);
    if (IsLiftable(*node)) {
      Reading reading;
      reading.quantizing = OwnQuantizing(*node);
      reading.key = keys_.Of(reading.quantizing);
      if (node->type().is_tuple()) {
        reading.used_results = 0;
        for (const ir::Use& use : node->uses()) {
          if (use.user->IsOp("getitem")) {
            reading.used_results |= 1u << ResultIndex(*use.user);
          } else {
            reading.together = use.user;
          }
        }
      }
      readings_.emplace(node, std::move(reading));
    }
    mutations.Visit(*node);
  }
}

// A slice of what an op computes, where all that is read of it becomes the same codes, at least half of it by slices or
// as a whole: all of that as codes is less to move than the slices as floats.
std::optional<View> Lifter::CropOf(const Node& node) const {
  if (!node.IsOp("slice") || !node.operand(0)->is_call() || node.num_uses() == 0) return std::nullopt;
  const Node& source = *node.operand(0);
  const auto key_of = [this](const ir::Use& use) {
    const auto it = readings_.find(use.user);
    return use.index == 0 && it != readings_.end() ? it->second.key : -1;
  };
  const int key = key_of(node.uses()[0]);
  int64_t taken = 0;
  for (const ir::Use& use : source.uses()) {
    const Node& reader = *use.user;
    const bool quantizes = key >= 0 && key_of(use) == key;
    if (!quantizes && (!reader.IsOp("slice") || reader.num_uses() == 0)) return std::nullopt;
    taken += (quantizes ? source : reader).tensor_type().num_elements();
    if (quantizes || &reader == &node) continue;
    for (const ir::Use& behind : reader.uses()) {
      if (key < 0 || key_of(behind) != key) return std::nullopt;
    }
  }
  const TensorType &from = source.tensor_type(), &to = node.tensor_type();
  if (to.num_elements() == 0 || 2 * taken < from.num_elements()) return std::nullopt;
  return View{from.shape, to.shape, std::nullopt};
}

// Bottom up: all that read a view must be equal quantizes, or views that are lifted with the same.
void Lifter::FindViews() {
  for (Node* node = graph_.last(); node != nullptr; node = node->previous()) {
    std::optional<View> view = ViewOf(*node);
    if (!view && !LosesOrRepeats(*node)) continue;
    if (!view) view = CropOf(*node);
    bool quantized = false;
    for (const ir::Use& use : node->uses()) quantized = quantized || (use.index == 0 && readings_.contains(use.user));
    if (!quantized) continue;
    absl::StatusOr<Reading> reading =
        view ? ReadingOfView(*node, *view) : absl::UnimplementedError("it loses or repeats elements");
    if (reading.ok()) {
      readings_[node] = *std::move(reading);
      lifted_.push_back(node);
    } else {
      missed_.emplace_back(node, reading.status().message());
    }
  }
}

absl::StatusOr<Lifter::Reading> Lifter::ReadingOfView(const Node& view, const View& axes) {
  const Reading* first = nullptr;
  unsigned used_results = 0;
  for (const ir::Use& use : view.uses()) {
    if (use.user->kind() == NodeKind::kOutput) return absl::UnimplementedError("is a graph output as well");
    const auto it = readings_.find(use.user);
    if (use.index != 0 || it == readings_.end() || (first != nullptr && first->key != it->second.key)) {
      return absl::UnimplementedError(absl::StrCat("also read by %", use.user->name(), ", which is no equal quantize"));
    }
    const Reading& reading = it->second;
    if (first == nullptr) first = &reading;
    used_results |= reading.used_results;
    if (reading.together != nullptr) {
      return absl::UnimplementedError(absl::StrCat("%", reading.together->name(), " reads all results of %",
                                                   reading.quantizing.quantize->name(), " as one tuple"));
    }
    if (const Node* change = last_change_.at(use.user); change != last_change_.at(&view)) {
      return absl::UnimplementedError(
          absl::StrCat("%", change->name(), " is in place and comes before %", use.user->name()));
    }
  }
  if (LosesOrRepeats(view) && !IsByElement(first->quantizing)) {
    return absl::UnimplementedError("it loses elements that the scales depend on");
  }
  RETURN_IF_ERROR(CheckOperands(view, *first->quantizing.quantize));
  Reading reading;
  ASSIGN_OR_RETURN(reading.quantizing, InFrontOf(view, axes, first->quantizing));
  reading.axes_behind = first->quantizing.axes;
  reading.used_results = used_results;
  reading.key = keys_.Of(reading.quantizing);
  return reading;
}

// Few graphs need it.
int64_t Lifter::PositionOf(const Node& node) const {
  if (position_.empty()) {
    int64_t position = 0;
    for (const Node* n = graph_.first(); n != nullptr; n = n->next()) position_[n] = position++;
  }
  return position_.at(&node);
}

// Scales and zero points must be there above the view; a constant can be read anew.
absl::Status Lifter::CheckOperands(const Node& view, const Node& quantize) const {
  for (int i = 1; i < quantize.num_operands(); ++i) {
    const Node* operand = quantize.operand(i);
    if (operand == nullptr || operand->kind() == NodeKind::kGetAttr) continue;
    if (PositionOf(*operand) > PositionOf(view)) {
      return absl::UnimplementedError(absl::StrCat("%", operand->name(), " is defined after the view"));
    }
  }
  return absl::OkStatus();
}

absl::Status Lifter::Lift() {
  if (lifted_.empty()) return absl::OkStatus();
  for (auto it = lifted_.rbegin(); it != lifted_.rend(); ++it) {  // In the graph's order.
    Node* view = *it;
    const Reading& reading = readings_.at(view);
    Results results;
    if (const auto above = results_.find(view->operand(0)); above != results_.end()) {
      results = above->second;
    } else {
      ASSIGN_OR_RETURN(results, AddQuantize(reading, view));
      view->set_operand(0, results.above[0]);
    }
    for (int i = 1; i < kMostResults; ++i) {
      if ((reading.used_results & (1u << i)) == 0) continue;
      ASSIGN_OR_RETURN(results.here[i], AddViewOfResult(i, results.here[i], view));
    }
    results.here[0] = view;
    results_[view] = results;
  }
  // Apart from the loop above, whose views still name their quantize.
  for (Node* view : lifted_) ReplaceReaders(view);
  return graph_.InferAllTypes();
}

// The quantize of the view's operand, in front of the view.
absl::StatusOr<Lifter::Results> Lifter::AddQuantize(const Reading& reading, Node* view) {
  const Node& quantize = *reading.quantizing.quantize;
  Node* source = view->operand(0);
  std::vector<Node*> operands = quantize.operands();
  operands[0] = source;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i] == nullptr || PositionOf(*operands[i]) < PositionOf(*view)) continue;
    const std::vector<std::string> sources = operands[i]->SourcesOrSelf();
    ASSIGN_OR_RETURN(operands[i], graph_.AddGetAttr(operands[i]->name(), operands[i]->target(), view));
    operands[i]->AddSources(sources);
  }
  const bool tuple = quantize.type().is_tuple();
  Results results;
  ASSIGN_OR_RETURN(results.quantize,
                   graph_.AddFunction(absl::StrCat(source->name(), tuple ? "_quantized" : "_q"), quantize.op()->name,
                                      std::move(operands), AttributesOf(reading.quantizing), view));
  created_.insert(results.quantize);
  const Node* last_change = last_change_.at(view);  // Not a reference into a table that grows.
  last_change_[results.quantize] = last_change;
  remarks_.Applied(*results.quantize, absl::StrCat("lifted above %", view->name()));
  results.above[0] = results.quantize;
  for (int i = 0; tuple && i < kMostResults; ++i) {
    if (i > 0 && (reading.used_results & (1u << i)) == 0) continue;  // The view needs codes to stand on.
    ASSIGN_OR_RETURN(results.above[i], graph_.AddFunction(absl::StrCat(source->name(), kResultNames[i]), "getitem",
                                                          {results.quantize}, {{"index", int64_t{i}}}, view));
    created_.insert(results.above[i]);
  }
  results.here = results.above;
  return results;
}

// Scale or offset as the readers of the view expect it.
absl::StatusOr<Node*> Lifter::AddViewOfResult(int i, Node* result, Node* view) {
  if (result->tensor_type().rank() == 0) return result;
  const Reading& reading = readings_.at(view);
  const View axes = *ViewOf(*view);
  const std::string name = absl::StrCat(view->name(), kResultNames[i]);
  Node* moved = nullptr;
  if (axes.permutation) {
    ASSIGN_OR_RETURN(moved, graph_.AddFunction(name, "permute", {result}, {{"dims", *axes.permutation}}, view));
  } else {
    const TensorType input{DType::kF32, axes.to, std::nullopt, Layout::kRowMajor};
    ASSIGN_OR_RETURN(const ir::Type types, ResultsOf({reading.quantizing.quantize, reading.axes_behind}, input));
    Shape shape = types.elements()[i].shape;
    const Shape& from = result->tensor_type().shape;
    if (shape == from) return result;
    // The batch may change later: 0 keeps the first dimension, -1 takes it from the others.
    if (result->tensor_type().num_elements() > 0 && !shape.empty()) shape[0] = shape[0] == from[0] ? 0 : -1;
    ASSIGN_OR_RETURN(moved, graph_.AddFunction(name, "reshape", {result}, {{"shape", shape}}, view));
  }
  moved->AddSources(view->SourcesOrSelf());
  return moved;
}

void Lifter::ReplaceReaders(Node* view) {
  const Results& results = results_.at(view);
  for (Node* quantize : view->users()) {
    if (!IsLiftable(*quantize)) continue;
    if (!quantize->type().is_tuple()) {
      Replace(quantize, view, results.quantize);
      continue;
    }
    for (Node* getitem : quantize->users()) {
      const int i = ResultIndex(*getitem);
      Replace(getitem, results.here[i], results.above[i]);
    }
    Replace(quantize, results.quantize, results.quantize);
  }
}

// The first of equal quantizes serves all, and the first of equal getitems of it: in the graph's order, so it is
// defined before their readers. Keys are made anew, for scales may have been combined before.
bool Lifter::Combine() {
  HashMap<std::tuple<const Node*, int, const Node*>, Node*> first;
  bool changed = false;
  for (Node* node : graph_.Snapshot()) {
    int key;
    const Node* last_change = nullptr;
    if (IsLiftable(*node)) {
      key = keys_.Of(OwnQuantizing(*node));
      last_change = last_change_.at(node);
    } else if (node->IsOp("getitem") && IsLiftable(*node->operand(0))) {
      key = -1 - ResultIndex(*node);
    } else {
      continue;
    }
    const auto [it, added] = first.emplace(std::make_tuple(node->operand(0), key, last_change), node);
    if (added) continue;
    remarks_.Applied(*it->second, absl::StrCat("combined with %", node->name()));
    Replace(node, it->second, it->second);
    changed = true;
  }
  return changed;
}

// `node` goes; `heir` takes over its sources. Those are collected: one addition for each node keeps this linear.
void Lifter::Replace(Node* node, Node* replacement, Node* heir) {
  std::vector<std::string> moved;
  if (!created_.contains(node)) moved = node->SourcesOrSelf();
  if (const auto it = further_sources_.find(node); it != further_sources_.end()) {
    moved.insert(moved.end(), it->second.begin(), it->second.end());
    further_sources_.erase(it);
  }
  std::vector<std::string>& sources = further_sources_[heir];
  sources.insert(sources.end(), moved.begin(), moved.end());
  node->ReplaceAllUsesWith(replacement);
  graph_.Erase(node);
}

void Lifter::AddSources() {
  for (auto& [node, further] : further_sources_) {
    std::vector<std::string> sources;
    if (!created_.contains(node)) sources = node->SourcesOrSelf();
    sources.insert(sources.end(), further.begin(), further.end());
    node->AddSources(sources);
  }
}

}  // namespace fuselage::quant_lift
