#include "passes/conv_bn/sums.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"
#include "passes/conv_bn/fold.h"

namespace fuselage::conv_bn {
namespace {

using ir::Node;
using passes::Remarks;

// A term of a sum that is `layer` of `input`: a convolution, a linear, or, with ones for weights, the input itself.
struct Term {
  Node* value = nullptr;
  const Node* input = nullptr;  // Null: another term.
  int sign = 1;
  Layer layer;
  std::vector<int64_t> stride, dilation, begin;  // For each axis of the kernel; `begin`: the padding in front.
  std::string why_not;                           // The layer cannot change or vanish.

  size_t axes() const { return layer.weight->rank() - 2; }
};

bool IsSumOfTerms(const Node& node) {
  return (IsSum(node) || IsSum(node, "sub")) && node.operand(0)->type() == node.type() &&
         node.operand(1)->type() == node.type();
}

bool IsPartOfSum(const Node& node) {
  return IsSumOfTerms(node) && node.has_one_use() && IsSumOfTerms(*node.only_user());
}

// Where a term is, and its sign in the whole.
struct Place {
  Node* sum = nullptr;
  int side = 0, sign = 1;

  Node* operand() const { return sum->operand(side); }
  bool is_minuend() const { return sum->IsOp("sub") && side == 0; }
};

// Calls found(place) for each operand of the tree of sums that is none itself.
template <typename Found>
void ForEachTerm(Node* root, Found found) {
  std::vector<std::pair<Node*, int>> sums = {{root, 1}};
  while (!sums.empty()) {
    const auto [sum, sign] = sums.back();
    sums.pop_back();
    for (const int side : {0, 1}) {
      const Place place = {sum, side, sum->IsOp("sub") && side == 1 ? -sign : sign};
      if (IsPartOfSum(*place.operand())) {
        sums.emplace_back(place.operand(), place.sign);
      } else {
        found(place);
      }
    }
  }
}

Place PlaceOf(const Node* value, Node* root) {
  Place found;
  ForEachTerm(root, [&](const Place& place) {
    if (place.operand() == value) found = place;
  });
  return found;
}

Term TermOf(const Place& place) {
  Term term;
  term.value = place.operand();
  term.sign = place.sign;
  const Node& node = *term.value;
  if (node.op() == nullptr || !(node.IsOp("linear") || match::IsConvolution(node))) return term;
  term.input = node.operand(0);
  term.why_not = match::SharedBesides(node, *place.sum);
  if (term.why_not.empty()) term.why_not = WhyNotFoldable(node, kEveryAxis, Weights::kFloats, &term.layer);
  if (term.why_not.empty()) term.why_not = WhyNotLinear(node);
  if (!term.why_not.empty() || node.IsOp("linear")) return term;
  term.stride = node.attribute("stride").as_ints();
  term.dilation = node.attribute("dilation").as_ints();
  const std::vector<int64_t>& padding = node.attribute("padding").as_ints();
  term.begin.assign(padding.begin(), padding.begin() + term.axes());
  return term;
}

// The input of `of` as a term, whose weights are `ones`.
Term InputTerm(Node* x, int sign, const Term& of, Tensor* ones) {
  Shape shape(of.layer.weight->rank(), 1);
  shape[0] = of.layer.groups;
  *ones = Tensor(DType::kF32, std::move(shape));
  std::fill_n(ones->data<float>(), of.layer.groups, 1.0f);
  const std::vector<int64_t> each(of.axes(), 1);
  return {x, x, sign, {ones, nullptr, of.layer.groups}, each, each, std::vector<int64_t>(of.axes(), 0), ""};
}

bool IsDepthwise(const Term& term) {
  return term.layer.groups > 1 && term.layer.weight->dim(0) == term.layer.groups && term.layer.weight->dim(1) == 1;
}

// Which of a's taps b's first one is, along each axis; none unless every product of b is one of a's, with other
// weights.
std::optional<std::vector<int64_t>> FirstTap(const Term& a, const Term& b) {
  if (a.layer.weight->rank() != b.layer.weight->rank() || b.layer.groups % a.layer.groups != 0) return std::nullopt;
  std::vector<int64_t> first;
  for (size_t i = 0; i < a.axes(); ++i) {
    const int64_t taps = a.layer.weight->dim(i + 2), b_taps = b.layer.weight->dim(i + 2);
    const int64_t distance = a.begin[i] - b.begin[i];
    if (a.stride[i] != b.stride[i] || (b_taps > 1 && a.dilation[i] != b.dilation[i])) return std::nullopt;
    if (distance < 0 || distance % a.dilation[i] != 0 || distance / a.dilation[i] + b_taps > taps) return std::nullopt;
    first.push_back(distance / a.dilation[i]);
  }
  return first;
}

// The terms of one sum.
class Merger {
 public:
  Merger(ir::Graph& graph, Node* root) : graph_(graph), root_(root) {
    ForEachTerm(root, [&](const Place& place) { terms_.push_back(TermOf(place)); });
    is_normed_ = root->has_one_use() && root->only_user()->IsOp("batch_norm");
  }

