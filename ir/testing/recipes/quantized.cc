// Quantizes, dequantizes, what lies between them, and lowered layers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/testing/draft.h"

namespace fuselage::testing::recipes::quantized {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

// Attributes of a per-tensor quantize that covers about what x holds: 64 codes or more.
AttributeMap PerTensorAttributes(Draft& draft, const Node& x) {
  Random& random = draft.random();
  const double step = draft.magnitude(x) / (random.OneIn(2) ? 64 : 100);
  AttributeMap attributes = {{"scales", Floats{static_cast<float>(step)}}};
  switch (random.Between(0, 3)) {
    case 0: attributes.emplace("dtype", DType::kI8); break;
    case 1: attributes.emplace("zero_points", Ints{0}); break;  // What a relu leaves has it.
    default: attributes.emplace("zero_points", Ints{128}); break;
  }
  return attributes;
}

// The attributes of another call that quantizes to the same codes.
AttributeMap Respelled(Draft& draft, AttributeMap attributes) {
  const auto zero_points = attributes.find("zero_points");
  if (zero_points == attributes.end() && draft.random().OneIn(2)) attributes.emplace("zero_points", Ints{0});
  if (draft.random().OneIn(2)) attributes.emplace("axis", QuantParams::kPerTensor);
  return attributes;
}

AttributeMap PerAxisAttributes(Draft& draft, const Node& x) {
  const int64_t axis = draft.random().Between(0, x.tensor_type().rank() - 1);
  Floats scales;
  for (int64_t i = 0; i < x.tensor_type().shape[axis]; ++i) {
    scales.push_back(draft.magnitude(x) / static_cast<double>(64 + 32 * (i % 3)));
  }
  return {{"scales", scales}, {"axis", axis}, {"dtype", DType::kI8}};
}

Node* Quantize(Draft& draft, Node* x, AttributeMap attributes) {
  return x == nullptr ? nullptr : draft.AddFunction("quantize", {x}, std::move(attributes));
}
Node* Dequantize(Draft& draft, Node* x) { return x == nullptr ? nullptr : draft.AddFunction("dequantize", {x}); }

bool Pair(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(0, 5);
  if (x == nullptr) return false;
  const bool per_axis = x->tensor_type().rank() > 0 && x->tensor_type().num_elements() > 0 && draft.random().OneIn(3);
  Node* q = Quantize(draft, x, per_axis ? PerAxisAttributes(draft, *x) : PerTensorAttributes(draft, *x));
  if (q == nullptr) return false;
  if (draft.random().OneIn(3)) {
    if (Node* view = AddRandomView(draft, q); view != nullptr) q = view;
  }
  return Dequantize(draft, q) != nullptr;
}

// Scale and zero point as operands: constants, one of them under a name of its own at each call.
bool QuantizeWithOperands(Draft& draft) {
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr) return false;
  Node* scale = draft.AddGetAttr(draft.VectorParameter("scale", DType::kF32, 1, {draft.magnitude(*x) / 64}));
  Node* zero_point = draft.AddGetAttr(draft.VectorParameter("zero_point", DType::kU8, 1, {128}));
  Node* q = draft.AddFunction("quantize", {x, scale, zero_point});
  return q != nullptr && draft.AddFunction("dequantize", {q, scale, zero_point}) != nullptr;
}

// quantize(views(x)), twice alike at times, and with further readers of what is between.
bool QuantizedViews(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  Node* source = x;
  for (int64_t i = random.Between(1, 3); i > 0; --i) {
    Node* view = AddRandomView(draft, x);
    if (view == nullptr) continue;
    if (random.OneIn(6)) draft.AddInRandomSpelling({"relu", {x}, {}, {}});
    x = view;
  }
  const bool per_axis = x->tensor_type().rank() > 0 && random.OneIn(3);
  const AttributeMap attributes = per_axis ? PerAxisAttributes(draft, *x) : PerTensorAttributes(draft, *x);
  for (int64_t i = random.Between(1, 2); i > 0; --i) {
    Dequantize(draft, Quantize(draft, x, Respelled(draft, attributes)));
  }
  if (!per_axis && random.OneIn(3)) Dequantize(draft, Quantize(draft, source, Respelled(draft, attributes)));
  return true;
}

