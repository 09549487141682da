#include "frontend/onnx/writer/writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/model_builder.h"
#include "ir/base/elementwise.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"

namespace fuselage::onnx::writer {
namespace {

constexpr int kOpset = 13;

using Values = std::vector<std::string>;  // By their names.

struct Operator {
  const char* op;
  const char* onnx;
};
// Calls whose operands and meaning are ONNX's, without attributes.
constexpr Operator kSame[] = {{"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"},     {"sub", "Sub"},
                              {"mul", "Mul"},   {"div", "Div"},         {"matmul", "MatMul"}, {"identity", "Identity"}};

bool HasRelu(const ir::Node& node) { return node.attribute("activation").as_string() == "relu"; }

absl::Status Declined(absl::string_view op, absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat(op, why, " has no operator in ONNX opset ", kOpset));
}

// What a quantize or dequantize call has as constants, in its attributes or in the type of its codes.
std::optional<QuantParams> ConstantParams(const ir::Node& node) {
  if (node.num_operands() > 1) return std::nullopt;
  if (node.IsOp("quantize")) return node.tensor_type().quant;
  QuantParams params;
  for (double scale : node.attribute("scales").as_floats()) params.scales.push_back(static_cast<float>(scale));
  if (params.scales.empty()) return node.operand(0)->tensor_type().quant;
  const std::vector<int64_t>& zero_points = node.attribute("zero_points").as_ints();
  params.zero_points.assign(zero_points.begin(), zero_points.end());
  params.zero_points.resize(params.scales.size(), 0);
  params.axis = static_cast<int>(node.attribute("axis").as_int());
  return params;
}

class Writer {
 public:
  Writer(const ir::Graph& graph, const WriteOptions& options) : graph_(graph), options_(options), model_(kOpset) {}

  absl::StatusOr<std::string> Run() {
    model_.graph().set_name(graph_.name());
    model_.proto().set_producer_name("fuselage");
    for (const ir::Node* node = graph_.first(); node != nullptr; node = node->next()) {
      RETURN_IF_ERROR(Annotate(WriteNode(*node), absl::StrCat("%", node->name())));
    }
    RenameInterface();
    return model_.Bytes();
  }

 private:
  absl::Status WriteNode(const ir::Node& node);
  absl::Status WriteCall(const ir::Node& node);
  void WriteOutputs(const ir::Node& node);
  void RenameInterface();

  void WriteConv(const ir::Node& node, const Values& in);
  absl::Status WriteLinear(const ir::Node& node, const Values& in);
  // Alone, or as a step of fused_elementwise.
  absl::Status WriteElementwise(const ir::OpCall& call, const Values& in, const std::string& name);
  absl::Status WriteSteps(const ir::Node& node, const Values& in);
  absl::Status WriteBatchNorm(const ir::Node& node, const Values& in);
  void WritePool(const ir::Node& node, const std::string& op, const Values& in);
  absl::Status WriteGlobalPool(const ir::Node& node, const Values& in);
  absl::Status WriteFlatten(const ir::Node& node, const Values& in);
  absl::Status WriteCodes(const ir::Node& node, const std::string& op, Values in);

  // The operands in the schema's order, "" where one is absent.
  Values Operands(const ir::Node& node);
  // A parameter as stored, and its real values where it is quantized.
  std::string Stored(const ir::Parameter& parameter);
  std::string Real(const ir::Parameter& parameter);
  // The bias of a layer of codes as int32 codes; empty where it stays as it is.
  std::string IntegerBias(const ir::Node& node);
  // An ONNX node with the name of its result; absent operands at the end are dropped.
  ModelBuilder& Emit(const std::string& op, Values in, const std::string& result);
  void Dequantize(const std::string& codes, const QuantParams& params, DType dtype, const std::string& result);
  // Initializers for scale and zero point.
  Values Params(const std::string& name, const QuantParams& params, DType dtype);
  std::vector<Dim> Dims(const TensorType& type) const;

