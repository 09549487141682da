// Convolutions, products of matrices, attention, norms, pools, and blocks of them.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::layers {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// Sums of n products with weights in [-1, 1).
double Grown(double magnitude, int64_t n) { return magnitude * std::sqrt(static_cast<double>(n)); }

// --- Convolutions.

struct ConvForm {
  int64_t out_channels = 0;
  int64_t groups = 1;
  bool keeps_size = false;  // A 3x3 kernel with padding 1, or a 1x1.
};

Node* AddConv(Draft& draft, Node* x, const ConvForm& form) {
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  const int n = type.rank() - 2;
  const int64_t per_group = type.shape[1] / form.groups;
  Ints stride(n, 1), padding(2 * n, 0), dilation(n, 1);
  Shape weight = {form.out_channels, per_group};
  const bool pointwise = random.OneIn(3);
  for (int i = 0; i < n; ++i) {
    const int64_t size = type.shape[2 + i];
    if (form.keeps_size) {
      weight.push_back(pointwise ? 1 : 3);
      padding[i] = padding[n + i] = pointwise ? 0 : 1;
      continue;
    }
    weight.push_back(random.Between(1, std::min<int64_t>(3, size)));
    stride[i] = random.Between(1, 2);
    padding[i] = random.Between(0, 1);
    padding[n + i] = random.OneIn(4) ? random.Between(0, 1) : padding[i];
    if (weight.back() == 2 && size > 3) dilation[i] = random.Between(1, 2);
  }
  const int64_t products = per_group * (weight.size() > 2 ? weight[2] * weight.back() : 1);
  RandomCall call{absl::StrCat("conv", n, "d"), {x}, {}, {}};
  call.parameters["weight"] = draft.SeededParameter(call.op + ".weight", Of(type.dtype, weight));
  if (random.OneIn(2)) {
    call.parameters["bias"] = draft.SeededParameter(call.op + ".bias", Of(type.dtype, {form.out_channels}));
  }
  call.attributes = {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", form.groups}};
  Node* conv = draft.AddInRandomSpelling(call);
  if (conv != nullptr) draft.set_magnitude(*conv, Grown(draft.magnitude(*x), products));
  return conv;
}

bool Conv(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 5);
  if (x == nullptr) return false;
  const int64_t channels = x->tensor_type().shape[1];
  ConvForm form;
  form.groups = draft.random().OneIn(4) ? channels : channels % 2 == 0 && draft.random().OneIn(4) ? 2 : 1;
  form.out_channels = form.groups * draft.random().Between(1, std::max<int64_t>(1, 6 / form.groups));
  return AddConv(draft, x, form) != nullptr;
}

bool ConvTranspose(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 5);
  if (x == nullptr || x->tensor_type().num_elements() > 200) return false;
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  const int n = type.rank() - 2;
  const int64_t groups = type.shape[1] % 2 == 0 && random.OneIn(3) ? 2 : 1;
  Shape weight = {type.shape[1], random.Between(1, 3)};
  for (int i = 0; i < n; ++i) weight.push_back(random.Between(1, 3));
  RandomCall call{absl::StrCat("conv_transpose", n, "d"), {x}, {}, {}};
  call.parameters["weight"] = draft.SeededParameter(call.op + ".weight", Of(type.dtype, weight));
  if (random.OneIn(2)) {
    call.parameters["bias"] = draft.SeededParameter(call.op + ".bias", Of(type.dtype, {weight[1] * groups}));
  }
  const int64_t stride = random.Between(1, 2);
  call.attributes = {{"stride", Ints(n, stride)}, {"groups", groups}};
  if (stride == 2 && random.OneIn(2)) {
    call.attributes.emplace("padding", Ints(2 * n, 1));
    call.attributes.emplace("output_padding", Ints(n, 1));
  }
  Node* conv = draft.AddInRandomSpelling(call);
  if (conv != nullptr) draft.set_magnitude(*conv, Grown(draft.magnitude(*x), type.shape[1] * 3));
  return conv != nullptr;
}