// A weight of codes with a scale for each output channel: from a dequantize, as ONNX has it, or in its type.
std::string CodesParameter(Draft& draft, const Shape& shape) {
  std::vector<float> scales;
  for (int64_t c = 0; c < shape[0]; ++c) scales.push_back(static_cast<float>(1 + c % 3) / 256);
  const QuantParams params = draft.random().OneIn(3) ? PerTensor(0.0078125f) : PerAxis(0, std::move(scales));
  return draft.SeededParameter("w.i8", Of(DType::kI8, shape, params));
}

// q(relu(layer(dq(q(x)))))
bool QuantizedLayer(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(2, 4);
  if (x == nullptr || x->tensor_type().rank() == 3) return false;
  x = Dequantize(draft, Quantize(draft, x, PerTensorAttributes(draft, *x)));
  if (x == nullptr) return false;
  const TensorType type = x->tensor_type();
  const bool conv = type.rank() == 4;
  const int64_t out = random.Between(1, 5), inner = conv ? type.shape[1] : type.shape.back();
  Shape shape = {out, inner};
  AttributeMap attributes;
  if (conv) {
    const int64_t kernel = random.OneIn(2) ? 1 : 3;
    shape.insert(shape.end(), {kernel, kernel});
    attributes.emplace("padding", Ints(4, kernel / 2));
  }
  const std::string op = conv ? "conv2d" : "linear", weight = CodesParameter(draft, shape);
  Node* y = nullptr;
  if (random.OneIn(2)) {
    y = draft.AddInRandomSpelling({op, {x}, {{"weight", weight}}, attributes});
  } else {
    Node* w = Dequantize(draft, draft.AddGetAttr(weight));
    y = w == nullptr ? nullptr : draft.AddFunction(op, {x, w}, attributes);
  }
  if (y == nullptr) return false;
  draft.set_magnitude(*y, draft.magnitude(*x) * 2);
  if (random.OneIn(2)) y = draft.AddInRandomSpelling({"relu", {y}, {}, {}});  // Which refuses nothing that is f32.
  if (draft.MayRound(*y) && !random.OneIn(4)) Dequantize(draft, Quantize(draft, y, PerTensorAttributes(draft, *y)));
  return true;
}

// add, relu and pools between codes.
bool QuantizedElementwise(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(4, 4);
  if (x == nullptr) return false;
  const AttributeMap codes = PerTensorAttributes(draft, *x);
  const ir::Type type = x->type();
  const double magnitude = draft.magnitude(*x);
  x = Dequantize(draft, Quantize(draft, x, codes));
  if (x == nullptr) return false;
  RandomCall call{
      random.From(std::vector<std::string>{"relu", "max_pool2d", "avg_pool2d", "global_avg_pool", "add"}), {x}, {}, {}};
  if (call.op == "max_pool2d" || call.op == "avg_pool2d") {
    call.attributes = {{"kernel_size", Ints{2, 2}}, {"stride", Ints{1, 1}}};
  }
  if (call.op == "add") {
    Node* other = draft.PickToRoundOrNull(4, 4);
    if (other == nullptr || other->type() != type) other = x;
    other = Dequantize(draft, Quantize(draft, other, PerTensorAttributes(draft, *other)));
    call.operands.push_back(other);
  }
  Node* y = draft.AddInRandomSpelling(call);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, call.op == "add" ? 2 * magnitude : magnitude);
  if (draft.MayRound(*y)) Dequantize(draft, Quantize(draft, y, PerTensorAttributes(draft, *y)));
  return true;
}

std::string RandomActivation(Random& random) {
  return random.From(std::vector<std::string>{"none", "relu", "clamp(min=-0.5, max=6)", "hardswish", "hardsigmoid",
                                              "leaky_relu(negative_slope=0.1)", "sigmoid", "silu", "tanh", "gelu",
                                              "gelu(approximate=tanh)", "mish", "silu, clamp(min=-0.25, max=6)"});
}

