// Functions, comparisons, reductions, norms.
#include <algorithm>

#include "absl/strings/match.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::math {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

bool IsSmall(const Node& node, DType dtype) {
  return node.type().is_tensor() && node.tensor_type().dtype == dtype && !node.tensor_type().quant &&
         node.tensor_type().num_elements() <= 600;
}

Node* PickOfOrNull(Draft& draft, DType dtype) {
  return draft.PickOrNull([&](const Node& node) { return IsSmall(node, dtype); });
}

// The same element type, and the same shape: or x itself.
Node* Peer(Draft& draft, Node* x) {
  return draft.PickOrNull([&](const Node& node) { return node.type() == x->type(); });
}

// x in [low, high].
Node* Within(Draft& draft, Node* x, double low, double high) {
  Node* y = draft.AddInRandomSpelling({"clamp", {x}, {}, {{"min", low}, {"max", high}}});
  if (y != nullptr) draft.set_magnitude(*y, std::max(-low, high));
  return y;
}

// Where a function is of moderate size and slope; the whole line where `low` is not below `high`.
struct Domain {
  const char* op;
  double low, high;
};

bool Function(Draft& draft) {
  const auto domain = draft.random().From(std::vector<Domain>{
      {"abs", 0, 0},   {"acos", -0.75, 0.75},  {"acosh", 1.25, 4}, {"asin", -0.75, 0.75},  {"asinh", 0, 0},
      {"atan", 0, 0},  {"atanh", -0.75, 0.75}, {"cos", -6, 6},     {"cosh", -3, 3},        {"erf", 0, 0},
      {"exp", -3, 3},  {"log", 0.25, 4},       {"neg", 0, 0},      {"reciprocal", 0.5, 4}, {"sin", -6, 6},
      {"sinh", -3, 3}, {"sqrt", 0.25, 4},      {"tan", -1, 1},     {"elu", 0, 0},          {"selu", 0, 0},
      {"celu", 0, 0},  {"softplus", 0, 0},     {"softsign", 0, 0}, {"mish", 0, 0},         {"log_softmax", 0, 0},
      {"prelu", 0, 0}});
  Node* x = draft.PickFloatOrNull(1, 5);
  if (x == nullptr) return false;
  if (domain.low < domain.high) x = Within(draft, x, domain.low, domain.high);
  if (x == nullptr) return false;
  RandomCall call{domain.op, {x}, {}, {}};
  if (call.op == "prelu") {
    const int64_t last = x->tensor_type().shape.back();
    call.operands.push_back(draft.AddGetAttr(draft.SeededParameter("slope", Of(x->tensor_type().dtype, {last}))));
  }
  if (absl::EndsWith(call.op, "elu") && call.op != "prelu" && draft.random().OneIn(2)) {
    call.attributes.emplace("alpha", 0.5);
  }
  if (call.op == "log_softmax") call.attributes.emplace("dim", draft.random().Between(-1, 0));
  Node* y = draft.AddInRandomSpelling(call);
  if (y != nullptr && domain.low < domain.high) draft.set_magnitude(*y, 32);
  return Done(y);
}

// Steps and comparisons turn a rounding above them into a difference.
bool Step(Draft& draft) {
  Random& random = draft.random();
  const std::string op = random.From(Names{"floor", "ceil", "round", "sign", "threshold", "fmod", "remainder",
                                           "hardmax", "argmax", "argmin", "isnan", "isinf"});
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || draft.magnitude(*x) > 1e3) return false;
  RandomCall call{op, {x}, {}, {}};
  if (op == "fmod" || op == "remainder") {
    call.operands.push_back(draft.AddGetAttr(draft.VectorParameter("divisor", DType::kF32, 1, {1.75})));
  }
  if (op == "threshold") call.attributes = {{"threshold", 0.25}, {"value", random.OneIn(2) ? 0.0 : -1.0}};
  if (op == "isinf" && random.OneIn(2)) call.attributes.emplace("detect_negative", false);
  if (op == "hardmax") call.attributes.emplace("dim", 0);
  if (op == "argmax" || op == "argmin") {
    call.attributes = {
        {"dim", random.Between(-1, 0)}, {"keepdim", random.OneIn(2)}, {"select_last_index", random.OneIn(2)}};
  }
  return Done(draft.AddInRandomSpelling(call));
}

