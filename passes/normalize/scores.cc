#include "passes/normalize/scores.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ir/match/in_place.h"
#include "ir/match/properties.h"
#include "passes/normalize/attention.h"
#include "passes/normalize/constants.h"
#include "passes/normalize/rules.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

constexpr int kMostSteps = 8;

const Shape& ShapeOf(const Node& node) { return node.tensor_type().shape; }

// The axes in front of the last two.
Shape Leading(const Node& node) {
  const Shape& shape = ShapeOf(node);
  return {shape.begin(), shape.end() - std::min<size_t>(2, shape.size())};
}

bool IsMatrices(const Node& node) {
  return node.type().is_tensor() && match::IsF32(node) && node.tensor_type().rank() >= 2;
}

// A view that leaves the last two axes as they are.
bool IsLeadingView(const Node& node) {
  if (!IsMatrices(node) || !IsView(node) || !IsMatrices(*node.operand(0))) return false;
  const Shape &from = ShapeOf(*node.operand(0)), &to = ShapeOf(node);
  return std::equal(from.end() - 2, from.end(), to.end() - 2);
}

// `node` itself or what it is a view of, whichever has these axes in front; null: neither.
Node* WithLeadingOrNull(Node* node, const Shape& leading) {
  if (!IsMatrices(*node)) return nullptr;
  if (Leading(*node) == leading) return node;
  return IsLeadingView(*node) && Leading(*node->operand(0)) == leading ? node->operand(0) : nullptr;
}

// x, where `node` is x with its last two axes swapped; else null.
Node* TransposedOrNull(const Node& node) {
  if (!IsMatrices(node) || !node.is_call()) return nullptr;
  const int rank = node.tensor_type().rank();
  std::vector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[rank - 1], dims[rank - 2]);
  if (node.IsOp("permute")) {
    std::vector<int64_t> own = node.attribute("dims").as_ints();
    for (int64_t& dim : own) dim = dim < 0 ? dim + rank : dim;
    return own == dims ? node.operand(0) : nullptr;
  }
  if (!node.IsOp("transpose")) return nullptr;
  const int first = NormalizeAxis(node.attribute("dim0").as_int(), rank).value_or(-1);
  const int second = NormalizeAxis(node.attribute("dim1").as_int(), rank).value_or(-1);
  return std::min(first, second) == rank - 2 && std::max(first, second) == rank - 1 ? node.operand(0) : nullptr;
}

const Tensor* ConstantOrNull(const Node& node) {
  return node.kind() == ir::NodeKind::kGetAttr ? node.graph().FindParameterOrNull(node.target())->tensor.get() : nullptr;
}

// The value of a constant of one element.
std::optional<double> NumberOf(const Node& node) {
  const Tensor* constant = ConstantOrNull(node);
  if (constant == nullptr || constant->dtype() != DType::kF32 || constant->num_elements() != 1) return std::nullopt;
  return constant->At(0);
}

// What is done to scores, the first step last.
struct Step {
  enum class Kind { kScale, kAdd, kAllow, kMask };
  Kind kind;
  double number = 1;    // The factor, of the scores or, of what is added, of that; or what replaces scores.
  Node* other = nullptr;
  Shape leading;  // Of the scores.
};

class Attention {
 public:
  explicit Attention(const Node& node) : node_(node), leading_(Leading(node)) {}

  bool Match() {
    if (leading_.empty()) return false;
    const Node* mixture = &node_;
    if (IsLeadingView(node_)) {
      mixture = node_.operand(0);
      if (!mixture->has_one_use()) return false;
    }
    if (!mixture->is_call() || !mixture->IsOp("matmul")) return false;
    value_ = WithLeadingOrNull(mixture->operand(1), leading_);
    if (value_ == nullptr || Leading(*mixture->operand(1)) != Leading(*mixture)) return false;
    Node* weights = mixture->operand(0);
    while (IsLeadingView(*weights) && weights->has_one_use()) weights = weights->operand(0);
    consumed_ = {mixture, weights};
    if (!weights->is_call() || !weights->IsOp("softmax") || !IsMatrices(*weights) || !weights->has_one_use()) return false;
    const int64_t last = weights->tensor_type().rank() - 1, dim = weights->attribute("dim").as_int();
    return (dim == -1 || dim == last) && Follow(weights->operand(0));
  }

