// Elementwise ops, views, moves, integers.
#include <algorithm>
#include <limits>

#include "ir/batch.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::elements {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

Node* PickTensorOrNull(Draft& draft, int low, int high) {
  return draft.PickOrNull([&](const Node& node) {
    return node.type().is_tensor() && node.tensor_type().rank() >= low && node.tensor_type().rank() <= high &&
           node.tensor_type().num_elements() <= 600;
  });
}

// --- Elementwise.

bool Activation(Draft& draft) {
  Node* x = draft.PickFloatOrNull(0, 5);
  if (x == nullptr) return false;
  Random& random = draft.random();
  RandomCall call{random.From(std::vector<std::string>{"relu", "relu6", "sigmoid", "tanh", "silu", "gelu", "hardswish",
                                                       "hardsigmoid", "leaky_relu", "clamp", "softmax"}),
                  {x},
                  {},
                  {}};
  if (call.op == "gelu" && random.OneIn(2)) call.attributes.emplace("approximate", "tanh");
  if (call.op == "leaky_relu" && random.OneIn(2)) call.attributes.emplace("negative_slope", 0.25);
  if (call.op == "hardsigmoid" && random.OneIn(2)) call.attributes.emplace("alpha", 0.2);
  if (call.op == "clamp") {  // relu, relu6 or neither.
    call.attributes.emplace("min", random.OneIn(3) ? -0.5 : 0.0);
    if (random.OneIn(2)) call.attributes.emplace("max", random.OneIn(2) ? 6.0 : 0.75);
  }
  if (call.op == "softmax") {
    if (x->tensor_type().rank() == 0) return false;
    call.attributes.emplace("dim", random.Between(-1, x->tensor_type().rank() - 1));
  }
  return Done(draft.AddInRandomSpelling(call));
}

// A second operand for x: a value of its shape, or a constant that broadcasts to it.
Node* Other(Draft& draft, Node* x, bool away_from_zero) {
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  if (!away_from_zero && random.OneIn(2)) {
    return draft.PickOrNull([&](const Node& node) {
      return node.type().is_tensor() && node.tensor_type().dtype == type.dtype && !node.tensor_type().quant &&
             draft.magnitude(node) <= 1e3 && (node.tensor_type().shape == type.shape || random.OneIn(8));
    });
  }
  const int64_t last = type.shape.empty() || type.shape.back() > 16 ? 1 : type.shape.back();
  if (away_from_zero || random.OneIn(2)) {
    const std::vector<double> values =
        IsFloat(type.dtype) ? std::vector<double>{0.5, -2, 1.25, 1} : std::vector<double>{3, 2, 1, 5};
    const bool one = random.OneIn(4);  // x * 1, x / 1
    return draft.AddGetAttr(
        draft.VectorParameter("c", type.dtype, random.OneIn(2) ? 1 : last, one ? std::vector<double>{1} : values));
  }
  Shape shape = type.shape;
  for (int64_t& dim : shape) dim = random.OneIn(2) ? dim : 1;
  return draft.AddGetAttr(draft.SeededParameter("c", Of(type.dtype, std::move(shape))));
}

bool AddBinary(Draft& draft, Node* x) {
  Random& random = draft.random();
  const std::string op = random.From(std::vector<std::string>{"add", "add", "add", "sub", "mul", "div"});
  Node* other = Other(draft, x, op == "div");
  if (other == nullptr) return false;
  const double product = draft.magnitude(*x) * draft.magnitude(*other);
  const bool swapped = op != "div" && random.OneIn(3);
  RandomCall call{op, swapped ? std::vector<Node*>{other, x} : std::vector<Node*>{x, other}, {}, {}};
  if (op == "add" && random.OneIn(5)) call.attributes.emplace("alpha", random.OneIn(2) ? 2.0 : -1.0);
  Node* y = draft.AddInRandomSpelling(call);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, op == "mul" ? product : 2 * draft.magnitude(*y));
  return true;
}

bool Binary(Draft& draft) {
  Node* x = draft.PickFloatOrNull(0, 5);
  return x != nullptr && AddBinary(draft, x);
}

