#include "frontend/onnx/writer/indexing.h"
#include "frontend/onnx/writer/operators.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/quantization.h"
#include "ir/base/recurrent.h"
#include "ir/base/status.h"

namespace fuselage::onnx::writer {
namespace {

using Ints = std::vector<int64_t>;

// --- Elementwise.

absl::Status WriteSame(const Call& c) {
  c.Emit(c.onnx, c.in);
  return absl::OkStatus();
}

// Relu takes integers from opset 14 on.
absl::Status WriteRelu(const Call& c) {
  if (!IsFloat(c.dtype())) c.to.Require(14);
  return WriteSame(c);
}

absl::Status Clip(const Call& c, const std::string& x, double min, double max) {
  // An absent bound bounds nothing.
  const auto bound = [&](const char* which, double value) {
    return std::isinf(value) ? std::string() : c.Number(which, value, c.dtype());
  };
  c.Emit("Clip", {x, bound("min", min), bound("max", max)});
  return absl::OkStatus();
}

// `emit` writes the value in front of the call's activation under the name that it is given.
template <typename F>
absl::Status BeforeActivation(const Call& c, F emit) {
  const Activation activation = c.activation();
  if (activation.is_none()) {
    emit(c.name);
    return absl::OkStatus();
  }
  if (!IsFloat(c.dtype())) c.to.Require(14);
  emit(c.Suffixed("sum"));
  if (!activation.is_relu()) return Clip(c, c.Suffixed("sum"), activation.min, activation.max);
  c.Emit("Relu", {c.Suffixed("sum")});
  return absl::OkStatus();
}

absl::Status WriteAdd(const Call& c) {
  const double alpha = c.op.GetFloat("alpha");
  std::string other = c.in[1];
  if (alpha != 1) {
    other = c.Suffixed("other");
    c.to.Emit("Mul", {c.in[1], c.Number("alpha", alpha, c.dtype())}, other);
  }
  return BeforeActivation(c, [&](const std::string& sum) { c.to.Emit("Add", {c.in[0], other}, sum); });
}

absl::Status WriteClamp(const Call& c) { return Clip(c, c.in[0], c.op.GetFloat("min"), c.op.GetFloat("max")); }
absl::Status WriteRelu6(const Call& c) { return Clip(c, c.in[0], 0, 6); }

absl::Status WriteLeakyRelu(const Call& c) {
  c.Emit("LeakyRelu", c.in).Float("alpha", static_cast<float>(c.op.GetFloat("negative_slope")));
  return absl::OkStatus();
}

void HardSigmoid(const Call& c, double alpha, double beta, const std::string& result) {
  c.to.Emit("HardSigmoid", {c.in[0]}, result)
      .Float("alpha", static_cast<float>(alpha))
      .Float("beta", static_cast<float>(beta));
}
absl::Status WriteHardSigmoid(const Call& c) {
  HardSigmoid(c, c.op.GetFloat("alpha"), c.op.GetFloat("beta"), c.name);
  return absl::OkStatus();
}

absl::Status WriteHardSwish(const Call& c) {
  HardSigmoid(c, 1.0 / 6, 0.5, c.Suffixed("gate"));
  c.Emit("Mul", {c.in[0], c.Suffixed("gate")});
  return absl::OkStatus();
}

absl::Status WriteSilu(const Call& c) {
  c.to.Emit("Sigmoid", c.in, c.Suffixed("gate"));
  c.Emit("Mul", {c.in[0], c.Suffixed("gate")});
  return absl::OkStatus();
}

absl::Status WriteGelu(const Call& c) {
  c.to.Require(20);
  c.Emit("Gelu", c.in).String("approximate", c.op.GetString("approximate"));
  return absl::OkStatus();
}

absl::Status WriteDropout(const Call& c) {
  if (c.op.GetBool("training")) return c.Declined(" in training");
  return WriteSame(c);
}

absl::Status WriteTo(const Call& c) {
  c.Emit("Cast", c.in).Int("to", ElementType(c.dtype()));
  return absl::OkStatus();
}

absl::Status WriteSoftmax(const Call& c) {
  c.Emit(c.onnx, c.in).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

// Elu, Celu, Selu
absl::Status WriteElu(const Call& c) {
  ModelBuilder& node = c.Emit(c.onnx, c.in).Float("alpha", static_cast<float>(c.op.GetFloat("alpha")));
  if (c.op.schema().FindAttributeOrNull("gamma") != nullptr) {
    node.Float("gamma", static_cast<float>(c.op.GetFloat("gamma")));
  }
  return absl::OkStatus();
}

absl::Status WriteThreshold(const Call& c) {
  if (c.op.GetFloat("value") != 0) return c.Declined(" with a value other than 0");
  c.Emit(c.onnx, c.in).Float("alpha", static_cast<float>(c.op.GetFloat("threshold")));
  return absl::OkStatus();
}

// Operators of opset 18.
absl::Status WriteSameOf18(const Call& c) {
  c.to.Require(18);
  return WriteSame(c);
}

absl::Status WriteNe(const Call& c) {
  c.to.Emit("Equal", c.in, c.Suffixed("equal"));
  c.Emit("Not", {c.Suffixed("equal")});
  return absl::OkStatus();
}

absl::Status WriteIsInf(const Call& c) {
  c.Emit(c.onnx, c.in)
      .Int("detect_negative", c.op.GetBool("detect_negative"))
      .Int("detect_positive", c.op.GetBool("detect_positive"));
  return absl::OkStatus();
}

absl::Status WriteMod(const Call& c) {
  const bool fmod = c.op.schema().name == "fmod";
  if (!fmod && IsFloat(c.dtype())) return c.Declined(" of floats");
  c.Emit(c.onnx, c.in).Int("fmod", fmod);
  return absl::OkStatus();
}

absl::Status WriteShift(const Call& c) {
  if (c.dtype() != DType::kU8) return c.Declined(" of signed integers");
  c.Emit(c.onnx, c.in).String("direction", c.op.schema().name == "bitwise_left_shift" ? "LEFT" : "RIGHT");
  return absl::OkStatus();
}

absl::Status WriteArgMax(const Call& c) {
  c.Emit(c.onnx, c.in)
      .Int("axis", c.op.GetInt("dim"))
      .Int("keepdims", c.op.GetBool("keepdim"))
      .Int("select_last_index", c.op.GetBool("select_last_index"));
  return absl::OkStatus();
}

absl::Status WriteCumSum(const Call& c) {
  c.Emit(c.onnx, {c.in[0], c.Number("axis", static_cast<double>(c.op.GetInt("dim")), DType::kI64)})
      .Int("exclusive", c.op.GetBool("exclusive"))
      .Int("reverse", c.op.GetBool("reverse"));
  return absl::OkStatus();
}

// --- Convolutions and products.

// The attributes that all windows share.
ModelBuilder& WithWindow(ModelBuilder& node, const Call& c) {
  const Shape& weight = c.type(1).shape;
  return node.Ints("kernel_shape", {weight.begin() + 2, weight.end()})
      .Ints("strides", c.op.GetInts("stride"))
      .Ints("pads", c.op.GetInts("padding"))
      .Ints("dilations", c.op.GetInts("dilation"))
      .Int("group", c.op.GetInt("groups"));
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

// --- Norms and pools.

std::string OrFilled(const Call& c, int i, const char* suffix, Shape shape, double value) {
  if (c.has(i)) return c.in[i];
  Tensor filled(c.dtype(), std::move(shape));
  for (int64_t k = 0; k < filled.num_elements(); ++k) filled.Set(k, value);
  return c.Constant(suffix, filled);
}

absl::Status WriteBatchNorm(const Call& c) {
  if (c.op.GetBool("training") || !c.has(3) || !c.has(4)) return c.Declined(" with the statistics of the batch");
  const Shape channels = {c.type(0).shape[1]};
  c.Emit("BatchNormalization",
         {c.in[0], OrFilled(c, 1, "weight", channels, 1), OrFilled(c, 2, "bias", channels, 0), c.in[3], c.in[4]})
      .Float("epsilon", static_cast<float>(c.op.GetFloat("eps")));
  return absl::OkStatus();
}

absl::Status WriteTrailingNorm(const Call& c) {
  const Shape& shape = c.op.GetInts("normalized_shape");
  c.to.Require(c.op.schema().name == "rms_norm" ? 23 : 17);
  c.Emit(c.onnx, {c.in[0], OrFilled(c, 1, "weight", shape, 1), c.has(2) ? c.in[2] : ""})
      .Int("axis", -static_cast<int64_t>(shape.size()))
      .Float("epsilon", static_cast<float>(c.op.GetFloat("eps")));
  return absl::OkStatus();
}

absl::Status WriteChannelNorm(const Call& c) {
  const Shape channels = {c.type(0).shape[1]};
  const bool grouped = c.op.schema().FindAttributeOrNull("num_groups") != nullptr;
  if (grouped) c.to.Require(21);
  if (c.type(0).rank() < 3) return c.Declined(absl::StrCat(" of rank ", c.type(0).rank()));
  ModelBuilder& node =
      c.Emit(c.onnx, {c.in[0], OrFilled(c, 1, "weight", channels, 1), OrFilled(c, 2, "bias", channels, 0)})
          .Float("epsilon", static_cast<float>(c.op.GetFloat("eps")));
  if (grouped) node.Int("num_groups", c.op.GetInt("num_groups"));
  return absl::OkStatus();
}

absl::Status WritePool(const Call& c) {
  const bool max = std::string(c.onnx) == "MaxPool";
  const bool codes = c.dtype() == DType::kU8 || c.dtype() == DType::kI8;
  if (!IsFloat(c.dtype()) && !codes) return c.Declined(absl::StrCat(" of ", DTypeName(c.dtype())));
  ModelBuilder& node = c.Emit(c.onnx, c.in)
                           .Ints("kernel_shape", c.op.GetInts("kernel_size"))
                           .Ints("strides", c.op.GetInts("stride"))
                           .Ints("pads", c.op.GetInts("padding"))
                           .Int("ceil_mode", c.op.GetBool("ceil_mode"));
  if (max) {
    node.Ints("dilations", c.op.GetInts("dilation"));
  } else {
    node.Int("count_include_pad", c.op.GetBool("count_include_pad"));
  }
  return absl::OkStatus();
}

// Equal windows side by side, where the sizes divide.
absl::Status WriteAdaptivePool(const Call& c) {
  const Shape &from = c.type(0).shape, &to = c.result.tensor().shape;
  Ints kernel;
  for (size_t axis = 2; axis < to.size(); ++axis) {
    if (to[axis] == 0 || from[axis] % to[axis] != 0) {
      return c.Declined(absl::StrCat(" from ", ToString(from), " to ", ToString(to)));
    }
    kernel.push_back(from[axis] / to[axis]);
  }
  if (std::all_of(to.begin() + 2, to.end(), [](int64_t size) { return size == 1; })) {
    c.Emit("GlobalAveragePool", c.in);
  } else {
    c.Emit("AveragePool", c.in).Ints("kernel_shape", kernel).Ints("strides", kernel);
  }
  return absl::OkStatus();
}

// Axes are an attribute before opset 18 (13 for sums), an input from then on.
absl::Status WriteReduce(const Call& c) {
  Ints axes = c.op.GetInts("dims");
  if (axes.empty()) {
    axes.resize(c.type(0).rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const bool input = c.to.opset() >= (c.op.schema().name == "sum" ? 13 : 18);
  ModelBuilder& node = c.Emit(c.onnx, {c.in[0], input ? c.Ints("axes", axes) : ""});
  if (!input) node.Ints("axes", axes);
  node.Int("keepdims", c.op.GetBool("keepdim"));
  return absl::OkStatus();
}

// --- Views and moves.

// A 0 copies the input's dimension, unless zeros mean themselves.
absl::Status Reshape(const Call& c, const Shape& shape, bool allow_zero) {
  const bool zeros = allow_zero && std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (zeros) c.to.Require(14);
  ModelBuilder& node = c.Emit("Reshape", {c.in[0], c.Ints("shape", shape)});
  if (zeros) node.Int("allowzero", 1);
  return absl::OkStatus();
}
absl::Status WriteReshape(const Call& c) { return Reshape(c, c.op.GetInts("shape"), c.op.GetBool("allow_zero")); }

absl::Status WriteFlatten(const Call& c) {
  const int rank = c.type(0).rank();
  if (rank == 0) return Reshape(c, {1}, false);
  const auto axis = [&](const char* name) { return *NormalizeAxis(c.op.GetInt(name), rank); };
  const int start = axis("start_dim"), end = axis("end_dim");
  if (start == 1 && end == rank - 1) {
    c.Emit("Flatten", c.in).Int("axis", 1);
    return absl::OkStatus();
  }
  if (c.type(0).num_elements() == 0) return Reshape(c, c.result.tensor().shape, true);
  Shape shape(start, 0);
  shape.push_back(-1);
  shape.insert(shape.end(), c.type(0).shape.begin() + end + 1, c.type(0).shape.end());
  return Reshape(c, shape, false);
}

absl::Status WriteSqueeze(const Call& c) {
  Ints axes = c.op.GetInts("dims");
  for (int axis = 0; c.op.GetInts("dims").empty() && axis < c.type(0).rank(); ++axis) {
    if (c.type(0).shape[axis] == 1) axes.push_back(axis);
  }
  if (axes.empty()) {
    c.Emit("Identity", c.in);
  } else {
    c.Emit("Squeeze", {c.in[0], c.Ints("axes", axes)});
  }
  return absl::OkStatus();
}

absl::Status WriteUnsqueeze(const Call& c) {
  c.Emit("Unsqueeze", {c.in[0], c.Ints("axes", c.op.GetInts("dims"))});
  return absl::OkStatus();
}

absl::Status WriteExpand(const Call& c) {
  Shape shape = c.op.GetInts("shape");
  std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});  // Which broadcasts to what there is.
  c.Emit("Expand", {c.in[0], c.Ints("shape", shape)});
  return absl::OkStatus();
}

absl::Status WritePermute(const Call& c) {
  Ints dims = c.op.GetInts("dims");
  for (int64_t& dim : dims) dim = *NormalizeAxis(dim, c.type(0).rank());
  c.Emit("Transpose", c.in).Ints("perm", dims);
  return absl::OkStatus();
}

absl::Status WriteTranspose(const Call& c) {
  Ints dims(c.type(0).rank());
  std::iota(dims.begin(), dims.end(), 0);
  const int rank = c.type(0).rank();
  std::swap(dims[*NormalizeAxis(c.op.GetInt("dim0"), rank)], dims[*NormalizeAxis(c.op.GetInt("dim1"), rank)]);
  c.Emit("Transpose", c.in).Ints("perm", dims);
  return absl::OkStatus();
}

absl::Status WriteCat(const Call& c) {
  c.Emit("Concat", c.in).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

absl::Status WriteSlice(const Call& c) {
  const auto list = [&](const char* name, bool present) {
    return present ? c.Ints(name, c.op.GetInts(name)) : std::string();
  };
  c.Emit("Slice", {c.in[0], list("starts", true), list("ends", true), list("axes", !c.op.GetInts("axes").empty()),
                   list("steps", !c.op.GetInts("steps").empty())});
  return absl::OkStatus();
}

absl::Status WriteSplit(const Call& c) {
  Values parts;
  for (size_t i = 0; i < c.result.elements().size(); ++i) parts.push_back(c.Element(i));
  c.to.Emit("Split", {c.in[0], c.Ints("sizes", c.op.GetInts("sizes"))}, parts).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

absl::Status WriteGetItem(const Call& c) {
  const int64_t index = c.op.GetInt("index"), size = static_cast<int64_t>(c.types[0]->elements().size());
  c.Emit("Identity", {absl::StrCat(c.in[0], ":", index < 0 ? index + size : index)});
  return absl::OkStatus();
}

absl::Status WritePad(const Call& c) {
  const std::string& mode = c.op.GetString("mode");
  if (mode == "wrap") c.to.Require(19);
  const double value = c.op.GetFloat("value");
  c.Emit("Pad", {c.in[0], c.Ints("pads", c.op.GetInts("pads")), value == 0 ? "" : c.Number("value", value, c.dtype())})
      .String("mode", mode);
  return absl::OkStatus();
}

absl::Status WriteDynamicQuantize(const Call& c) {
  if (!c.op.GetInts("dims").empty()) return c.Declined(" along axes");
  c.to.Emit("DynamicQuantizeLinear", c.in, {c.Element(0), c.Element(1), c.Element(2)});
  return absl::OkStatus();
}

// --- The table.

// `onnx`: the operator; where there is none to write, why.
struct Row {
  const char* op;  // Of several ranks: without its "1d", "2d", "3d".
  absl::Status (*write)(const Call&);
  const char* onnx;
};
constexpr Row kRows[] = {
    {"abs", WriteSame, "Abs"},
    {"acos", WriteSame, "Acos"},
    {"acosh", WriteSame, "Acosh"},
    {"adaptive_avg_pool", WriteAdaptivePool, "AveragePool"},
    {"add", WriteAdd, "Add"},
    {"addmm", WriteAddmm, "Gemm"},
    {"amax", WriteReduce, "ReduceMax"},
    {"amin", WriteReduce, "ReduceMin"},
    {"argmax", WriteArgMax, "ArgMax"},
    {"argmin", WriteArgMax, "ArgMin"},
    {"asin", WriteSame, "Asin"},
    {"asinh", WriteSame, "Asinh"},
    {"atan", WriteSame, "Atan"},
    {"atanh", WriteSame, "Atanh"},
    {"avg_pool", WritePool, "AveragePool"},
    {"batch_norm", WriteBatchNorm, "BatchNormalization"},
    {"bitwise_and", WriteSameOf18, "BitwiseAnd"},
    {"bitwise_left_shift", WriteShift, "BitShift"},
    {"bitwise_not", WriteSameOf18, "BitwiseNot"},
    {"bitwise_or", WriteSameOf18, "BitwiseOr"},
    {"bitwise_right_shift", WriteShift, "BitShift"},
    {"bitwise_xor", WriteSameOf18, "BitwiseXor"},
    {"cat", WriteCat, "Concat"},
    {"ceil", WriteSame, "Ceil"},
    {"celu", WriteElu, "Celu"},
    {"clamp", WriteClamp, "Clip"},
    {"conv", WriteConv, "Conv"},
    {"conv_integer", WriteConvInteger, "ConvInteger"},
    {"conv_transpose", WriteConvTranspose, "ConvTranspose"},
    {"cos", WriteSame, "Cos"},
    {"cosh", WriteSame, "Cosh"},
    {"cumsum", WriteCumSum, "CumSum"},
    {"dequantize", WriteQuantization, "DequantizeLinear"},
    {"dequantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
    {"div", WriteSame, "Div"},
    {"dropout", WriteDropout, "Identity"},
    {"dynamic_quantize_asymmetric", WriteDynamicQuantize, "DynamicQuantizeLinear"},
    {"dynamic_quantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
    {"dynamic_quantize_symmetric", nullptr, "ONNX's dynamic quantization has a zero point"},
    {"elu", WriteElu, "Elu"},
    {"eq", WriteSame, "Equal"},
    {"erf", WriteSame, "Erf"},
    {"exp", WriteSame, "Exp"},
    {"expand", WriteExpand, "Expand"},
    {"flatten", WriteFlatten, "Flatten"},
    {"floor", WriteSame, "Floor"},
    {"fmod", WriteMod, "Mod"},
    {"gather", WriteAlongDim, "GatherElements"},
    {"gather_nd", WriteGatherNd, "GatherND"},
    {"ge", WriteSame, "GreaterOrEqual"},
    {"gelu", WriteGelu, "Gelu"},
    {"gemm", WriteGemm, "Gemm"},
    {"getitem", WriteGetItem, "Identity"},
    {"global_avg_pool", WriteSame, "GlobalAveragePool"},
    {"group_norm", WriteChannelNorm, "GroupNormalization"},
    {"gt", WriteSame, "Greater"},
    {"hardmax", WriteSoftmax, "Hardmax"},
    {"gru", WriteRecurrent, "GRU"},
    {"hardsigmoid", WriteHardSigmoid, "HardSigmoid"},
    {"hardswish", WriteHardSwish, "HardSigmoid"},
    {"identity", WriteSame, "Identity"},
    {"index_select", WriteAlongDim, "Gather"},
    {"instance_norm", WriteChannelNorm, "InstanceNormalization"},
    {"isinf", WriteIsInf, "IsInf"},
    {"isnan", WriteSame, "IsNaN"},
    {"layer_norm", WriteTrailingNorm, "LayerNormalization"},
    {"le", WriteSame, "LessOrEqual"},
    {"leaky_relu", WriteLeakyRelu, "LeakyRelu"},
    {"linear", WriteLinear, "Gemm"},
    {"log", WriteSame, "Log"},
    {"log_softmax", WriteSoftmax, "LogSoftmax"},
    {"logical_and", WriteSame, "And"},
    {"logical_not", WriteSame, "Not"},
    {"logical_or", WriteSame, "Or"},
    {"logical_xor", WriteSame, "Xor"},
    {"logsumexp", WriteReduce, "ReduceLogSumExp"},
    {"lt", WriteSame, "Less"},
    {"lstm", WriteRecurrent, "LSTM"},
    {"matmul", WriteSame, "MatMul"},
    {"matmul_integer", WriteMatmulInteger, "MatMulInteger"},
    {"max_pool", WritePool, "MaxPool"},
    {"maximum", WriteSame, "Max"},
    {"mean", WriteReduce, "ReduceMean"},
    {"minimum", WriteSame, "Min"},
    {"mish", WriteSameOf18, "Mish"},
    {"mul", WriteSame, "Mul"},
    {"ne", WriteNe, "Equal"},
    {"neg", WriteSame, "Neg"},
    {"one_hot", WriteOneHot, "OneHot"},
    {"pad", WritePad, "Pad"},
    {"permute", WritePermute, "Transpose"},
    {"pow", WriteSame, "Pow"},
    {"prelu", WriteSame, "PRelu"},
    {"prod", WriteReduce, "ReduceProd"},
    {"quantize", WriteQuantization, "QuantizeLinear"},
    {"reciprocal", WriteSame, "Reciprocal"},
    {"relu", WriteRelu, "Relu"},
    {"relu6", WriteRelu6, "Clip"},
    {"remainder", WriteMod, "Mod"},
    {"reshape", WriteReshape, "Reshape"},
    {"resize", WriteResize, "Resize"},
    {"reverse_sequence", WriteReverseSequence, "ReverseSequence"},
    {"rms_norm", WriteTrailingNorm, "RMSNormalization"},
    {"round", WriteSame, "Round"},
    {"scatter", WriteScatter, "ScatterElements"},
    {"scatter_nd", WriteScatter, "ScatterND"},
    {"selu", WriteElu, "Selu"},
    {"rnn", WriteRecurrent, "RNN"},
    {"sigmoid", WriteSame, "Sigmoid"},
    {"sign", WriteSame, "Sign"},
    {"silu", WriteSilu, "Sigmoid"},
    {"sin", WriteSame, "Sin"},
    {"sinh", WriteSame, "Sinh"},
    {"slice", WriteSlice, "Slice"},
    {"softmax", WriteSoftmax, "Softmax"},
    {"softplus", WriteSame, "Softplus"},
    {"softsign", WriteSame, "Softsign"},
    {"split", WriteSplit, "Split"},
    {"sqrt", WriteSame, "Sqrt"},
    {"squeeze", WriteSqueeze, "Squeeze"},
    {"sub", WriteSame, "Sub"},
    {"sum", WriteReduce, "ReduceSum"},
    {"tan", WriteSame, "Tan"},
    {"tanh", WriteSame, "Tanh"},
    {"threshold", WriteThreshold, "ThresholdedRelu"},
    {"to", WriteTo, "Cast"},
    {"topk", WriteTopk, "TopK"},
    {"transpose", WriteTranspose, "Transpose"},
    {"tril", WriteTriangle, "Trilu"},
    {"triu", WriteTriangle, "Trilu"},
    {"unsqueeze", WriteUnsqueeze, "Unsqueeze"},
    {"where", WriteSame, "Where"},
};

constexpr Row kLowered = {"int8.", nullptr, "a lowered graph is written before it is lowered"};
// The steps are written, each by its own row (see Writer).
constexpr Row kFused = {"fused_elementwise", nullptr, ""};

const Row* FindRowOrNull(absl::string_view op) {
  if (op.substr(0, 5) == kLowered.op) return &kLowered;
  if (op == kFused.op) return &kFused;
  const auto find = [](absl::string_view name) {
    const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == name; });
    return row == std::end(kRows) ? nullptr : row;
  };
  const Row* row = find(op);
  if (row != nullptr || op.size() < 3) return row;
  const absl::string_view rank = op.substr(op.size() - 2);
  return rank == "1d" || rank == "2d" || rank == "3d" ? find(op.substr(0, op.size() - 2)) : nullptr;
}

}  // namespace

ModelBuilder& Emitter::Emit(const std::string& op, Values in, Values results) {
  while (!in.empty() && in.back().empty()) in.pop_back();
  const std::string name = results[0];
  return model_.Node(op, std::move(in), std::move(results), name);
}

std::string Call::Suffixed(absl::string_view suffix) const { return absl::StrCat(name, ":", suffix); }
std::string Call::Element(int64_t i) const { return absl::StrCat(name, ":", i); }

std::string Call::Constant(absl::string_view suffix, const Tensor& tensor) const {
  to.model().Initializer(Suffixed(suffix), tensor);
  return Suffixed(suffix);
}
std::string Call::Ints(absl::string_view suffix, const std::vector<int64_t>& values) const {
  return Constant(suffix, Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
std::string Call::Number(absl::string_view suffix, double value, DType dtype) const {
  Tensor number(dtype, {});
  number.Set(0, value);
  return Constant(suffix, number);
}

absl::Status Call::Declined(absl::string_view why) const {
  return absl::UnimplementedError(absl::StrCat(op.schema().name, why, " has no operator in ONNX"));
}

absl::Status WriteOperator(const ir::OpCall& op, Values in, std::vector<const ir::Type*> types, const ir::Type& result,
                           const std::string& name, Emitter& to) {
  const Row* row = FindRowOrNull(op.schema().name);
  if (row == nullptr) return absl::UnimplementedError(absl::StrCat(op.schema().name, " has no operator in ONNX"));
  if (row->write == nullptr) {
    return absl::UnimplementedError(absl::StrCat(op.schema().name, " has no operator in ONNX: ", row->onnx));
  }
  return row->write({op, row->onnx, name, std::move(in), std::move(types), result, to});
}

const char* WhyNotOrNull(absl::string_view op) {
  const Row* row = FindRowOrNull(op);
  return row == nullptr ? nullptr : row->write == nullptr ? row->onnx : "";
}

}  // namespace fuselage::onnx::writer