  absl::StatusOr<bool> Build(NewNodes& nodes) {
    double scale = 1;
    Node* mask = nullptr;
    const auto times = [&](Node* x, double factor) -> absl::StatusOr<Node*> {
      if (factor == 1) return x;
      ASSIGN_OR_RETURN(Node * constant, nodes.Constant(Tensor::Scalar(static_cast<float>(factor)), "factor"));
      return nodes.Add("mul", {x, constant});
    };
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (step->kind == Step::Kind::kScale) {
        scale *= step->number;
        if (mask == nullptr) continue;
        ASSIGN_OR_RETURN(mask, times(mask, step->number));
        continue;
      }
      ASSIGN_OR_RETURN(Node * other, Adapted(*step, nodes));
      if (step->kind == Step::Kind::kAdd) {
        ASSIGN_OR_RETURN(other, times(other, step->number));
        if (mask != nullptr) {
          ASSIGN_OR_RETURN(other, nodes.Add("add", {mask, other}));
        }
        mask = other;
        continue;
      }
      if (mask == nullptr) {
        ASSIGN_OR_RETURN(mask, nodes.Constant(Tensor::Scalar(0.0f), "zero"));
      }
      ASSIGN_OR_RETURN(Node * low, nodes.Constant(Tensor::Scalar(static_cast<float>(step->number)), "low"));
      const bool allows = step->kind == Step::Kind::kAllow;
      ASSIGN_OR_RETURN(mask, nodes.Add("where", {other, allows ? mask : low, allows ? low : mask}));
    }
    Node* keys = keys_;
    if (keys == nullptr) {
      ASSIGN_OR_RETURN(keys, nodes.Add("transpose", {transposed_keys_}, {{"dim0", -2}, {"dim1", -1}}));
    }
    std::vector<Node*> operands = {query_, keys, value_};
    if (mask != nullptr) operands.push_back(mask);
    ASSIGN_OR_RETURN(Node * attention,
                     nodes.Add("scaled_dot_product_attention", std::move(operands), {{"scale", scale}}));
    for (const Node* node : consumed_) attention->AddSources(node->SourcesOrSelf());
    return true;
  }

 private:
  // From a value up to the product that it comes from. Every step has one reader.
  bool Follow(Node* scores) {
    if (steps_.size() > kMostSteps || !IsMatrices(*scores) || !scores->is_call() || !scores->has_one_use()) return false;
    if (scores->module() == nullptr && match::IsInPlace(scores->target())) return false;  // That others may read.
    if (IsLeadingView(*scores)) return Follow(scores->operand(0));
    if (scores->IsOp("matmul")) return IsProduct(*scores);
    if (scores->IsOp("clamp")) {
      return IsLow(scores->attribute("min").as_float()) &&
             scores->attribute("max").as_float() == std::numeric_limits<double>::infinity() &&
             Follow(scores->operand(0));
    }
    if (scores->IsOp("where")) {
      for (const int side : {1, 2}) {
        const std::optional<double> low = NumberOf(*scores->operand(3 - side));
        const Step::Kind kind = side == 1 ? Step::Kind::kAllow : Step::Kind::kMask;
        if (low && IsLow(*low) && Through(scores, side, kind, *low, scores->operand(0))) {
          return true;
        }
      }
      return false;
    }
    for (const int side : {0, 1}) {
      Node* other = scores->num_operands() == 2 ? scores->operand(1 - side) : nullptr;
      if (other == nullptr) return false;
      const std::optional<double> number = NumberOf(*other);
      if (scores->IsOp("add") && (scores->attribute("activation").as_string() != "none" ||
                                  scores->attribute("alpha").as_float() != 1)) {
        return false;
      }
      if (scores->IsOp("mul") && number && Through(scores, side, Step::Kind::kScale, *number, nullptr)) return true;
      if (scores->IsOp("div") && side == 0 && number && *number != 0 &&
          Through(scores, side, Step::Kind::kScale, 1 / *number, nullptr)) {
        return true;
      }
      const bool sub = scores->IsOp("sub");
      if (!scores->IsOp("add") && !(sub && side == 0)) continue;
      if (Through(scores, side, Step::Kind::kAdd, sub ? -1 : 1, other)) return true;
    }
    return false;
  }

  bool Through(Node* scores, int side, Step::Kind kind, double number, Node* other) {
    Node* operand = scores->operand(side);
    if (!operand->type().is_tensor() || ShapeOf(*operand) != ShapeOf(*scores)) return false;
    steps_.push_back({kind, number, other, Leading(*scores)});
    consumed_.push_back(scores);
    if ((other == nullptr || CanAdapt(steps_.back())) && Follow(operand)) return true;
    steps_.pop_back();
    consumed_.pop_back();
    return false;
  }

  // Of a score, with what it is multiplied by in the steps so far.
  bool IsLow(double score) const {
    double factor = 1;
    for (const Step& step : steps_) factor *= step.kind == Step::Kind::kScale ? step.number : 1;
    return factor > 0 && score * factor <= kNever;
  }

  bool IsProduct(const Node& product) {
    if (Leading(*product.operand(0)) != Leading(product) || Leading(*product.operand(1)) != Leading(product)) return false;
    consumed_.push_back(&product);
    query_ = WithLeadingOrNull(product.operand(0), leading_);
    Node* const keys = TransposedOrNull(*product.operand(1));
    keys_ = keys == nullptr ? nullptr : WithLeadingOrNull(keys, leading_);
    transposed_keys_ = WithLeadingOrNull(product.operand(1), leading_);
    if (query_ != nullptr && (keys_ != nullptr || transposed_keys_ != nullptr)) return true;
    consumed_.pop_back();
    return false;
  }

  // A step's operand goes with scores that have the axes of the step. With those of the attention it goes where it does
  // not depend on them, or is a constant that can be viewed so.
  bool CanAdapt(const Step& step) const {
    if (!step.other->type().is_tensor()) return false;
    const Shape own = Leading(*step.other);
    if (step.leading == leading_ || std::all_of(own.begin(), own.end(), [](int64_t size) { return size == 1; })) {
      return true;
    }
    return ConstantOrNull(*step.other) != nullptr && own == step.leading;
  }

  absl::StatusOr<Node*> Adapted(const Step& step, NewNodes& nodes) const {
    Node* other = step.other;
    const Shape own = Leading(*other);
    if (step.leading == leading_ || own.empty()) return other;
    if (std::all_of(own.begin(), own.end(), [](int64_t size) { return size == 1; })) {
      if (own.size() <= leading_.size()) return other;
      std::vector<int64_t> dims(own.size() - leading_.size());
      std::iota(dims.begin(), dims.end(), 0);
      return nodes.Add("squeeze", {other}, {{"dims", std::move(dims)}});
    }
    Shape shape = leading_;
    shape.insert(shape.end(), ShapeOf(*other).end() - 2, ShapeOf(*other).end());
    ASSIGN_OR_RETURN(const Constant constant, ConstantOf(*other));
    return nodes.Constant(*Reshaped(constant, shape).tensor, "mask");
  }

  const Node& node_;
  const Shape leading_;
  std::vector<Step> steps_;
  std::vector<const Node*> consumed_;  // Beside views and bounds.
  Node *query_ = nullptr, *keys_ = nullptr, *transposed_keys_ = nullptr, *value_ = nullptr;
};

}  // namespace

absl::StatusOr<bool> AsAttention(const Node& node, NewNodes& nodes) {
  if (!IsMatrices(node)) return false;
  const std::vector<Node*> users = node.users();
  if (users.size() == 1 && IsLeadingView(*users[0]) && Attention(*users[0]).Match()) return false;  // For its turn.
  Attention attention(node);
  if (!attention.Match()) return false;
  return attention.Build(nodes);
}

}  // namespace fuselage::normalize