bool Compare(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(0, 4);
  if (x == nullptr) return false;
  const auto exact_peer = [&](const Node& node) { return node.type() == x->type() && draft.MayRound(node); };
  Node* y = random.OneIn(2) ? draft.PickOrNull(exact_peer)
                            : draft.AddGetAttr(draft.VectorParameter("level", DType::kF32, 1, {0.125}));
  return Done(draft.AddInRandomSpelling({random.From(Names{"eq", "ne", "gt", "ge", "lt", "le"}), {x, y}, {}, {}}));
}

bool Bools(Draft& draft) {
  Node* x = PickOfOrNull(draft, DType::kBool);
  if (x == nullptr) return Compare(draft);
  const std::string op =
      draft.random().From(Names{"logical_not", "logical_and", "logical_or", "logical_xor", "amax", "eq"});
  std::vector<Node*> operands = {x};
  if (op != "logical_not" && op != "amax") operands.push_back(Peer(draft, x));
  return Done(draft.AddInRandomSpelling({op, std::move(operands), {}, {}}));
}

bool Where(Draft& draft) {
  Node* condition = PickOfOrNull(draft, DType::kBool);
  if (condition == nullptr) return Compare(draft);
  const Shape shape = condition->tensor_type().shape;
  Node* x = draft.PickOrNull([&](const Node& node) {
    return IsSmall(node, DType::kF32) && draft.magnitude(node) <= 1e3 && node.tensor_type().shape == shape;
  });
  Node* other = draft.AddGetAttr(draft.VectorParameter("other", DType::kF32, 1, {-0.5}));
  if (x == nullptr) x = other;
  const bool swapped = draft.random().OneIn(2);
  return Done(draft.AddInRandomSpelling({"where", {condition, swapped ? other : x, swapped ? x : other}, {}, {}}));
}

bool Extremum(Draft& draft) {
  Node* x = draft.PickFloatOrNull(0, 4);
  if (x == nullptr) return false;
  Node* y = draft.random().OneIn(2) ? Peer(draft, x)
                                    : draft.AddGetAttr(draft.SeededParameter("bound", Of(x->tensor_type().dtype, {1})));
  return Done(draft.AddInRandomSpelling({draft.random().From(Names{"maximum", "minimum"}), {x, y}, {}, {}}));
}

bool Power(Draft& draft) {
  Node* x = draft.PickFloatOrNull(1, 4);
  if (x != nullptr) x = Within(draft, x, 0.5, 2);
  if (x == nullptr) return false;
  const double exponent = draft.random().From(std::vector<double>{2, 0.5, -1, 1.5, 3});
  Node* y = draft.AddGetAttr(draft.VectorParameter("exponent", x->tensor_type().dtype, 1, {exponent}));
  Node* power = draft.AddInRandomSpelling({"pow", {x, y}, {}, {}});
  if (power != nullptr) draft.set_magnitude(*power, 8);
  return Done(power);
}

bool WholeNumbers(Draft& draft) {
  Random& random = draft.random();
  Node* x = PickOfOrNull(draft, random.OneIn(4) ? DType::kI32 : DType::kI64);
  if (x == nullptr) return false;
  const std::string op = random.From(Names{"abs", "neg", "sign", "bitwise_not", "bitwise_and", "bitwise_or",
                                           "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "maximum",
                                           "minimum", "fmod", "remainder", "pow", "eq", "lt", "where", "threshold"});
  if (op == "threshold") {
    return Done(draft.AddInRandomSpelling({op, {x}, {}, {{"threshold", 2.0}, {"value", -3.0}}}));
  }
  const bool unary = op == "abs" || op == "neg" || op == "sign" || op == "bitwise_not";
  std::vector<Node*> operands = {x};
  if (!unary) {
    operands.push_back(draft.AddGetAttr(draft.VectorParameter("k", x->tensor_type().dtype, 1, {3})));
  }
  if (op == "where") {
    Node* condition = PickOfOrNull(draft, DType::kBool);
    if (condition == nullptr) return false;
    operands.insert(operands.begin(), condition);
  }
  return Done(draft.AddInRandomSpelling({op, std::move(operands), {}, {}}));
}