// What lower makes, as the input: a graph that is lowered in part.
bool Lowered(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(4, 4);
  if (x == nullptr) return false;
  const double step = draft.magnitude(*x) / 100;
  const auto output = [&](double scale) {
    return AttributeMap{{"out_scale", static_cast<float>(scale)}, {"out_zero_point", 128}};
  };
  x = draft.AddInRandomSpelling({"int8.quantize", {x}, {}, output(step)});
  if (x == nullptr) return false;
  for (int64_t i = random.Between(1, 3); i > 0 && x != nullptr; --i) {
    const TensorType type = x->tensor_type();
    RandomCall call{random.From(std::vector<std::string>{
                        "int8.conv2d", "int8.conv2d_max_pool2d", "int8.add", "int8.relu", "int8.max_pool2d",
                        "int8.avg_pool2d", "int8.global_avg_pool", "int8.clamp", "int8.div", "int8.gelu",
                        "int8.hardsigmoid", "int8.hardswish", "int8.leaky_relu", "int8.mul", "int8.prelu",
                        "int8.sigmoid", "int8.silu", "int8.sub", "int8.tanh", "int8.fused_elementwise",
                        "int8.group_norm", "int8.instance_norm"}),
                    {x},
                    {},
                    output(step)};
    if (call.op == "int8.conv2d" || call.op == "int8.conv2d_max_pool2d") {
      call.parameters["weight"] = CodesParameter(draft, {random.Between(1, 4), type.shape[1], 1, 1});
      call.attributes.emplace("activation", RandomActivation(random));
    }
    if (call.op == "int8.add" || call.op == "int8.mul" || call.op == "int8.sub" || call.op == "int8.div" ||
        call.op == "int8.prelu") {
      call.operands.push_back(x);
    }
    if (call.op == "int8.group_norm" || call.op == "int8.instance_norm") {
      if (call.op == "int8.group_norm") call.attributes.emplace("num_groups", type.shape[1] % 2 == 0 ? 2 : 1);
      call.attributes.emplace("eps", 0.5);
      call.attributes.emplace("activation", RandomActivation(random));
    }
    if (call.op == "int8.fused_elementwise") {
      call.attributes.emplace("steps", std::vector<std::string>{"sigmoid(0)", "mul(1, 0)"});
    }
    if (call.op == "int8.max_pool2d") call.attributes.clear();
    if (call.op == "int8.max_pool2d" || call.op == "int8.avg_pool2d") {
      call.attributes.emplace("kernel_size", Ints{2, 2});
      call.attributes.emplace("stride", Ints{1, 1});
    }
    if (call.op == "int8.conv2d_max_pool2d") {
      call.attributes.emplace("pool_kernel_size", Ints{2, 2});
      call.attributes.emplace("pool_stride", Ints{1, 1});
    }
    Node* y = draft.AddInRandomSpelling(call);
    if (y != nullptr) x = y;
  }
  if (random.OneIn(3)) {
    const TensorType type = x->tensor_type();
    RandomCall call{"int8.linear", {x}, {}, output(step)};
    call.parameters["weight"] = CodesParameter(draft, {3, type.shape.back()});
    call.attributes.emplace("activation", RandomActivation(random));
    if (type.rank() == 4 && random.OneIn(2)) {
      call.op = "int8.global_avg_pool_linear";
      call.parameters["weight"] = CodesParameter(draft, {3, type.shape[1]});
      call.attributes.emplace("pool_out_scale", static_cast<float>(step));
      call.attributes.emplace("pool_out_zero_point", 128);
    }
    if (Node* y = draft.AddInRandomSpelling(call); y != nullptr) x = y;
  }
  return draft.AddInRandomSpelling({"int8.dequantize", {x}, {}, {}}) != nullptr;
}