// --- Norms.

Node* AddBatchNorm(Draft& draft, Node* x) {
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  const int64_t channels = type.shape[1];
  if (channels > 16) return nullptr;
  RandomCall call{"batch_norm", {x}, {}, {}};
  if (!random.OneIn(5)) {
    call.parameters["weight"] = draft.SeededParameter("bn.weight", Of(type.dtype, {channels}));
    call.parameters["bias"] = draft.SeededParameter("bn.bias", Of(type.dtype, {channels}));
  }
  if (!random.OneIn(8)) {
    call.parameters["running_mean"] = draft.SeededParameter("bn.running_mean", Of(type.dtype, {channels}));
    call.parameters["running_var"] =
        draft.VectorParameter("bn.running_var", type.dtype, channels, {random.Between(4, 32) / 16.0, 1, 0.5, 1.75});
  }
  call.attributes.emplace("training", random.OneIn(8));
  // Statistics of the batch may divide by a variance of nearly nothing, which no tolerance survives.
  if (call.attributes.at("training").as_bool() || call.parameters.count("running_var") == 0) {
    call.attributes.emplace("eps", 0.5);
  }
  return draft.AddInRandomSpelling(call);
}

bool BatchNorm(Draft& draft) {
  Node* x = draft.PickFloatOrNull(2, 5);
  return x != nullptr && AddBatchNorm(draft, x) != nullptr;
}

// What bounds a function's result, at times.
Node* MaybeAddClamp(Draft& draft, Node* x) {
  if (x == nullptr || !draft.random().OneIn(4)) return x;
  return draft.AddInRandomSpelling({"clamp", {x}, {}, {{"min", -0.125}, {"max", 3.0}}});
}

// A relu, or another function that a layer can end in (ir/base/activation.h), some of them as x * gate(x).
Node* AddActivation(Draft& draft, Node* x) {
  Random& random = draft.random();
  if (random.OneIn(2)) return draft.AddInRandomSpelling({"relu", {x}, {}, {}});
  if (random.OneIn(3)) {
    Node* gate = draft.AddInRandomSpelling({random.OneIn(2) ? "sigmoid" : "hardsigmoid", {x}, {}, {}});
    return gate == nullptr ? nullptr : draft.AddInRandomSpelling({"mul", {x, gate}, {}, {}});
  }
  RandomCall call{random.From(std::vector<std::string>{"hardswish", "hardsigmoid", "leaky_relu", "sigmoid", "silu",
                                                       "tanh", "gelu", "mish"}),
                  {x},
                  {},
                  {}};
  if (call.op == "gelu" && random.OneIn(2)) call.attributes.emplace("approximate", "tanh");
  if (call.op == "leaky_relu" && random.OneIn(2)) call.attributes.emplace("negative_slope", 0.25);
  return MaybeAddClamp(draft, draft.AddInRandomSpelling(call));
}

// An image's pixels in a row, at times.
Node* MaybeAddRow(Draft& draft, Node* x) {
  if (x == nullptr || x->tensor_type().rank() < 4 || !draft.random().OneIn(4)) return x;
  return draft.AddInRandomSpelling({"flatten", {x}, {}, {{"start_dim", 2}}});
}

bool ConvBnActivation(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 4);
  if (x == nullptr) return false;
  Node* y = MaybeAddRow(draft, AddConv(draft, x, {draft.random().Between(1, 6), 1, draft.random().OneIn(2)}));
  if (y == nullptr) return false;
  y = MaybeAddRow(draft, AddBatchNorm(draft, y));
  return y != nullptr && (draft.random().OneIn(3) || AddActivation(draft, y) != nullptr);
}