bool Reduce(Draft& draft) {
  Random& random = draft.random();
  const bool whole = random.OneIn(4);
  Node* x = whole ? PickOfOrNull(draft, DType::kI64) : draft.PickFloatOrNull(1, 5);
  if (x == nullptr) return false;
  const std::string op =
      random.From(whole ? Names{"sum", "prod", "amax", "amin"} : Names{"sum", "prod", "amax", "amin", "logsumexp"});
  if (op == "prod" && !whole) x = Within(draft, x, -1, 1);
  if (x == nullptr) return false;
  const TensorType type = x->tensor_type();
  AttributeMap attributes = {{"keepdim", random.OneIn(2)}};
  if (type.rank() > 0 && !random.OneIn(5)) attributes.emplace("dims", Ints{random.Between(-1, type.rank() - 1)});
  Node* y = draft.AddInRandomSpelling({op, {x}, {}, std::move(attributes)});
  if (y == nullptr) return false;
  const double count = static_cast<double>(type.num_elements()) /
                       static_cast<double>(std::max<int64_t>(1, y->tensor_type().num_elements()));
  if (op == "sum") draft.set_magnitude(*y, draft.magnitude(*x) * count);
  return true;
}

bool Cumsum(Draft& draft) {
  Random& random = draft.random();
  Node* x = random.OneIn(4) ? PickOfOrNull(draft, DType::kI64) : draft.PickFloatOrNull(1, 4);
  if (x == nullptr || x->tensor_type().rank() == 0) return false;
  const int64_t dim = random.Between(0, x->tensor_type().rank() - 1);
  Node* y = draft.AddInRandomSpelling(
      {"cumsum", {x}, {}, {{"dim", dim}, {"exclusive", random.OneIn(3)}, {"reverse", random.OneIn(3)}}});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, draft.magnitude(*x) * static_cast<double>(x->tensor_type().shape[dim]));
  return true;
}

bool Norm(Draft& draft) {
  Random& random = draft.random();
  const std::string op = random.From(Names{"rms_norm", "group_norm", "instance_norm"});
  Node* x = op == "rms_norm" ? draft.PickFloatOrNull(1, 4) : draft.PickFloatOrNull(3, 5);
  if (x == nullptr) return false;
  const TensorType type = x->tensor_type();
  RandomCall call{op, {x}, {}, {{"eps", 0.5}}};
  Shape parameters;
  if (op == "rms_norm") {
    parameters = {type.shape.back()};
    call.attributes.emplace("normalized_shape", parameters);
  } else {
    parameters = {type.shape[1]};
    if (op == "group_norm") call.attributes.emplace("num_groups", type.shape[1] % 2 == 0 ? 2 : 1);
  }
  if (random.OneIn(2)) {
    call.parameters["weight"] = draft.SeededParameter("norm.weight", Of(type.dtype, parameters));
    if (op != "rms_norm") call.parameters["bias"] = draft.SeededParameter("norm.bias", Of(type.dtype, parameters));
  }
  return Done(draft.AddInRandomSpelling(call));
}

}  // namespace

void Register(Recipes& recipes) {
  recipes.Add(Graphs::kSome, {{5, Function},
                              {2, Step},
                              {1, Compare},
                              {2, Bools},
                              {1, Where},
                              {1, Extremum},
                              {1, Power},
                              {4, WholeNumbers},
                              {2, Reduce},
                              {1, Cumsum},
                              {1, Norm}});
}

}  // namespace fuselage::testing::recipes::math
