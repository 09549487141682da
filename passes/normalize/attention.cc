#include "passes/normalize/attention.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ir/batch.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

enum Operand { kQuery, kKey, kValue, kMask };

constexpr int kMostCallsAbove = 64;  // Of a mask.

const Shape& ShapeOf(const Node& node) { return node.tensor_type().shape; }

// x, where `node` is x with each head [N, K, T, D] `repeats` times in a row.
Node* RepeatedOrNull(Node* node) {
  if ((!node->IsOp("reshape") && !node->IsOp("flatten")) || !node->operand(0)->IsOp("expand")) return nullptr;
  const Node* expand = node->operand(0);
  if (expand->attribute(ir::kBatchAttribute).as_int() > 0) return nullptr;
  const Node* apart = expand->operand(0);
  if ((!apart->IsOp("unsqueeze") && !apart->IsOp("reshape")) || ShapeOf(*apart).size() != 5) return nullptr;
  Node* x = apart->operand(0);
  if (ShapeOf(*x).size() != 4) return nullptr;
  Shape wanted = ShapeOf(*x);
  wanted.insert(wanted.begin() + 2, 1);
  if (ShapeOf(*apart) != wanted) return nullptr;
  wanted[2] = ShapeOf(*expand)[2];
  if (ShapeOf(*expand) != wanted) return nullptr;
  return ShapeOf(*node) == Shape{wanted[0], wanted[1] * wanted[2], wanted[3], wanted[4]} ? x : nullptr;
}

// Null: it is computed from more than constants, or from too many calls.
absl::StatusOr<std::shared_ptr<const Tensor>> ValueOrNull(const Node& node, int& calls) {
  const std::shared_ptr<const Tensor> none;
  if (node.kind() == ir::NodeKind::kGetAttr) return node.graph().FindParameterOrNull(node.target())->tensor;
  const bool parameters = node.module() != nullptr && !node.module()->parameters.empty();
  if (!node.is_call() || parameters || !node.type().is_tensor() || --calls < 0) return none;
  std::vector<std::vector<Tensor>> values;
  for (const Node* operand : node.operands()) {
    values.emplace_back();
    if (operand == nullptr) continue;
    ASSIGN_OR_RETURN(const std::shared_ptr<const Tensor> value, ValueOrNull(*operand, calls));
    if (value == nullptr) return none;
    values.back().push_back(*value);
  }
  std::vector<const std::vector<Tensor>*> operands;
  for (const std::vector<Tensor>& value : values) operands.push_back(value.empty() ? nullptr : &value);
  ASSIGN_OR_RETURN(std::vector<Tensor> result,
                   ir::Evaluate(*node.op(), node.attributes(), std::move(operands), node.type()));
  return std::make_shared<const Tensor>(std::move(result[0]));
}

// Which pairs a mask leaves as they are, the others having no weight.
enum class Mask { kAll, kCausal, kOther };

Mask KindOf(const Tensor& mask) {
  const Shape& shape = mask.shape();
  const int64_t keys = shape.empty() ? 1 : shape.back(), queries = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  bool all = true, causal = true;
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    const double value = mask.At(i);
    const bool allowed = mask.dtype() == DType::kBool ? value != 0 : value == 0;
    if (!allowed && mask.dtype() != DType::kBool && !(value <= kNever)) return Mask::kOther;
    all &= allowed;
    causal &= allowed == (i % keys <= i / keys % queries);
  }
  return all ? Mask::kAll : causal ? Mask::kCausal : Mask::kOther;
}

}  // namespace

absl::StatusOr<std::vector<NewCall>> SimplifiedAttention(const Node& node) {
  NewCall call{node.op()->name, node.operands(), {}, node.attributes()};
  Node* const key = RepeatedOrNull(node.operand(kKey));
  Node* const value = RepeatedOrNull(node.operand(kValue));
  if (key != nullptr && value != nullptr && ShapeOf(*key)[1] == ShapeOf(*value)[1]) {
    call.operands[kKey] = key;
    call.operands[kValue] = value;
    return std::vector<NewCall>{std::move(call)};
  }
  if (node.num_operands() <= kMask || node.operand(kMask) == nullptr) return std::vector<NewCall>();
  int calls = kMostCallsAbove;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Tensor> mask, ValueOrNull(*node.operand(kMask), calls));
  const Mask kind = mask == nullptr ? Mask::kOther : KindOf(*mask);
  if (kind == Mask::kOther) return std::vector<NewCall>();
  if (kind == Mask::kCausal) {
    const Shape& scores = mask->shape();  // Not one that repeats along an axis.
    const bool whole = scores.size() >= 2 && scores.back() == ShapeOf(*node.operand(kKey)).rbegin()[1] &&
                       scores.rbegin()[1] == ShapeOf(*node.operand(kQuery)).rbegin()[1];
    if (!whole) return std::vector<NewCall>();
    call.attributes.insert_or_assign("is_causal", Attribute(true));
  }
  call.operands.pop_back();
  return std::vector<NewCall>{std::move(call)};
}

std::vector<NewCall> AddInPlaceOfViews(const Node& node) {
  Node* add = node.operand(0);
  if (!add->IsOp("add") || !add->has_one_use() || add->attribute("alpha").as_float() != 1 ||
      add->attribute("activation").as_string() != "none") {
    return {};
  }
  for (const int side : {0, 1}) {
    const Node& view = *add->operand(side);
    Node* added = add->operand(1 - side);
    if (!view.IsOp("reshape")) continue;
    Node* x = view.operand(0);
    const Shape &own = ShapeOf(*x), &other = ShapeOf(*added);
    Shape longer = own;
    longer.insert(longer.begin(), 1);
    if (own.empty() || ShapeOf(node) != own || ShapeOf(view) != longer || other.size() != longer.size() ||
        other[0] != 1) {
      continue;
    }
    return {{"squeeze", {added}, {}, {{"dims", std::vector<int64_t>{0}}}}, {"add", {x}, {}, {}}};
  }
  return {};
}

}  // namespace fuselage::normalize