// Layers on codes with pools in front of them and behind.
bool LoweredPools(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(4, 4);
  if (x == nullptr) return false;
  const AttributeMap output = {{"out_scale", static_cast<float>(draft.magnitude(*x) / 100)}, {"out_zero_point", 128}};
  x = draft.AddInRandomSpelling({"int8.quantize", {x}, {}, output});
  for (int64_t i = random.Between(1, 2); i > 0 && x != nullptr; --i) {
    RandomCall conv{"int8.conv2d", {x}, {}, output};
    conv.parameters["weight"] = CodesParameter(draft, {random.Between(1, 4), x->tensor_type().shape[1], 3, 3});
    conv.attributes.emplace("padding", Ints(4, 1));
    x = draft.AddInRandomSpelling(conv);
    if (x == nullptr) return false;
    RandomCall pool{"int8.max_pool2d", {x}, {}, {{"kernel_size", Ints{2, 3}}, {"padding", Ints{1, 1, 0, 1}}}};
    pool.attributes.emplace("stride", Ints{random.Between(1, 3), 1});
    pool.attributes.emplace("ceil_mode", random.OneIn(2));
    x = draft.AddInRandomSpelling(pool);
  }
  if (x != nullptr && random.OneIn(2)) {
    x = draft.AddInRandomSpelling({"int8.global_avg_pool", {x}, {}, output});
    x = x == nullptr ? nullptr : draft.AddInRandomSpelling({"flatten", {x}, {}, {}});
    if (x == nullptr) return false;
    RandomCall linear{"int8.linear", {x}, {}, output};
    linear.parameters["weight"] = CodesParameter(draft, {3, x->tensor_type().shape[1]});
    x = draft.AddInRandomSpelling(linear);
  }
  return x != nullptr && draft.AddInRandomSpelling({"int8.dequantize", {x}, {}, {}}) != nullptr;
}

// A value times its transpose: matmul between pairs, or what lower makes of it.
bool QuantizedProduct(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(2, 4);
  if (x == nullptr) return false;
  const double magnitude = draft.magnitude(*x);
  const double product = magnitude * magnitude * static_cast<double>(x->tensor_type().shape.back() + 1);
  const bool lowered = random.OneIn(2);
  const AttributeMap codes = {{"out_scale", static_cast<float>(magnitude / 100)}, {"out_zero_point", 128}};
  Node* a = lowered ? draft.AddInRandomSpelling({"int8.quantize", {x}, {}, codes})
                    : Quantize(draft, x, PerTensorAttributes(draft, *x));
  if (a == nullptr) return false;
  Node* b = draft.AddFunction("transpose", {a}, {{"dim0", -1}, {"dim1", -2}});
  if (!lowered) {
    a = Dequantize(draft, a);
    b = b == nullptr ? nullptr : Dequantize(draft, b);
  }
  if (a == nullptr || b == nullptr) return false;
  RandomCall call{lowered ? "int8.matmul" : "matmul", {a, b}, {}, {}};
  const bool float_result = random.OneIn(3);
  if (lowered && float_result) call.attributes = {{"out_dtype", DType::kF32}};
  if (lowered && !float_result) {
    call.attributes = {{"out_scale", static_cast<float>(product / 100)}, {"out_zero_point", 128}};
  }
  Node* y = draft.AddInRandomSpelling(call);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, product);
  if (lowered && !float_result) return draft.AddInRandomSpelling({"int8.dequantize", {y}, {}, {}}) != nullptr;
  if (!float_result && draft.MayRound(*y)) Dequantize(draft, Quantize(draft, y, PerTensorAttributes(draft, *y)));
  return true;
}

