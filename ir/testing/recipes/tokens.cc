#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::tokens {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// An image whose channels go behind its pixels and come back, as transformers with convolutions do it: as one permute,
// or by way of a row of tokens. A pool in front and one behind want the image in NHWC.
bool Tokens(Draft& draft) {
  Node* x = draft.PickFloatOrNull(4, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  Random& random = draft.random();
  const auto call = [&](Node* operand, const char* op, AttributeMap attributes = {}) {
    return operand == nullptr ? nullptr : draft.AddInRandomSpelling({op, {operand}, {}, std::move(attributes)});
  };
  const auto pool = [&](Node* image) {
    return random.OneIn(3) ? image : call(image, "max_pool2d", {{"kernel_size", Ints{1, 1}}, {"stride", Ints{1, 1}}});
  };
  const Shape shape = x->tensor_type().shape;
  const bool in_a_row = random.OneIn(2);
  Node* y = pool(x);
  if (in_a_row) {
    y = call(y, "flatten", {{"start_dim", 2}});
    y = call(y, "transpose", {{"dim0", 1}, {"dim1", random.OneIn(2) ? 2 : -1}});
  } else {
    y = call(y, "permute", {{"dims", Ints{0, 2, 3, 1}}});
  }
  if (random.OneIn(2)) y = call(y, "tanh");
  if (in_a_row) {
    y = call(y, "permute", {{"dims", Ints{0, 2, 1}}});
    y = call(y, "reshape", {{"shape", Ints{0, shape[1], shape[2], shape[3]}}});
  } else {
    y = call(y, "permute", {{"dims", Ints{0, 3, 1, random.OneIn(2) ? 2 : -2}}});
  }
  return pool(y) != nullptr;
}

// Branches along an axis of their own, which a stack makes of several values or a view of a value's channels; gated,
// and summed, as attention over branches does it.
bool Branches(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickFloatOrNull(3, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  const auto call = [&](std::vector<Node*> operands, const char* op, AttributeMap attributes = {}) {
    for (const Node* operand : operands) {
      if (operand == nullptr) return static_cast<Node*>(nullptr);
    }
    return draft.AddInRandomSpelling({op, std::move(operands), {}, std::move(attributes)});
  };
  const Shape shape = x->tensor_type().shape;
  const int count = random.OneIn(3) ? 3 : 2;
  Node* branches = nullptr;
  if (shape[1] % count == 0) {
    Ints divided = {0, count, shape[1] / count};
    divided.insert(divided.end(), shape.begin() + 2, shape.end());
    branches = call({x}, "reshape", {{"shape", divided}});
    if (random.OneIn(2)) branches = call({branches, call({call({x}, "tanh")}, "reshape", {{"shape", divided}})}, "mul");
  } else {
    std::vector<Node*> stacked;
    for (int i = 0; i < count; ++i) {
      Node* branch = i == 0 ? x : call({x}, "tanh");
      stacked.push_back(branch == nullptr ? nullptr : call({branch}, "unsqueeze", {{"dims", Ints{1}}}));
    }
    branches = call(std::move(stacked), "cat", {{"dim", 1}});
  }
  Node* sum = call({branches}, "sum", {{"dims", Ints{1}}, {"keepdim", random.OneIn(2)}});
  if (sum != nullptr) draft.set_magnitude(*sum, draft.magnitude(*branches) * count);
  return sum != nullptr;
}

}  // namespace

void Register(Recipes& recipes) { recipes.Add(Graphs::kSome, {{8, Tokens}, {2, Branches}}); }

}  // namespace fuselage::testing::recipes::tokens