bool BnConv(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 4);
  if (x == nullptr) return false;
  Node* y = AddBatchNorm(draft, x);
  return y != nullptr && AddConv(draft, y, {draft.random().Between(1, 4), 1, false}) != nullptr;
}

// relu(x + bn(conv(relu(bn(conv(x)))))), with a convolution on the skip connection at times.
bool ResidualBlock(Draft& draft) {
  Node* x = draft.PickFloatOrNull(4, 4);
  if (x == nullptr) return false;
  const int64_t channels = x->tensor_type().shape[1];
  Node* y = x;
  for (int i = 0; i < 2; ++i) {
    y = AddConv(draft, y, {channels, 1, true});
    if (y == nullptr) return false;
    y = AddBatchNorm(draft, y);
    if (y == nullptr) return false;
    if (i == 0) y = AddActivation(draft, y);
  }
  Node* skip = draft.random().OneIn(3) ? AddConv(draft, x, {channels, 1, true}) : x;
  if (skip == nullptr) return false;
  y = draft.AddInRandomSpelling(
      {"add", draft.random().OneIn(2) ? std::vector<Node*>{y, skip} : std::vector<Node*>{skip, y}, {}, {}});
  return y != nullptr && AddActivation(draft, y) != nullptr;
}

// A sum of convolutions, batch norms and the value itself that they read, as networks are trained that deploy as one.
bool SummedBranches(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 5);
  if (x == nullptr) return false;
  Random& random = draft.random();
  const int64_t channels = x->tensor_type().shape[1], groups = random.OneIn(2) ? channels : 1;
  Node* sum = nullptr;
  for (int64_t left = random.Between(2, 4); left > 0; --left) {
    Node* branch = random.OneIn(4) ? x : AddConv(draft, x, {channels, random.OneIn(3) ? 1 : groups, true});
    if (branch != nullptr && random.OneIn(2)) branch = AddBatchNorm(draft, branch);
    if (branch == nullptr) return false;
    const std::vector<Node*> terms = {sum, branch};
    sum = sum == nullptr ? branch : draft.AddInRandomSpelling({random.OneIn(4) ? "sub" : "add", terms, {}, {}});
    if (sum == nullptr) return false;
  }
  return !random.OneIn(2) || AddBatchNorm(draft, sum) != nullptr;
}

// Layers with nothing but a relu between them, whose channels may be scaled.
bool LayerPair(Draft& draft) {
  Node* x = draft.PickFloatOrNull(4, 4);
  if (x == nullptr) return false;
  const auto add = [&](Node* input, int64_t outputs) -> Node* {
    if (input == nullptr) return nullptr;
    const TensorType& type = input->tensor_type();
    RandomCall call{"conv2d", {input}, {}, {}};
    call.parameters["weight"] = draft.SeededParameter("pair.weight", Of(type.dtype, {outputs, type.shape[1], 1, 1}));
    Node* conv = draft.AddAsModule(call);
    if (conv != nullptr) draft.set_magnitude(*conv, Grown(draft.magnitude(*input), type.shape[1]));
    return conv;
  };
  Node* y = add(x, draft.random().Between(3, 6));
  if (y != nullptr && draft.random().OneIn(2)) y = draft.AddInRandomSpelling({"relu", {y}, {}, {}});
  return add(y, draft.random().Between(1, 3)) != nullptr;
}

// --- Shared weights.

const ir::Module* PickModuleOrNull(Draft& draft) {
  std::vector<const ir::Module*> called;
  for (const auto& [path, module] : draft.graph().modules()) {
    if (!module->call_sites.empty()) called.push_back(module.get());
  }
  return called.empty() ? nullptr : draft.random().From(called);
}