// What attends to itself, between pairs or as lower makes it, with scores of at most 1; a mask stays as it is.
bool QuantizedAttention(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(2, 4);
  if (x == nullptr || x->tensor_type().num_elements() > 200) return false;
  const Shape shape = x->tensor_type().shape;
  const double magnitude = draft.magnitude(*x);
  const bool lowered = random.OneIn(2), float_result = random.OneIn(3);
  const AttributeMap codes = {{"out_scale", static_cast<float>(magnitude / 100)}, {"out_zero_point", 128}};
  Node* a = lowered ? draft.AddInRandomSpelling({"int8.quantize", {x}, {}, codes})
                    : Quantize(draft, x, PerTensorAttributes(draft, *x));
  if (a != nullptr && !lowered) a = Dequantize(draft, a);
  if (a == nullptr) return false;
  RandomCall call{lowered ? "int8.attention" : "scaled_dot_product_attention", {a, a, a}, {}, {}};
  call.attributes = {{"scale", 1 / (magnitude * magnitude * static_cast<double>(shape.back() + 1))},
                     {"is_causal", random.OneIn(3)}};
  if (random.OneIn(3)) {
    const int64_t length = shape[shape.size() - 2];
    call.operands.push_back(draft.AddGetAttr(draft.SeededParameter("mask", Of(DType::kF32, {length, length}))));
  }
  if (lowered && float_result) call.attributes.emplace("out_dtype", DType::kF32);
  if (lowered && !float_result) call.attributes.insert(codes.begin(), codes.end());
  Node* y = draft.AddInRandomSpelling(call);
  if (y == nullptr) return false;
  draft.set_magnitude(*y, magnitude);
  if (lowered && !float_result) return draft.AddInRandomSpelling({"int8.dequantize", {y}, {}, {}}) != nullptr;
  if (!float_result && draft.MayRound(*y)) Dequantize(draft, Quantize(draft, y, PerTensorAttributes(draft, *y)));
  return true;
}

// A norm of codes, a sum or neither, that is quantized: written out, as lower leaves it, or one op. With a scale for
// each row only of an exact value: see DynamicQuantize.
bool QuantizedNorm(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || x->tensor_type().num_elements() == 0) return false;
  const bool rows = draft.is_exact(*x) && random.OneIn(2), one_op = random.OneIn(2);
  const Ints normalized = {x->tensor_type().shape.back()};
  const AttributeMap dims = {{"dims", Ints{-1}}}, codes = {{"out_scale", 0.03125}, {"out_zero_point", 128}};
  RandomCall call{random.OneIn(2) ? "layer_norm" : "rms_norm", {x}, {}, {{"normalized_shape", normalized}}};
  call.attributes.emplace("eps", 0.5);
  if (random.OneIn(2)) call.parameters["weight"] = draft.SeededParameter("norm.weight", Of(DType::kF32, normalized));
  Node* y = nullptr;
  if (one_op) {
    call.op = "int8." + call.op;
    call.attributes.insert((rows ? dims : codes).begin(), (rows ? dims : codes).end());
    if (random.OneIn(2)) call.operands.push_back(x);
    y = draft.AddInRandomSpelling(call);
  } else {
    if (random.OneIn(3)) {
      x = Dequantize(draft, Quantize(draft, x, PerTensorAttributes(draft, *x)));
    } else if (random.OneIn(2)) {
      x = draft.AddFunction("add", {x, x});
    }
    if (x == nullptr) return false;
    call.operands = {x};
    y = draft.AddAsModule(call);
    if (y == nullptr) return false;
    draft.set_magnitude(*y, 4);
    if (!rows && !draft.MayRound(*y)) return true;
    y = rows ? draft.AddFunction("dynamic_quantize_symmetric", {y}, dims)
             : draft.AddInRandomSpelling({"int8.quantize", {y}, {}, codes});
  }
  if (y == nullptr) return false;
  draft.set_magnitude(*y, 4);
  if (!y->type().is_tuple()) return draft.AddInRandomSpelling({"int8.dequantize", {y}, {}, {}}) != nullptr;
  for (size_t i = 0; i < y->type().elements().size(); ++i) {
    draft.AddFunction("getitem", {y}, {{"index", static_cast<int64_t>(i)}});
  }
  return true;
}

