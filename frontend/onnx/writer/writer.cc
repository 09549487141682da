#include "frontend/onnx/writer/writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/operators.h"
#include "frontend/onnx/writer/quantization.h"
#include "ir/base/activation.h"
#include "ir/base/elementwise.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"

namespace fuselage::onnx::writer {
namespace {

// Writes one graph in one opset.
class Writer {
 public:
  Writer(const ir::Graph& graph, const WriteOptions& options, int opset)
      : graph_(graph), options_(options), to_(opset), model_(to_.model()) {}

  absl::Status Run() {
    model_.graph().set_name(graph_.name());
    model_.proto().set_producer_name("fuselage");
    for (const ir::Node* node = graph_.first(); node != nullptr; node = node->next()) {
      RETURN_IF_ERROR(Annotate(WriteNode(*node), absl::StrCat("%", node->name())));
    }
    RenameInterface();
    return absl::OkStatus();
  }

  int needed_opset() const { return to_.needed(); }
  std::string Bytes() const { return model_.Bytes(); }

 private:
  absl::Status WriteNode(const ir::Node& node);
  absl::Status WriteSteps(const ir::Node& node, const Values& in);
  absl::Status WriteActivated(const ir::Node& node, Values in, const Activation& activation);
  void WriteOutputs(const ir::Node& node);
  void RenameInterface();

  // The operands in the schema's order, "" where one is absent.
  Values Operands(const ir::Node& node);
  // A parameter as stored, and its real values where it is quantized.
  std::string Stored(const ir::Parameter& parameter);
  std::string Real(const ir::Parameter& parameter);
  // The bias of a layer of codes as int32 codes; empty where it stays as it is.
  std::string IntegerBias(const ir::Node& node);
  std::vector<Dim> Dims(const TensorType& type) const;

  const ir::Graph& graph_;
  const WriteOptions& options_;
  Emitter to_;
  ModelBuilder& model_;
  HashMap<std::string, std::string> stored_, real_;  // By parameter.
};

std::vector<Dim> Writer::Dims(const TensorType& type) const {
  std::vector<Dim> dims(type.shape.begin(), type.shape.end());
  if (!options_.batch.empty() && !dims.empty()) dims[0] = Dim(options_.batch.c_str());
  return dims;
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
      Dequantize(name, *type.quant, type.dtype, name + ":real", to_);
      name += ":real";
    }
  }
  return name;
}

// A parameter where codes are wanted is its codes; elsewhere its real values.
Values Writer::Operands(const ir::Node& node) {
  const bool codes = node.IsOp("dequantize") || (node.type().is_tensor() && node.tensor_type().quant.has_value());
  Values names;
  for (const ir::Argument& argument : node.arguments()) {
    std::string& name = names.emplace_back();
    if (argument.parameter == nullptr) {
      if (argument.value != nullptr) name = argument.value->name();
    } else if (argument.value != nullptr) {
      name = codes ? Stored(*argument.parameter) : Real(*argument.parameter);
    } else {
      if (argument.spec->name == "bias") name = IntegerBias(node);
      if (name.empty()) name = Real(*argument.parameter);
    }
  }
  return names;
}

std::string Writer::IntegerBias(const ir::Node& node) {
  const Tensor* values = graph_.ParameterOfOrNull(node, "bias");
  const Tensor* weight = graph_.ParameterOfOrNull(node, "weight");
  if (options_.bias == WriteOptions::Bias::kFloat || values == nullptr || values->rank() != 1 ||
      values->type().quant.has_value() || weight == nullptr || !weight->type().quant.has_value() ||
      !node.operand(0)->IsOp("dequantize")) {
    return "";
  }
  const ir::Node& dequantize = *node.operand(0);
  const std::optional<QuantParams> input =
      ConstantParams(ir::OpCall(*dequantize.op(), dequantize.attributes()), dequantize.num_operands() > 1,
                     dequantize.operand(0)->tensor_type());
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
  Dequantize(name + ":codes", params, DType::kI32, name, to_);
  return name;
}