  const ir::Graph& graph_;
  const WriteOptions& options_;
  ModelBuilder model_;
  HashMap<std::string, std::string> stored_, real_;  // By parameter.
};

std::vector<Dim> Writer::Dims(const TensorType& type) const {
  std::vector<Dim> dims(type.shape.begin(), type.shape.end());
  if (!options_.batch.empty() && !dims.empty()) dims[0] = Dim(options_.batch.c_str());
  return dims;
}

ModelBuilder& Writer::Emit(const std::string& op, Values in, const std::string& result) {
  while (!in.empty() && in.back().empty()) in.pop_back();
  return model_.Node(op, std::move(in), {result}, result);
}

std::string Writer::Stored(const ir::Parameter& parameter) {
  std::string& name = stored_[parameter.name];
  if (name.empty()) {
    // A name with ':' is in no graph.
    name = graph_.FindNodeOrNull(parameter.name) == nullptr ? parameter.name : parameter.name + ":parameter";
    model_.Initializer(name, *parameter.tensor);
  }
  return name;
}

std::string Writer::Real(const ir::Parameter& parameter) {
  std::string& name = real_[parameter.name];
  if (name.empty()) {
    name = Stored(parameter);
    const TensorType& type = parameter.type.tensor();
    if (type.quant.has_value()) {
      Dequantize(name, *type.quant, type.dtype, name + ":real");
      name += ":real";
    }
  }
  return name;
}

Values Writer::Params(const std::string& name, const QuantParams& params, DType dtype) {
  const Shape shape = params.per_tensor() ? Shape{} : Shape{static_cast<int64_t>(params.scales.size())};
  Tensor zero_points(dtype, shape);
  for (int64_t i = 0; i < zero_points.num_elements(); ++i) zero_points.Set(i, params.zero_points[i]);
  model_.Initializer(name + ":scale", Tensor::Of<float>(shape, params.scales));
  model_.Initializer(name + ":zero_point", zero_points);
  return {name + ":scale", name + ":zero_point"};
}

void Writer::Dequantize(const std::string& codes, const QuantParams& params, DType dtype, const std::string& result) {
  const Values names = Params(result, params, dtype);
  Emit("DequantizeLinear", {codes, names[0], names[1]}, result);
  if (!params.per_tensor()) model_.Int("axis", params.axis);
}

Values Writer::Operands(const ir::Node& node) {
  Values names;
  int next = 0;
  const auto take = [&]() -> std::string {
    const ir::Node* operand = next < node.num_operands() ? node.operand(next) : nullptr;
    ++next;
    if (operand == nullptr) return "";
    if (operand->kind() != ir::NodeKind::kGetAttr) return operand->name();
    const ir::Parameter& parameter = *graph_.FindParameterOrNull(operand->target());
    return node.IsOp("dequantize") ? Stored(parameter) : Real(parameter);
  };
  for (size_t i = 0; i < node.op()->operands.size() && !node.op()->operands[i].variadic; ++i) {
    if (node.module() != nullptr && node.op()->operands[i].parameter) {
      const ir::Parameter* parameter = node.module()->operands[i];
      names.push_back(node.op()->operands[i].name == "bias" ? IntegerBias(node) : "");
      if (names.back().empty() && parameter != nullptr) names.back() = Real(*parameter);
    } else {
      names.push_back(take());
    }
  }
  while (next < node.num_operands()) names.push_back(take());
  return names;
}

std::string Writer::IntegerBias(const ir::Node& node) {
  const Tensor* values = graph_.ParameterOfOrNull(node, "bias");
  const Tensor* weight = graph_.ParameterOfOrNull(node, "weight");
  if (options_.bias == WriteOptions::Bias::kFloat || values == nullptr || values->type().quant.has_value() ||
      weight == nullptr || !weight->type().quant.has_value() || !node.operand(0)->IsOp("dequantize")) {
    return "";
  }
  const std::optional<QuantParams> input = ConstantParams(*node.operand(0));
  const QuantParams& weights = *weight->type().quant;
  if (!input.has_value() || !input->per_tensor()) return "";
  QuantParams params = PerAxis(0, {});
  Tensor codes(DType::kI32, values->shape());
  for (int64_t i = 0; i < values->num_elements(); ++i) {
    const float scale = input->scale() * (weights.per_tensor() ? weights.scale() : weights.scales[i]);
    const double code = std::nearbyint(values->At(i) / scale);
    if (!std::isnormal(scale) || !(std::abs(code) <= std::numeric_limits<int32_t>::max())) return "";
    codes.Set(i, code);
    params.scales.push_back(scale);
  }
  params.zero_points.assign(params.scales.size(), 0);
  const std::string name = node.name() + ":bias";
  model_.Initializer(name + ":codes", codes);
  Dequantize(name + ":codes", params, DType::kI32, name);
  return name;
}

void Writer::WriteConv(const ir::Node& node, const Values& in) {
  const bool sum = in.size() > 3 && !in[3].empty(), relu = HasRelu(node);
  const Shape& weight = graph_.OperandTypes(node)[1]->tensor().shape;
  const std::string &name = node.name(), product = sum || relu ? name + ":conv" : name;
  Emit("Conv", {in[0], in[1], in.size() > 2 ? in[2] : ""}, product)
      .Ints("kernel_shape", {weight.begin() + 2, weight.end()})
      .Ints("strides", node.attribute("stride").as_ints())
      .Ints("pads", node.attribute("padding").as_ints())
      .Ints("dilations", node.attribute("dilation").as_ints())
      .Int("group", node.attribute("groups").as_int());
  if (sum) Emit("Add", {product, in[3]}, relu ? name + ":sum" : name);
  if (relu) Emit("Relu", {sum ? name + ":sum" : product}, name);
}

absl::Status Writer::WriteLinear(const ir::Node& node, const Values& in) {
  const int rank = graph_.OperandTypes(node)[0]->tensor().rank();
  if (rank != 2) return Declined(node.op()->name, absl::StrCat(" of an input of rank ", rank));
  const std::string &name = node.name(), product = HasRelu(node) ? name + ":gemm" : name;
  Emit("Gemm", in, product).Int("transB", 1);
  if (HasRelu(node)) Emit("Relu", {product}, name);
  return absl::OkStatus();
}

absl::Status Writer::WriteElementwise(const ir::OpCall& call, const Values& in, const std::string& name) {
  const std::string& op = call.schema().name;
  const auto clip = [&](double min, double max) {
    // An absent bound bounds nothing.
    const auto bound = [&](const char* which, double value) {
      if (std::isinf(value)) return std::string();
      model_.Initializer(absl::StrCat(name, ":", which), Tensor::Scalar<float>(static_cast<float>(value)));
      return absl::StrCat(name, ":", which);
    };
    Emit("Clip", {in[0], bound("min", min), bound("max", max)}, name);
  };
  const auto hard_sigmoid = [&](double alpha, double beta, const std::string& result) {
    Emit("HardSigmoid", in, result).Float("alpha", static_cast<float>(alpha)).Float("beta", static_cast<float>(beta));
  };
  for (const Operator& same : kSame) {
    if (op != same.op) continue;
    Emit(same.onnx, in, name);
    return absl::OkStatus();
  }
  if (op == "add") {
    if (call.GetFloat("alpha") != 1) return Declined(op, " with an alpha");
    const bool relu = call.GetString("activation") == "relu";
    const std::string sum = relu ? name + ":sum" : name;
    Emit("Add", in, sum);
    if (relu) Emit("Relu", {sum}, name);
  } else if (op == "clamp") {
    clip(call.GetFloat("min"), call.GetFloat("max"));
  } else if (op == "relu6") {
    clip(0, 6);
  } else if (op == "leaky_relu") {
    Emit("LeakyRelu", in, name).Float("alpha", static_cast<float>(call.GetFloat("negative_slope")));
  } else if (op == "hardsigmoid") {
    hard_sigmoid(call.GetFloat("alpha"), call.GetFloat("beta"), name);
  } else if (op == "hardswish") {
    hard_sigmoid(1.0 / 6, 0.5, name + ":gate");
    Emit("Mul", {in[0], name + ":gate"}, name);
  } else if (op == "silu") {
    Emit("Sigmoid", in, name + ":gate");
    Emit("Mul", {in[0], name + ":gate"}, name);
  } else {
    return Declined(op, "");
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteSteps(const ir::Node& node, const Values& in) {
  ASSIGN_OR_RETURN(const std::vector<ElementwiseStep> steps,
                   ParseElementwiseSteps(node.attribute("steps").as_strings(), node.num_operands()));
  Values values = in;
  for (const ElementwiseStep& step : steps) {
    Values operands;
    for (int operand : step.operands) operands.push_back(values[operand]);
    values.push_back(&step == &steps.back() ? node.name() : absl::StrCat(node.name(), ":", values.size()));
    RETURN_IF_ERROR(
        WriteElementwise(ir::OpCall(*graph_.ops().FindOrNull(step.op), step.attributes), operands, values.back()));
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteBatchNorm(const ir::Node& node, const Values& in) {
  if (node.attribute("training").as_bool()) return Declined(node.op()->name, " in training");
  if (in.size() != 5 || std::find(in.begin(), in.end(), "") != in.end()) {
    return Declined(node.op()->name, " without weight, bias, mean or variance");
  }
  Emit("BatchNormalization", in, node.name()).Float("epsilon", static_cast<float>(node.attribute("eps").as_float()));
  return absl::OkStatus();
}

void Writer::WritePool(const ir::Node& node, const std::string& op, const Values& in) {
  Emit(op, in, node.name())
      .Ints("kernel_shape", node.attribute("kernel_size").as_ints())
      .Ints("strides", node.attribute("stride").as_ints())
      .Ints("pads", node.attribute("padding").as_ints())
      .Int("ceil_mode", node.attribute("ceil_mode").as_bool());
  if (op == "MaxPool") {
    model_.Ints("dilations", node.attribute("dilation").as_ints());
  } else {
    model_.Int("count_include_pad", node.attribute("count_include_pad").as_bool());
  }
}

absl::Status Writer::WriteGlobalPool(const ir::Node& node, const Values& in) {
  const Shape& shape = node.tensor_type().shape;
  if (std::any_of(shape.begin() + 2, shape.end(), [](int64_t size) { return size != 1; })) {
    return Declined(node.op()->name, absl::StrCat(" with the result ", ToString(shape)));
  }
  Emit("GlobalAveragePool", in, node.name());
  return absl::OkStatus();
}

absl::Status Writer::WriteFlatten(const ir::Node& node, const Values& in) {
  const int64_t start = node.attribute("start_dim").as_int(), end = node.attribute("end_dim").as_int();
  const int rank = node.operand(0)->tensor_type().rank();
  if (start != 1 || rank < 2 || (end != -1 && end != rank - 1)) {
    return Declined(node.op()->name, absl::StrCat(" of axes ", start, " to ", end));
  }
  Emit("Flatten", in, node.name()).Int("axis", 1);
  return absl::OkStatus();
}

absl::Status Writer::WriteCodes(const ir::Node& node, const std::string& op, Values in) {
  const DType dtype = (node.IsOp("quantize") ? &node : node.operand(0))->tensor_type().dtype;
  if (dtype != DType::kU8 && dtype != DType::kI8) {
    return Declined(node.op()->name, absl::StrCat(" with codes of type ", DTypeName(dtype)));
  }
  int64_t axis = node.attribute("axis").as_int();
  if (in.size() == 1 || in[1].empty()) {
    const std::optional<QuantParams> params = ConstantParams(node);
    if (!params.has_value()) return absl::InvalidArgumentError("found no scale, wanted one");
    const Values names = Params(node.name(), *params, dtype);
    in = {in[0], names[0], names[1]};
    axis = params->axis;
  } else if (dtype == DType::kI8 && (in.size() < 3 || in[2].empty())) {
    return Declined(node.op()->name, " to i8 without a zero point");
  }
  Emit(op, in, node.name());
  if (axis != QuantParams::kPerTensor) model_.Int("axis", axis);
  return absl::OkStatus();
}

absl::Status Writer::WriteCall(const ir::Node& node) {
  if (!node.type().is_tensor()) return Declined(node.op()->name, " with several results");
  const Values in = Operands(node);
  const std::string& op = node.op()->name;
  const auto any_of = [&](absl::string_view stem) {
    return op == absl::StrCat(stem, "1d") || op == absl::StrCat(stem, "2d") || op == absl::StrCat(stem, "3d");
  };
  if (op == "quantize") return WriteCodes(node, "QuantizeLinear", in);
  if (op == "dequantize") return WriteCodes(node, "DequantizeLinear", in);
  if (op == "linear") return WriteLinear(node, in);
  if (op == "fused_elementwise") return WriteSteps(node, in);
  if (op == "batch_norm") return WriteBatchNorm(node, in);
  if (op == "flatten") return WriteFlatten(node, in);
  if (op == "global_avg_pool" || any_of("adaptive_avg_pool")) return WriteGlobalPool(node, in);
  if (any_of("conv")) {
    WriteConv(node, in);
  } else if (any_of("max_pool")) {
    WritePool(node, "MaxPool", in);
  } else if (any_of("avg_pool")) {
    WritePool(node, "AveragePool", in);
  } else if (op == "cat") {
    Emit("Concat", in, node.name()).Int("axis", node.attribute("dim").as_int());
  } else {
    return WriteElementwise(ir::OpCall(*node.op(), node.attributes()), in, node.name());
  }
  return absl::OkStatus();
}

void Writer::WriteOutputs(const ir::Node& node) {
  HashSet<const ir::Node*> written;
  for (int i = 0; i < node.num_operands(); ++i) {
    const ir::Node& value = *node.operand(i);
    std::string name = value.name();
    // An ONNX output is the result of a node, and of one output alone.
    if (!value.is_call() || !written.insert(&value).second) {
      const bool parameter = value.kind() == ir::NodeKind::kGetAttr;
      name = absl::StrCat(name, ":output", i);
      Emit("Identity", {parameter ? Stored(*graph_.FindParameterOrNull(value.target())) : value.name()}, name);
    }
    model_.Output(name, Dims(value.tensor_type()), value.tensor_type().dtype);
  }
}

void Writer::RenameInterface() {
  HashMap<std::string, std::string> renamed;
  HashSet<std::string> taken;
  const auto rename = [&](const auto& values, const Values& names) {
    for (int i = 0; i < std::min<int>(values.size(), names.size()); ++i) {
      renamed[values[i].name()] = names[i];
      taken.insert(names[i]);
    }
  };
  rename(model_.graph().input(), options_.names.inputs);
  rename(model_.graph().output(), options_.names.outputs);
  const auto apply = [&](std::string* name) {
    if (const auto it = renamed.find(*name); it != renamed.end()) {
      *name = it->second;
    } else if (taken.contains(*name)) {
      absl::StrAppend(name, ":value");  // A name with ':' is in no graph.
    }
  };
  for (auto& input : *model_.graph().mutable_input()) apply(input.mutable_name());
  for (auto& output : *model_.graph().mutable_output()) apply(output.mutable_name());
  for (auto& initializer : *model_.graph().mutable_initializer()) apply(initializer.mutable_name());
  for (auto& node : *model_.graph().mutable_node()) {
    for (std::string& input : *node.mutable_input()) apply(&input);
    for (std::string& output : *node.mutable_output()) apply(&output);
  }
}

absl::Status Writer::WriteNode(const ir::Node& node) {
  switch (node.kind()) {
    case ir::NodeKind::kPlaceholder:
      model_.Input(node.name(), Dims(node.tensor_type()), node.tensor_type().dtype);
      return absl::OkStatus();
    case ir::NodeKind::kGetAttr: return absl::OkStatus();  // Written where it is used.
    case ir::NodeKind::kOutput: WriteOutputs(node); return absl::OkStatus();
    default: return WriteCall(node);
  }
}

}  // namespace

absl::StatusOr<std::string> Write(const ir::Graph& graph, const WriteOptions& options) {
  return Writer(graph, options).Run();
}

}  // namespace fuselage::onnx::writer