// The codes of a dynamic quantize behind a view or two, dequantized by its own scale. Of an exact value: what cancels
// to nearly nothing would become large codes of noise.
bool DynamicQuantize(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || !draft.is_exact(*x) || x->tensor_type().num_elements() == 0) return false;
  for (int64_t i = random.Between(0, 2); i > 0; --i) {
    Node* view = AddRandomView(draft, x);
    if (view != nullptr) x = view;
  }
  const std::string op = random.From(
      std::vector<std::string>{"dynamic_quantize_symmetric", "dynamic_quantize_asymmetric", "dynamic_quantize_mxfp4"});
  AttributeMap attributes;
  if (op == "dynamic_quantize_mxfp4") {
    if (x->tensor_type().rank() == 0) return false;
    attributes.emplace("group_size", random.Between(1, 4));
  } else if (random.OneIn(3) && x->tensor_type().rank() > 0) {
    attributes.emplace("dims", Ints{random.Between(-1, x->tensor_type().rank() - 1)});
  }
  Node* tuple = draft.AddFunction(op, {x}, attributes);
  if (tuple == nullptr) return false;
  const int64_t elements = static_cast<int64_t>(tuple->type().elements().size());
  std::vector<Node*> parts;
  for (int64_t index = 0; index < elements; ++index) {
    const AttributeMap which = {{"index", random.OneIn(3) ? index - elements : index}};
    parts.push_back(draft.AddFunction("getitem", {tuple}, which));
  }
  if (op == "dynamic_quantize_mxfp4") return draft.AddFunction("dequantize_mxfp4", parts, attributes) != nullptr;
  draft.AddFunction("dequantize", parts);  // Which refuses scales along axes: the codes and scales are results then.
  return true;
}

// A linear of codes with a scale for each row, written out or lowered, at times with weights in groups. Of an exact
// value, as above.
bool RowScales(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || !draft.is_exact(*x) || x->tensor_type().num_elements() == 0) return false;
  const double magnitude = draft.magnitude(*x);
  const int64_t in = x->tensor_type().shape.back(), out = random.Between(1, 5);
  if (in > 64) return false;
  Node* tuple = draft.AddFunction("dynamic_quantize_symmetric", {x}, {{"dims", Ints{-1}}});
  if (tuple == nullptr) return false;
  Node* codes = draft.AddFunction("getitem", {tuple}, {{"index", 0}});
  Node* scale = draft.AddFunction("getitem", {tuple}, {{"index", 1}});
  const bool lowered = random.OneIn(2), in_groups = random.OneIn(2), mxfp4 = random.OneIn(2);
  RandomCall call{lowered ? "int8.linear" : "linear", {codes, scale}, {}, {}};
  if (!lowered) {
    Node* floats = draft.AddFunction("to", {codes}, {{"dtype", DType::kF32}});
    call.operands = {draft.AddFunction("mul", {floats, scale})};
  }
  if (!in_groups) {
    call.parameters["weight"] = CodesParameter(draft, {out, in});
    if (lowered) call.attributes = {{"out_dtype", DType::kF32}};
  } else {
    const DType codes_type = mxfp4 ? DType::kU8 : DType::kI8;
    Tensor scales(mxfp4 ? DType::kU8 : DType::kF32, {out, (in + 31) / 32});
    for (int64_t i = 0; i < scales.num_elements(); ++i) scales.Set(i, mxfp4 ? 127 : 1.0 / 64);
    const std::string w = draft.SeededParameter("w.groups", Of(codes_type, {out, in}));
    const std::string s = draft.AddParameter("w.groups_scale", std::move(scales));
    if (lowered) {
      call.op = "int8.linear_groups";
      call.parameters = {{"weight", w}, {"weight_scale", s}};
    } else {
      call.operands.push_back(draft.AddFunction(mxfp4 ? "dequantize_mxfp4" : "dequantize_groups",
                                                {draft.AddGetAttr(w), draft.AddGetAttr(s)}));
    }
  }
  Node* y = draft.AddInRandomSpelling(call);
  if (y != nullptr) draft.set_magnitude(*y, magnitude * static_cast<double>(in + 1) * (in_groups ? 6 : 1));
  return y != nullptr;
}