// Another value of the type that the module takes, and the operands of a call on it.
std::vector<Node*> SimilarOperands(Draft& draft, const ir::Module& module) {
  // By name: the set's own order is that of addresses.
  const Node& site = **std::min_element(module.call_sites.begin(), module.call_sites.end(),
                                        [](const Node* a, const Node* b) { return a->name() < b->name(); });
  if (site.num_operands() == 0) return {};
  std::vector<Node*> operands = site.operands();
  const ir::Type type = operands[0]->type();
  operands[0] = draft.PickOrNull([&](const Node& node) { return node.type() == type; });
  return operands;
}

bool SharedModule(Draft& draft) {
  const ir::Module* module = PickModuleOrNull(draft);
  if (module == nullptr) return false;
  std::vector<Node*> operands = SimilarOperands(draft, *module);
  return !operands.empty() && draft.AddSharedCall(*module, std::move(operands)) != nullptr;
}

bool TiedWeights(Draft& draft) {
  const ir::Module* module = PickModuleOrNull(draft);
  if (module == nullptr || module->parameters.empty()) return false;
  std::vector<Node*> operands = SimilarOperands(draft, *module);
  if (operands.empty()) return false;
  return draft.AddInRandomSpelling({module->op->name, std::move(operands), module->parameters, module->attributes}) !=
         nullptr;
}

// --- Linears.

bool Linear(Draft& draft) {
  Node* x = draft.PickFloatOrNull(1, 4);
  if (x == nullptr || x->tensor_type().shape.back() > 64) return false;
  const TensorType type = x->tensor_type();
  const int64_t out = draft.random().Between(1, 6);
  RandomCall call{"linear", {x}, {}, {}};
  call.parameters["weight"] = draft.SeededParameter("fc.weight", Of(type.dtype, {out, type.shape.back()}));
  if (draft.random().OneIn(2)) call.parameters["bias"] = draft.SeededParameter("fc.bias", Of(type.dtype, {out}));
  Node* y = draft.AddInRandomSpelling(call);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, Grown(draft.magnitude(*x), type.shape.back()));
  return draft.random().OneIn(2) || AddActivation(draft, y) != nullptr;
}

// relu(matmul(x, w) + b), as a hand-written layer has it.
bool MatmulChain(Draft& draft) {
  Node* x = draft.PickFloatOrNull(2, 3);
  if (x == nullptr || x->tensor_type().shape.back() > 64) return false;
  const TensorType type = x->tensor_type();
  const int64_t out = draft.random().Between(1, 6);
  Node* w = draft.AddGetAttr(draft.SeededParameter("w", Of(type.dtype, {type.shape.back(), out})));
  Node* y = draft.AddInRandomSpelling({"matmul", {x, w}, {}, {}});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, Grown(draft.magnitude(*x), type.shape.back()));
  if (draft.random().OneIn(4)) return true;
  Node* b = draft.AddGetAttr(draft.SeededParameter("b", Of(type.dtype, {out})));
  y = draft.AddInRandomSpelling(
      {"add", draft.random().OneIn(4) ? std::vector<Node*>{b, y} : std::vector<Node*>{y, b}, {}, {}});
  return y != nullptr && (draft.random().OneIn(2) || AddActivation(draft, y) != nullptr);
}

bool MatmulOfValues(Draft& draft) {
  Node* a = draft.PickFloatOrNull(1, 3);
  if (a == nullptr) return false;
  const TensorType type = a->tensor_type();
  Node* b = draft.PickOrNull([&](const Node& node) {
    if (!node.type().is_tensor() || node.tensor_type().dtype != type.dtype || draft.magnitude(node) > 1e3) return false;
    const Shape& shape = node.tensor_type().shape;
    return shape.size() >= 2 && shape.size() <= 3 && shape[shape.size() - 2] == type.shape.back();
  });
  if (b == nullptr) return false;
  Node* y = draft.AddInRandomSpelling({"matmul", {a, b}, {}, {}});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, Grown(draft.magnitude(*a) * draft.magnitude(*b), type.shape.back()));
  return true;
}