absl::Status Writer::WriteSteps(const ir::Node& node, const Values& in) {
  ASSIGN_OR_RETURN(const std::vector<ElementwiseStep> steps,
                   ParseElementwiseSteps(node.attribute("steps").as_strings(), node.num_operands()));
  Values values = in;
  for (const ElementwiseStep& step : steps) {
    Values operands;
    for (int operand : step.operands) operands.push_back(values[operand]);
    values.push_back(&step == &steps.back() ? node.name() : absl::StrCat(node.name(), ":", values.size()));
    const ir::OpCall op(*graph_.ops().FindOrNull(step.op), step.attributes);
    RETURN_IF_ERROR(WriteOperator(op, std::move(operands), {}, node.type(), values.back(), to_));
  }
  return absl::OkStatus();
}

// The call without its activation, behind it the function that this begins with, and what clamps that.
absl::Status Writer::WriteActivated(const ir::Node& node, Values in, const Activation& activation) {
  AttributeMap attributes = node.attributes();
  attributes.insert_or_assign("activation", Attribute("none"));
  const std::string sum = node.name() + ":sum";
  RETURN_IF_ERROR(WriteOperator(ir::OpCall(*node.op(), attributes), std::move(in), graph_.OperandTypes(node),
                                node.type(), sum, to_));
  const auto write = [&](const std::string& op, const AttributeMap& attributes, std::string x, const std::string& y) {
    return WriteOperator(ir::OpCall(*graph_.ops().FindOrNull(op), attributes), {std::move(x)}, {}, node.type(), y, to_);
  };
  const ElementwiseStep step = StepOf(*activation.function);
  if (activation.is_function()) return write(step.op, step.attributes, sum, node.name());
  const std::string unbounded = node.name() + ":unbounded";
  RETURN_IF_ERROR(write(step.op, step.attributes, sum, unbounded));
  return write("clamp", {{"min", activation.min}, {"max", activation.max}}, unbounded, node.name());
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
      to_.Emit("Identity", {parameter ? Stored(*graph_.FindParameterOrNull(value.target())) : value.name()}, name);
    }
    model_.Output(name, Dims(value.tensor_type()), value.tensor_type().dtype);
  }
}

void Writer::RenameInterface() {
  HashMap<std::string, std::string> renamed;
  HashSet<std::string> taken;
  // An output that is called as an input is, as where a file gives an input back, is numbered: ONNX has a name once.
  const auto rename = [&](const auto& values, const Values& names) {
    for (int i = 0; i < std::min<int>(values.size(), names.size()); ++i) {
      std::string name = names[i];
      for (int k = 1; !taken.insert(name).second; ++k) name = absl::StrCat(names[i], "_", k);
      renamed[values[i].name()] = std::move(name);
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
    default: break;
  }
  Values in = Operands(node);
  if (node.IsOp("fused_elementwise")) return WriteSteps(node, in);
  if (node.op()->fusable_activation) {
    const Activation activation = ParseActivation(node.attribute("activation").as_string()).value();
    if (!activation.is_clamp()) return WriteActivated(node, std::move(in), activation);
  }
  const ir::OpCall op(*node.op(), node.attributes());
  return WriteOperator(op, std::move(in), graph_.OperandTypes(node), node.type(), node.name(), to_);
}

}  // namespace

absl::StatusOr<std::string> Write(const ir::Graph& graph, const WriteOptions& options) {
  auto writer = std::make_unique<Writer>(graph, options, kOldestWrittenOpset);
  RETURN_IF_ERROR(writer->Run());
  if (const int needed = writer->needed_opset(); needed > kOldestWrittenOpset) {
    writer = std::make_unique<Writer>(graph, options, needed);
    RETURN_IF_ERROR(writer->Run());
  }
  return writer->Bytes();
}

}  // namespace fuselage::onnx::writer