// The codes of a dynamic quantize times codes of weights, less the zero point that was found. Of an exact value, as
// above.
bool IntegerProduct(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(2, 5);
  if (x == nullptr || !draft.is_exact(*x) || x->tensor_type().num_elements() == 0) return false;
  for (int64_t i = random.Between(0, 5 - x->tensor_type().rank()); i > 0; --i) {
    x = draft.AddFunction("unsqueeze", {x}, {{"dims", Ints{-1}}});
  }
  const Shape shape = x->tensor_type().shape;
  Node* tuple = draft.AddFunction("dynamic_quantize_asymmetric", {x});
  if (tuple == nullptr) return false;
  Node* codes = draft.AddFunction("getitem", {tuple}, {{"index", 0}});
  Node* zero_point = draft.AddFunction("getitem", {tuple}, {{"index", 2}});
  const int n = static_cast<int>(shape.size()) - 2;
  std::string op = "matmul_integer";
  Shape weight = {shape.back(), random.Between(1, 5)};
  if (n > 0 && !random.OneIn(4)) {
    op = absl::StrCat("conv_integer", n, "d");
    weight = {random.Between(1, 5), shape[1]};
    weight.insert(weight.end(), n, 1);
  }
  Node* w = draft.AddGetAttr(draft.SeededParameter("w.integers", Of(DType::kI8, weight)));
  return draft.AddFunction(op, {codes, w, zero_point}) != nullptr;
}

// An image's bytes, normalized along channels and quantized; or a table of the codes. Of an exact value, as above.
bool Bytes(Draft& draft) {
  Random& random = draft.random();
  Node* x = draft.PickToRoundOrNull(1, 4);
  if (x == nullptr || !draft.is_exact(*x) || x->tensor_type().num_elements() == 0) return false;
  Node* tuple = draft.AddFunction("dynamic_quantize_asymmetric", {x});
  if (tuple == nullptr) return false;
  Node* bytes = draft.AddFunction("getitem", {tuple}, {{"index", 0}});
  const int rank = x->tensor_type().rank();
  const int64_t all = rank > 1 ? x->tensor_type().shape[1] : 1, channels = all > 16 || random.OneIn(3) ? 1 : all;
  if (random.OneIn(2)) {
    RandomCall call{"int8.lookup", {bytes}, {}, {{"out_scale", 0.015625}, {"out_zero_point", 128}}};
    call.parameters["table"] = draft.SeededParameter("table", Of(DType::kU8, {channels, 256}));
    Node* codes = draft.AddInRandomSpelling(call);
    return codes != nullptr && Done(draft.AddInRandomSpelling({"int8.dequantize", {codes}, {}, {}}));
  }
  Shape along(std::max(1, rank - 1), 1);
  along[0] = channels;
  Tensor factors(Of(DType::kF32, along));
  for (int64_t c = 0; c < channels; ++c) factors.Set(c, static_cast<double>(1 + c % 3) / 256);
  Node* floats = draft.AddFunction("to", {bytes}, {{"dtype", DType::kF32}});
  Node* factor = draft.AddGetAttr(draft.AddParameter("factor", std::move(factors)));
  Node* y = draft.AddInRandomSpelling({"mul", {floats, factor}, {}, {}});
  if (y == nullptr) return false;
  draft.set_magnitude(*y, 2);
  return Dequantize(draft, Quantize(draft, y, PerTensorAttributes(draft, *y))) != nullptr;
}

}  // namespace

void Register(Recipes& recipes) {
  recipes.Add(Graphs::kQuantized, {{2, Pair},
                                   {1, QuantizeWithOperands},
                                   {4, QuantizedViews},
                                   {3, QuantizedLayer},
                                   {3, QuantizedElementwise},
                                   {5, Lowered},
                                   {11, LoweredPools},
                                   {2, QuantizedProduct},
                                   {2, QuantizedAttention},
                                   {3, QuantizedNorm},
                                   {3, DynamicQuantize},
                                   {3, RowScales},
                                   {3, IntegerProduct},
                                   {3, Bytes}});
}

}  // namespace fuselage::testing::recipes::quantized