// What attends to itself, as one op or as exporters write it: scaled somewhere, masked somehow. Of small values: no
// tolerance survives an exponential of large ones.
bool Attention(Draft& draft) {
  Node* x = draft.PickFloatOrNull(2, 4);
  if (x == nullptr || x->tensor_type().num_elements() > 200 || x->tensor_type().num_elements() == 0) return false;
  const TensorType type = x->tensor_type();
  const int64_t length = type.shape[type.rank() - 2];
  if (length > 4 || type.shape.back() > 16) return false;
  x = draft.AddInRandomSpelling({"tanh", {x}, {}, {}});
  if (x == nullptr) return false;
  draft.set_magnitude(*x, 1);
  Random& random = draft.random();
  const double scale = random.From(std::vector<double>{0.5, 0.125, 1});
  Node* mask = nullptr;
  const int64_t kind = random.Between(0, 3);
  if (kind == 1) mask = draft.AddGetAttr(draft.SeededParameter("mask", Of(type.dtype, {length, length})));
  if (kind == 2) {  // The first key is allowed.
    Node* scores = draft.AddGetAttr(draft.VectorParameter("allowed", DType::kI64, length, {1, 0, 1}));
    mask = draft.AddFunction("to", {scores}, {{"dtype", DType::kBool}});
  }
  if (random.OneIn(3)) {
    std::vector<Node*> operands = {x, x, x};
    if (mask != nullptr) operands.push_back(mask);
    return draft.AddInRandomSpelling({"scaled_dot_product_attention",
                                      std::move(operands),
                                      {},
                                      {{"scale", scale}, {"is_causal", kind == 3}}}) != nullptr;
  }
  const auto number = [&](double value) {
    Node* c = draft.AddGetAttr(draft.VectorParameter("c", type.dtype, 1, {value}));
    draft.set_magnitude(*c, std::max(1.0, std::abs(value)));
    return c;
  };
  const auto call = [&](const char* op, std::vector<Node*> operands, AttributeMap attributes = {}) {
    for (const Node* operand : operands) {
      if (operand == nullptr) return static_cast<Node*>(nullptr);
    }
    return draft.AddInRandomSpelling({op, std::move(operands), {}, std::move(attributes)});
  };
  // All axes in front may be one, for the products or for all.
  const bool joined = type.rank() > 2 && random.OneIn(3), apart = joined && random.OneIn(2);
  const auto view = [&](Node* matrices, Shape shape, int64_t columns) {
    shape.back() = columns;
    return call("reshape", {matrices}, {{"shape", Ints(shape.begin(), shape.end())}});
  };
  const Shape together = {-1, length, length};
  Node* const values = joined ? view(x, together, type.shape.back()) : x;
  Node* q = random.OneIn(2) ? call("mul", {values, number(scale)}) : values;
  Node* k = call("transpose", {values}, {{"dim0", -1}, {"dim1", -2}});
  Node* scores = call("matmul", {q, k});
  if (scores != nullptr) draft.set_magnitude(*scores, 16);
  if (apart) scores = view(scores, type.shape, length);
  const bool scaled_late = random.OneIn(3);
  const auto scale_scores = [&] {
    if (q != values) return;
    scores = random.OneIn(2) ? call("mul", {scores, number(scale)}) : call("div", {scores, number(4)});
  };
  if (!scaled_late) scale_scores();
  if (kind == 1) scores = call(random.OneIn(3) ? "sub" : "add", {scores, mask});
  if (kind == 2) scores = call("where", {mask, scores, number(-1e9)});
  if (scaled_late) scale_scores();
  if (kind == 3) {  // Causal.
    Node* ones = draft.AddGetAttr(draft.VectorParameter("ones", type.dtype, length * length, {1}));
    ones = call("reshape", {ones}, {{"shape", Ints{length, length}}});
    Node* future = call("triu", {call("mul", {ones, number(-1e9)})}, {{"diagonal", 1}});
    scores = call("add", {scores, future});
  }
  if (random.OneIn(4)) {
    scores = call("maximum", {scores, number(-3e38)});
    if (scores != nullptr) draft.set_magnitude(*scores, 16);
  }
  Node* weights = call("softmax", {scores});
  if (apart) weights = view(weights, together, length);
  Node* y = call("matmul", {weights, values});
  if (y != nullptr) draft.set_magnitude(*y, 1);
  return y != nullptr && (!joined || view(y, type.shape, type.shape.back()) != nullptr);
}

