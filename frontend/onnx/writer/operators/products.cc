// Convolutions, products of matrices and recurrent layers.
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/activation.h"
#include "frontend/onnx/writer/operators.h"
#include "ir/base/recurrent.h"
#include "ir/base/status.h"

namespace fuselage::onnx::writer::operators::products {
namespace {

// The attributes that all windows share.
ModelBuilder& WithWindow(ModelBuilder& node, const Call& c) {
  const Shape& weight = c.type(1).shape;
  return node.Ints("kernel_shape", {weight.begin() + 2, weight.end()})
      .Ints("strides", c.op.GetInts("stride"))
      .Ints("pads", c.op.GetInts("padding"))
      .Ints("dilations", c.op.GetInts("dilation"))
      .Int("group", c.op.GetInt("groups"));
}

// A zero point that broadcasts to codes as one value or, where `axis` >= 0, as one for each index of that axis: as a
// scalar or a list.
absl::StatusOr<std::string> ZeroPoint(const Call& c, int i, int codes, int axis) {
  if (!c.has(i)) return std::string();
  const Shape &shape = c.type(i).shape, &full = c.type(codes).shape;
  const int64_t elements = c.type(i).num_elements();
  Shape along;
  if (axis >= 0) {
    along.assign(full.size() - axis, 1);
    along[0] = full[axis];
  }
  if (elements != 1 && shape != along) return c.Declined(absl::StrCat(" with zero points of shape ", ToString(shape)));
  const Shape list = elements == 1 ? Shape{} : Shape{elements};
  if (shape == list) return c.in[i];
  const std::string name = c.Suffixed(absl::StrCat("zero_point", i));
  c.to.Emit("Reshape", {c.in[i], c.Ints(absl::StrCat("zero_point", i, ":shape"), list)}, name);
  return name;
}

absl::Status WriteConv(const Call& c) {
  if (!IsFloat(c.dtype())) return c.Declined(" of integers");
  return BeforeActivation(c, [&](const std::string& sum) {
    const std::string product = c.has(3) ? c.Suffixed("conv") : sum;
    WithWindow(c.to.Emit("Conv", {c.in[0], c.in[1], c.has(2) ? c.in[2] : ""}, product), c);
    if (c.has(3)) c.to.Emit("Add", {product, c.in[3]}, sum);
  });
}

absl::Status WriteConvTranspose(const Call& c) {
  WithWindow(c.Emit("ConvTranspose", c.in), c).Ints("output_padding", c.op.GetInts("output_padding"));
  return absl::OkStatus();
}

absl::Status WriteConvInteger(const Call& c) {
  ASSIGN_OR_RETURN(const std::string x, ZeroPoint(c, 2, 0, -1));
  ASSIGN_OR_RETURN(const std::string w, ZeroPoint(c, 3, 1, 0));
  WithWindow(c.Emit("ConvInteger", {c.in[0], c.in[1], x, w}), c);
  return absl::OkStatus();
}

// Zero points by row of a stay a column.
absl::Status WriteMatmulInteger(const Call& c) {
  std::string a;
  if (c.has(2) && c.type(2).rank() > 1 && c.type(2).shape.back() == 1) {
    a = c.in[2];
  } else {
    ASSIGN_OR_RETURN(a, ZeroPoint(c, 2, 0, -1));
  }
  ASSIGN_OR_RETURN(const std::string b, ZeroPoint(c, 3, 1, c.type(1).rank() - 1));
  c.Emit("MatMulInteger", {c.in[0], c.in[1], a, b});
  return absl::OkStatus();
}

absl::Status WriteLinear(const Call& c) {
  const bool bias = c.has(2);
  return BeforeActivation(c, [&](const std::string& sum) {
    if (c.type(0).rank() == 2) {
      c.to.Emit("Gemm", c.in, sum).Int("transB", 1);
      return;
    }
    const std::string weight = c.Suffixed("weight"), product = bias ? c.Suffixed("matmul") : sum;
    c.to.Emit("Transpose", {c.in[1]}, weight).Ints("perm", {1, 0});
    c.to.Emit("MatMul", {c.in[0], weight}, product);
    if (bias) c.to.Emit("Add", {product, c.in[2]}, sum);
  });
}

absl::Status WriteGemm(const Call& c) {
  return BeforeActivation(c, [&](const std::string& sum) {
    c.to.Emit("Gemm", c.in, sum)
        .Float("alpha", static_cast<float>(c.op.GetFloat("alpha")))
        .Float("beta", static_cast<float>(c.op.GetFloat("beta")))
        .Int("transA", c.op.GetBool("trans_a"))
        .Int("transB", c.op.GetBool("trans_b"));
  });
}

// The input is not looked at where beta is 0.
absl::Status WriteAddmm(const Call& c) {
  const double beta = c.op.GetFloat("beta");
  c.Emit("Gemm", {c.in[1], c.in[2], beta == 0 ? "" : c.in[0]})
      .Float("alpha", static_cast<float>(c.op.GetFloat("alpha")))
      .Float("beta", static_cast<float>(beta));
  return absl::OkStatus();
}

// ONNX lists alpha and beta of the activations that take one.
absl::Status WriteRecurrent(const Call& c) {
  Values results;
  for (size_t i = 0; i < c.result.elements().size(); ++i) results.push_back(c.Element(i));
  const std::string& direction = c.op.GetString("direction");
  ModelBuilder& node =
      c.to.Emit(c.onnx, c.in, results).String("direction", direction).Int("hidden_size", c.type(2).shape[2]);
  ASSIGN_OR_RETURN(const auto activations,
                   recurrent::ReadActivations(c.op.schema().name, direction == "bidirectional" ? 2 : 1,
                                              c.op.attribute("activations").as_strings(), c.op.GetFloats("alpha"),
                                              c.op.GetFloats("beta")));
  Values names;
  std::vector<float> alpha, beta;
  for (const recurrent::ActivationCall& call : activations) {
    names.push_back(recurrent::OnnxName(call.activation));
    if (recurrent::DefaultAlpha(call.activation)) alpha.push_back(static_cast<float>(call.alpha));
    if (recurrent::DefaultBeta(call.activation)) beta.push_back(static_cast<float>(call.beta));
  }
  node.Strings("activations", names);
  if (!alpha.empty()) node.Floats("activation_alpha", alpha);
  if (!beta.empty()) node.Floats("activation_beta", beta);
  if (c.op.GetFloat("clip") > 0) node.Float("clip", static_cast<float>(c.op.GetFloat("clip")));
  for (const char* flag : {"linear_before_reset", "input_forget"}) {
    if (c.op.schema().FindAttributeOrNull(flag) != nullptr) node.Int(flag, c.op.GetBool(flag));
  }
  return absl::OkStatus();
}

// Chains of operators, each with the name of the call and its own suffix.
class Steps {
 public:
  explicit Steps(const Call& c) : c_(c) {}