// A chain of elementwise ops, each value with one reader.
bool ElementwiseChain(Draft& draft) {
  Node* x = draft.PickFloatOrNull(1, 4);
  if (x == nullptr) return false;
  for (int i = 0; i < 3 && x != nullptr; ++i) {
    const std::string op = draft.random().From(std::vector<std::string>{"mul", "add", "sigmoid", "tanh", "relu"});
    std::vector<Node*> operands = {x};
    if (op == "mul" || op == "add") {
      operands.push_back(draft.AddGetAttr(draft.SeededParameter("c", Of(x->tensor_type().dtype, {1}))));
    }
    x = draft.AddInRandomSpelling({op, std::move(operands), {}, {}});
  }
  return x != nullptr;
}

// The chain as fusion leaves it.
bool FusedElementwise(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(0, 4);
  if (x == nullptr) return false;
  Node* other = draft.AddGetAttr(draft.SeededParameter("c", Of(DType::kF32, {1})));
  const std::vector<std::vector<std::string>> chains = {
      {"add(0, 1, alpha=0.5)", "sigmoid(2)", "mul(2, 3)"},
      {"mul(1, 0)", "gelu(2, approximate=\"tanh\")", "add(3, 0, activation=\"relu\")"},
      {"sub(0, 1)", "clamp(2, max=6.0, min=0.0)"}};
  Node* y = draft.AddFunction("fused_elementwise", {x, other}, {{"steps", draft.random().From(chains)}});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, 2 * draft.magnitude(*x));
  return true;
}

bool Integers(Draft& draft) {
  Node* x = draft.PickOrNull([](const Node& node) {
    return node.type().is_tensor() && !IsFloat(node.tensor_type().dtype) && !node.tensor_type().quant &&
           node.tensor_type().dtype != DType::kBool;
  });
  if (x == nullptr) return false;
  if (draft.random().OneIn(3)) return Done(draft.AddInRandomSpelling({"to", {x}, {}, {{"dtype", DType::kF32}}}));
  if (draft.random().OneIn(4)) return Done(draft.AddInRandomSpelling({"relu", {x}, {}, {}}));
  return AddBinary(draft, x);
}

bool CastFloat(Draft& draft) {
  Random& random = draft.random();
  if (random.OneIn(3)) {
    Node* x = draft.PickToRoundOrNull(0, 4);
    return x != nullptr && Done(draft.AddInRandomSpelling({"to", {x}, {}, {{"dtype", DType::kI64}}}));
  }
  Node* x = draft.PickFloatOrNull(0, 5);
  return x != nullptr &&
         Done(draft.AddInRandomSpelling({"to", {x}, {}, {{"dtype", random.OneIn(5) ? DType::kF64 : DType::kF32}}}));
}

bool NoOp(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 0, 5);
  return x != nullptr &&
         Done(draft.AddInRandomSpelling({draft.random().OneIn(2) ? "identity" : "dropout", {x}, {}, {}}));
}

// --- Views and moves.

bool View(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 5);
  return x != nullptr && Done(AddRandomView(draft, x));
}

// A new leading axis, or one that repeats, which may be the batch.
bool Expand(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 0, 4);
  if (x == nullptr || x->tensor_type().num_elements() > 200) return false;
  const Shape& own = x->tensor_type().shape;
  Shape shape = own;
  for (int64_t& dim : shape) {
    if (dim == 1 && draft.random().OneIn(2)) dim = 2;
  }
  if (draft.random().OneIn(3)) shape.insert(shape.begin(), draft.random().Between(1, 2));
  AttributeMap attributes = {{"shape", shape}};
  const bool may_repeat = shape.size() > own.size() || (!own.empty() && own[0] == 1);
  if (may_repeat && draft.random().OneIn(3)) attributes.emplace(ir::kBatchAttribute, 2);
  return Done(draft.AddInRandomSpelling({"expand", {x}, {}, std::move(attributes)}));
}

bool Slice(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 5);
  if (x == nullptr) return false;
  Random& random = draft.random();
  const int64_t axis = random.Between(0, x->tensor_type().rank() - 1), dim = x->tensor_type().shape[axis];
  if (dim < 1) return false;
  const int64_t start = random.Between(0, dim - 1);
  AttributeMap attributes = {{"starts", Ints{random.OneIn(4) ? 0 : start}},
                             {"ends", Ints{random.OneIn(3) ? std::numeric_limits<int64_t>::max() : dim}},
                             {"axes", Ints{axis}}};
  if (random.OneIn(4)) attributes.emplace("steps", Ints{2});
  return Done(draft.AddInRandomSpelling({"slice", {x}, {}, std::move(attributes)}));
}