bool Gemm(Draft& draft) {
  Node* a = draft.PickFloatOrNull(2, 2);
  if (a == nullptr) return false;
  Random& random = draft.random();
  const TensorType type = a->tensor_type();
  const bool trans_a = random.OneIn(4), trans_b = random.OneIn(2);
  const int64_t rows = type.shape[trans_a ? 1 : 0], inner = type.shape[trans_a ? 0 : 1], columns = random.Between(1, 5);
  std::vector<Node*> operands = {
      a, draft.AddGetAttr(
             draft.SeededParameter("gemm.b", Of(type.dtype, trans_b ? Shape{columns, inner} : Shape{inner, columns})))};
  if (!random.OneIn(4)) {
    const std::vector<Shape> shapes = {{columns}, {1, columns}, {}, {rows, 1}, {rows, columns}};
    operands.push_back(draft.AddGetAttr(draft.SeededParameter("gemm.c", Of(type.dtype, random.From(shapes)))));
  }
  AttributeMap attributes = {{"trans_a", trans_a}, {"trans_b", trans_b}};
  if (random.OneIn(3)) attributes.emplace("alpha", 0.5);
  if (random.OneIn(3)) attributes.emplace("beta", random.From(std::vector<double>{0, 2, -1.5}));
  Node* y = draft.AddInRandomSpelling({"gemm", std::move(operands), {}, std::move(attributes)});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, Grown(draft.magnitude(*a), inner) + 2);
  return true;
}

bool Addmm(Draft& draft) {
  Node* a = draft.PickFloatOrNull(2, 2);
  if (a == nullptr) return false;
  Random& random = draft.random();
  const TensorType type = a->tensor_type();
  const int64_t columns = random.Between(1, 5);
  Node* c = draft.AddGetAttr(draft.SeededParameter("addmm.input", Of(type.dtype, {columns})));
  Node* b = draft.AddGetAttr(draft.SeededParameter("addmm.mat2", Of(type.dtype, {type.shape[1], columns})));
  AttributeMap attributes;
  if (random.OneIn(3)) attributes.emplace("alpha", 0.5);
  if (random.OneIn(3)) attributes.emplace("beta", 2.0);
  Node* y = draft.AddInRandomSpelling({"addmm", {c, a, b}, {}, std::move(attributes)});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, Grown(draft.magnitude(*a), type.shape[1]) + 2);
  return true;
}

// Layers side by side on one value: small ones become one.
bool Neighbours(Draft& draft) {
  Node* x = draft.PickFloatOrNull(2, 3);
  if (x == nullptr || x->tensor_type().shape.back() > 64) return false;
  const TensorType type = x->tensor_type();
  for (int64_t i = draft.random().Between(2, 3); i > 0; --i) {
    RandomCall call{"linear", {x}, {}, {}};
    const int64_t out = draft.random().Between(1, 4);
    call.parameters["weight"] = draft.SeededParameter("side.weight", Of(type.dtype, {out, type.shape.back()}));
    if (draft.random().OneIn(2)) call.parameters["bias"] = draft.SeededParameter("side.bias", Of(type.dtype, {out}));
    Node* y = draft.AddInRandomSpelling(call);
    if (y == nullptr) return false;
    draft.set_magnitude(*y, Grown(draft.magnitude(*x), type.shape.back()));
  }
  return true;
}