  absl::StatusOr<bool> Run(Missed& missed, Remarks& remarks) {
    bool changed = false;
    for (size_t i = 0; i < terms_.size(); ++i) {
      for (size_t j = i + 1; j < terms_.size(); ++j) {
        if (!AreOfOneInput(terms_[i], terms_[j])) continue;
        Term a = terms_[i], b = terms_[j];
        Tensor ones;
        if (IsInputOf(a, b)) a = InputTerm(a.value, a.sign, b, &ones);
        if (IsInputOf(b, a)) b = InputTerm(b.value, b.sign, a, &ones);
        std::string why = a.why_not.empty() ? b.why_not : a.why_not;
        const bool into_a = why.empty() && Takes(a, b), into_b = why.empty() && !into_a && Takes(b, a);
        if (into_a || into_b) {
          ASSIGN_OR_RETURN(why, into_a ? Merge(a, b, remarks) : Merge(b, a, remarks));
        } else if (why.empty()) {
          why = absl::StrCat("neither %", a.value->name(), " nor %", b.value->name(), " has room for the other");
        }
        if (!why.empty()) {
          missed.emplace_back(root_, absl::StrCat("not merged: ", why));
          continue;
        }
        changed = true;
        terms_[i] = into_a ? a : b;
        terms_.erase(terms_.begin() + j);
        j = i;  // A term that has grown may take what it had no room for.
      }
    }
    return changed;
  }

 private:
  // x itself beside a depthwise convolution of it, where the sum is normed.
  bool IsInputOf(const Term& x, const Term& term) const {
    return is_normed_ && x.value == term.input && term.why_not.empty() && IsDepthwise(term);
  }

  bool AreOfOneInput(const Term& a, const Term& b) const {
    if (IsInputOf(a, b) || IsInputOf(b, a)) return true;
    return a.input != nullptr && a.input == b.input && a.value->op() == b.value->op();
  }

  bool Takes(const Term& a, const Term& b) const {
    return a.value != a.input && FirstTap(a, b).has_value() && !PlaceOf(b.value, root_).is_minuend();
  }

  // Adds b, or of another sign its negative, to the weights of a, and takes it out of the sum. Why not, where it
  // declines.
  absl::StatusOr<std::string> Merge(Term& a, const Term& b, Remarks& remarks) {
    Folded folded = Sum(a.layer, b.layer, *FirstTap(a, b), a.sign * b.sign);
    if (!IsValid(folded)) return "the weights' sum is not finite";
    const bool has_bias = b.layer.bias != nullptr;
    RETURN_IF_ERROR(SetWeights(graph_, a.value, std::move(folded), has_bias));
    remarks.Applied(*a.value, absl::StrCat("merged with %", b.value->name(), ", a term of the same sum"));
    const Place place = PlaceOf(b.value, root_);
    Node *const sum = place.sum, *const rest = sum->operand(1 - place.side);
    a.value->AddSources(a.value->SourcesOrSelf());
    if (b.value != b.input) a.value->AddSources(b.value->SourcesOrSelf());
    a.value->AddSources(sum->SourcesOrSelf());
    sum->ReplaceAllUsesWith(rest);
    graph_.Erase(sum);
    if (sum == root_) root_ = rest;
    if (b.value != b.input) graph_.Erase(b.value);
    return WhyNotFoldable(*a.value, kEveryAxis, Weights::kFloats, &a.layer);
  }

  ir::Graph& graph_;
  Node* root_;
  std::vector<Term> terms_;
  bool is_normed_ = false;
};

}  // namespace

absl::StatusOr<bool> MergeSums(ir::Graph& graph, Missed& missed, Remarks& remarks) {
  std::vector<Node*> roots;
  for (Node* node : graph.Snapshot()) {
    if (node->is_call() && IsSumOfTerms(*node) && !IsPartOfSum(*node)) roots.push_back(node);
  }
  bool changed = false;
  for (Node* root : roots) {
    ASSIGN_OR_RETURN(const bool merged, Merger(graph, root).Run(missed, remarks));
    changed |= merged;
  }
  return changed;
}

}  // namespace fuselage::conv_bn