  std::string Of(const char* op, const char* suffix, Values in) const {
    const std::string name = c_.Suffixed(suffix);
    c_.to.Emit(op, std::move(in), name);
    return name;
  }
  std::string WithNumber(const char* op, const char* suffix, const std::string& x, double number) const {
    return Of(op, suffix, {x, c_.Number(absl::StrCat(suffix, ":number"), number, c_.dtype())});
  }
  // x as heads of `rows` rows of `size` elements.
  std::string Regrouped(const char* suffix, const std::string& x, int64_t heads, int64_t rows, int64_t size) const {
    Shape shape = c_.type(0).shape;
    if (shape.size() == 2 || shape[shape.size() - 3] == c_.type(1).shape[shape.size() - 3]) return x;
    shape[shape.size() - 3] = heads;
    shape[shape.size() - 2] = rows;
    shape.back() = size;
    return Of("Reshape", suffix, {x, c_.Ints(absl::StrCat(suffix, ":shape"), shape)});
  }

 private:
  const Call& c_;
};

// Where query i may look at key j <= i, and where the mask of bools lets it; "" where all is allowed.
std::string Allowed(const Call& c, const Steps& steps, int64_t queries, int64_t keys) {
  const std::string mask = c.has(3) && c.type(3).dtype == DType::kBool ? c.in[3] : "";
  if (!c.op.GetBool("is_causal")) return mask;
  Tensor causal(DType::kBool, {queries, keys});
  for (int64_t i = 0; i < causal.num_elements(); ++i) causal.Set(i, i % keys <= i / keys);
  const std::string constant = c.Constant("causal", causal);
  return mask.empty() ? constant : steps.Of("And", "allowed", {mask, constant});
}

// One operator from opset 23 on; before that, and where there is no axis of batches, the products and the softmax.
absl::Status WriteAttention(const Call& c) {
  const double scale = c.op.GetFloat("scale"), cap = c.op.GetFloat("softcap");
  const Shape &q = c.type(0).shape, &v = c.type(2).shape;
  if (c.to.opset() >= 23 && q.size() == 4) {
    c.Emit(c.onnx, c.in)
        .Float("scale", static_cast<float>(scale))
        .Float("softcap", static_cast<float>(cap))
        .Int("is_causal", c.op.GetBool("is_causal"));
    return absl::OkStatus();
  }
  const Steps steps(c);
  const int64_t rank = static_cast<int64_t>(q.size()), queries = q[rank - 2], keys = v[rank - 2];
  const int64_t heads = rank == 2 ? 1 : q[rank - 3], key_heads = rank == 2 ? 1 : v[rank - 3];
  const int64_t rows = key_heads == 0 ? 0 : heads / key_heads * queries;  // Of all heads that one of keys serves.
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[rank - 1], axes[rank - 2]);
  const std::string keys_across = c.Suffixed("keys");
  c.to.Emit("Transpose", {c.in[1]}, keys_across).Ints("perm", axes);
  std::string x = steps.Regrouped("queries", c.in[0], key_heads, rows, q[rank - 1]);
  x = steps.Of("MatMul", "products", {x, keys_across});
  x = steps.WithNumber("Mul", "scaled", steps.Regrouped("by_head", x, heads, queries, keys), scale);
  if (cap != 0) {
    x = steps.Of("Tanh", "tanh", {steps.WithNumber("Div", "share", x, cap)});
    x = steps.WithNumber("Mul", "capped", x, cap);
  }
  if (c.has(3) && c.type(3).dtype != DType::kBool) x = steps.Of("Add", "biased", {x, c.in[3]});
  const std::string allowed = Allowed(c, steps, queries, keys);
  if (!allowed.empty()) {  // Finite: a difference of two is no NaN.
    const double lowest = c.dtype() == DType::kF16 ? -65504.0 : -std::numeric_limits<float>::max();
    x = steps.Of("Where", "masked", {allowed, x, c.Number("lowest", lowest, c.dtype())});
  }
  const std::string weights = c.Suffixed("weights");
  c.to.Emit("Softmax", {x}, weights).Int("axis", -1);
  x = weights;
  if (!allowed.empty()) x = steps.Of("Where", "allowed_weights", {allowed, x, c.Number("none", 0, c.dtype())});
  x = steps.Regrouped("by_key_head", x, key_heads, rows, keys);
  if (heads == key_heads) {
    c.Emit("MatMul", {x, c.in[2]});
  } else {
    c.Emit("Reshape", {steps.Of("MatMul", "mixed", {x, c.in[2]}), c.Ints("shape", c.result.tensor().shape)});
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"addmm", WriteAddmm, "Gemm"},
      {"conv", WriteConv, "Conv"},
      {"conv_integer", WriteConvInteger, "ConvInteger"},
      {"conv_transpose", WriteConvTranspose, "ConvTranspose"},
      {"gemm", WriteGemm, "Gemm"},
      {"gru", WriteRecurrent, "GRU"},
      {"linear", WriteLinear, "Gemm"},
      {"lstm", WriteRecurrent, "LSTM"},
      {"matmul", WriteSame, "MatMul"},
      {"matmul_integer", WriteMatmulInteger, "MatMulInteger"},
      {"scaled_dot_product_attention", WriteAttention, "Attention"},
      {"rnn", WriteRecurrent, "RNN"},
  });
}

}  // namespace fuselage::onnx::writer::operators::products