// A layer whose channels are read in parts: as they are, or as an axis of their own, brought to the front or not.
bool PartsOfLinear(Draft& draft) {
  Node* x = draft.PickFloatOrNull(2, 3);
  if (x == nullptr || x->tensor_type().shape.back() > 64) return false;
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  const int64_t parts = random.Between(2, 3), size = random.Between(1, 3), channels = parts * size;
  RandomCall call{"linear", {x}, {}, {}};
  call.parameters["weight"] = draft.SeededParameter("qkv.weight", Of(type.dtype, {channels, type.shape.back()}));
  if (random.OneIn(2)) call.parameters["bias"] = draft.SeededParameter("qkv.bias", Of(type.dtype, {channels}));
  Node* y = draft.AddInRandomSpelling(call);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, Grown(draft.magnitude(*x), type.shape.back()));
  int64_t axis = type.rank() - 1, index = size;  // Where the parts are, and how long each is there.
  if (random.OneIn(2)) {
    Shape shape = y->tensor_type().shape;
    shape.back() = parts;
    shape.push_back(size);
    y = draft.AddInRandomSpelling({"reshape", {y}, {}, {{"shape", shape}}});
    index = 1;
    if (y != nullptr && random.OneIn(2)) {
      Ints dims = {axis};
      for (int64_t i = 0; i < y->tensor_type().rank(); ++i) {
        if (i != axis) dims.push_back(i);
      }
      y = draft.AddInRandomSpelling({"permute", {y}, {}, {{"dims", dims}}});
      axis = 0;
    }
  }
  if (y == nullptr) return false;
  if (random.OneIn(3)) {
    Node* split = draft.AddFunction("split", {y}, {{"sizes", Ints(parts, index)}, {"dim", axis}});
    for (int64_t part = 0; split != nullptr && part < parts; ++part) {
      if (draft.AddFunction("getitem", {split}, {{"index", part}}) == nullptr) return false;
    }
    return split != nullptr;
  }
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t start = part * index, end = start + (random.OneIn(8) ? 2 * index : index);  // At times they overlap.
    AttributeMap attributes = {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{axis}}};
    if (draft.AddFunction("slice", {y}, std::move(attributes)) == nullptr) return false;
  }
  return true;
}

// Over the last axes. A large eps: values may hardly differ, and no tolerance survives a division by that.
bool LayerNorm(Draft& draft) {
  Node* x = draft.PickFloatOrNull(1, 4);
  if (x == nullptr) return false;
  const TensorType type = x->tensor_type();
  const int64_t first = draft.random().Between(0, type.rank() - 1);
  const Shape normalized(type.shape.begin() + first, type.shape.end());
  RandomCall call{"layer_norm", {x}, {}, {{"normalized_shape", normalized}, {"eps", 0.5}}};
  if (draft.random().OneIn(2)) {
    call.parameters["weight"] = draft.SeededParameter("ln.weight", Of(type.dtype, normalized));
    call.parameters["bias"] = draft.SeededParameter("ln.bias", Of(type.dtype, normalized));
  }
  return draft.AddInRandomSpelling(call) != nullptr;
}

// A norm over the last axis and linears that read it, whose channels may be scaled; at times a gate between two.
bool NormedLinears(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickFloatOrNull(2, 3);
  if (x == nullptr || x->tensor_type().shape.back() > 64) return false;
  const TensorType type = x->tensor_type();
  const Shape channels = {type.shape.back()};
  RandomCall norm{random.OneIn(2) ? "layer_norm" : "rms_norm", {x}, {}, {{"normalized_shape", channels}, {"eps", 0.5}}};
  if (!random.OneIn(4)) norm.parameters["weight"] = draft.SeededParameter("norm.weight", Of(type.dtype, channels));
  Node* y = draft.AddAsModule(norm);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, 4);
  const auto linear = [&](Node* input, int64_t outputs) -> Node* {
    const int64_t inputs = input->tensor_type().shape.back();
    RandomCall call{"linear", {input}, {}, {}};
    call.parameters["weight"] = draft.SeededParameter("normed.weight", Of(type.dtype, {outputs, inputs}));
    Node* result = draft.AddAsModule(call);
    if (result != nullptr) draft.set_magnitude(*result, Grown(draft.magnitude(*input), inputs));
    return result;
  };
  const int64_t outputs = random.Between(2, 6);
  Node *gate = linear(y, outputs), *up = linear(y, outputs);
  if (gate == nullptr || up == nullptr || random.OneIn(2)) return gate != nullptr;
  Node* product = draft.AddFunction("mul", {draft.AddFunction("sigmoid", {gate}), up});
  if (product == nullptr) return false;
  draft.set_magnitude(*product, draft.magnitude(*up));
  return linear(product, random.Between(1, 4)) != nullptr;
}