bool Cat(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 4);
  if (x == nullptr) return false;
  const ir::Type type = x->type();
  std::vector<Node*> operands = {x};
  while (draft.random().OneIn(2) || operands.size() < 2) {
    operands.push_back(draft.PickOrNull([&](const Node& node) { return node.type() == type; }));
    if (operands.size() == 3) break;
  }
  if (draft.random().OneIn(6)) operands.resize(1);
  return Done(draft.AddInRandomSpelling(
      {"cat", std::move(operands), {}, {{"dim", draft.random().Between(-1, type.tensor().rank() - 1)}}}));
}

bool Split(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 4);
  if (x == nullptr) return false;
  Random& random = draft.random();
  const int64_t axis = random.Between(0, x->tensor_type().rank() - 1), dim = x->tensor_type().shape[axis];
  if (dim < 2) return false;
  const int64_t first = random.Between(1, dim - 1);
  Node* parts = draft.AddInRandomSpelling({"split", {x}, {}, {{"sizes", Ints{first, dim - first}}, {"dim", axis}}});
  if (parts == nullptr) return false;
  for (int64_t index : {int64_t{0}, random.OneIn(2) ? int64_t{-1} : int64_t{1}}) {
    if (!random.OneIn(4)) draft.AddInRandomSpelling({"getitem", {parts}, {}, {{"index", index}}});
  }
  return true;
}

bool Pad(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 1, 4);
  if (x == nullptr) return false;
  Random& random = draft.random();
  Ints pads;
  for (int i = 0; i < 2 * x->tensor_type().rank(); ++i) pads.push_back(random.OneIn(3) ? 1 : 0);
  if (random.OneIn(5)) std::fill(pads.begin(), pads.end(), 0);
  AttributeMap attributes = {{"pads", std::move(pads)},
                             {"mode", random.From(std::vector<std::string>{"constant", "edge", "reflect", "wrap"})}};
  if (random.OneIn(4)) attributes.emplace("value", 1.0);
  return Done(draft.AddInRandomSpelling({"pad", {x}, {}, std::move(attributes)}));
}

// An image's channels as frames.
bool StackFrames(Draft& draft) {
  Node* x = PickTensorOrNull(draft, 4, 4);
  if (x == nullptr) return false;
  Random& random = draft.random();
  const int64_t frames = x->tensor_type().shape[1], taps = random.Between(1, 3);
  x = draft.AddInRandomSpelling({"flatten", {x}, {}, {{"start_dim", 0}, {"end_dim", 1}}});
  if (x != nullptr) x = draft.AddInRandomSpelling({"unsqueeze", {x}, {}, {{"dims", Ints{1}}}});
  if (x == nullptr) return false;
  return Done(draft.AddInRandomSpelling({"stack_frames",
                                         {x},
                                         {},
                                         {{"frames", frames},
                                          {"kernel_size", Ints{taps}},
                                          {"padding", Ints{taps / 2, random.Between(0, taps)}},
                                          {"stride", Ints{random.Between(1, 2)}},
                                          {"as_rows", random.OneIn(2)}}}));
}

bool Mean(Draft& draft) {
  Node* x = draft.PickFloatOrNull(1, 5);
  if (x == nullptr) return false;
  AttributeMap attributes = {{"keepdim", draft.random().OneIn(2)}};
  if (!draft.random().OneIn(4))
    attributes.emplace("dims", Ints{draft.random().Between(-1, x->tensor_type().rank() - 1)});
  return Done(draft.AddInRandomSpelling({"mean", {x}, {}, std::move(attributes)}));
}

// The same call again.
bool Repeat(Draft& draft) {
  Node* node = draft.PickOrNull([](const Node& n) { return n.is_call() && n.module() == nullptr; });
  return node != nullptr &&
         Done(draft.AddInRandomSpelling({node->op()->name, node->operands(), {}, node->attributes()}));
}

}  // namespace

void Register(Recipes& recipes) {
  recipes.Add(Graphs::kEvery, {{7, Activation},
                               {6, Binary},
                               {3, ElementwiseChain},
                               {2, FusedElementwise},
                               {1, Expand},
                               {3, Integers},
                               {2, CastFloat},
                               {2, NoOp},
                               {4, View},
                               {2, Slice},
                               {2, Cat},
                               {2, Split},
                               {2, Pad},
                               {1, StackFrames},
                               {2, Mean},
                               {3, Repeat}});
}

}  // namespace fuselage::testing::recipes::elements