// --- Pools.

bool AdaptivePool(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 5);
  if (x == nullptr) return false;
  const int n = x->tensor_type().rank() - 2;
  Ints sizes;
  for (int i = 0; i < n; ++i) {
    sizes.push_back(draft.random().OneIn(2) ? 1 : draft.random().Between(1, x->tensor_type().shape[2 + i]));
  }
  return draft.AddInRandomSpelling({absl::StrCat("adaptive_avg_pool", n, "d"), {x}, {}, {{"output_size", sizes}}}) !=
         nullptr;
}

bool Pool(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 5);
  if (x == nullptr) return false;
  Random& random = draft.random();
  const TensorType type = x->tensor_type();
  const int n = type.rank() - 2;
  const bool max = random.OneIn(2);
  Ints kernel, stride, padding(2 * n, 0);
  const bool whole = !max && random.OneIn(3);
  for (int i = 0; i < n; ++i) {
    kernel.push_back(whole ? type.shape[2 + i] : random.Between(1, std::min<int64_t>(3, type.shape[2 + i])));
    stride.push_back(random.Between(1, 2));
    if (!whole && kernel.back() > 1) padding[i] = padding[n + i] = random.Between(0, 1);
  }
  AttributeMap attributes = {
      {"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"ceil_mode", random.OneIn(4)}};
  if (!max) attributes.emplace("count_include_pad", random.OneIn(2));
  return draft.AddInRandomSpelling({absl::StrCat(max ? "max" : "avg", "_pool", n, "d"), {x}, {}, attributes}) !=
         nullptr;
}

bool GlobalPool(Draft& draft) {
  Node* x = draft.PickFloatOrNull(3, 5);
  if (x == nullptr) return false;
  if (draft.random().OneIn(2)) return draft.AddInRandomSpelling({"global_avg_pool", {x}, {}, {}}) != nullptr;
  Ints dims;
  for (int axis = 2; axis < x->tensor_type().rank(); ++axis)
    dims.push_back(axis - (draft.random().OneIn(2) ? x->tensor_type().rank() : 0));
  return draft.AddInRandomSpelling({"mean", {x}, {}, {{"dims", dims}, {"keepdim", draft.random().OneIn(2)}}}) !=
         nullptr;
}

}  // namespace

void Register(Recipes& recipes) {
  recipes.Add(Graphs::kEvery, {{6, Conv},          {2, ConvTranspose}, {2, BatchNorm},      {5, ConvBnActivation},
                               {2, BnConv},        {4, ResidualBlock}, {3, SharedModule},   {5, TiedWeights},
                               {4, Linear},        {3, MatmulChain},   {2, MatmulOfValues}, {3, Attention},
                               {3, Gemm},          {5, Pool},          {2, GlobalPool},     {2, AdaptivePool},
                               {2, LayerNorm},     {2, Addmm},         {2, Neighbours},     {11, LayerPair},
                               {7, NormedLinears}, {3, PartsOfLinear}, {3, SummedBranches}});
}

}  // namespace fuselage::testing::recipes::layers
