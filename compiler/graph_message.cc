#include "compiler/graph_message.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"

namespace fuselage::compiler {
namespace {

using google::protobuf::RepeatedPtrField;
using ir::NodeKind;

constexpr int64_t kMostElements = int64_t{1} << 32;

template <typename From, typename To>
void Append(const From& from, To* to) {
  to->Add(from.begin(), from.end());
}

void Append(const std::vector<std::string>& from, RepeatedPtrField<std::string>* to) {
  for (const std::string& text : from) *to->Add() = text;
}

void AppendAttributes(const AttributeMap& attributes, RepeatedPtrField<AttributeMessage>* to) {
  for (const auto& [name, value] : attributes) {
    AttributeMessage& message = *to->Add();
    message.set_name(name);
    switch (value.kind()) {
      case AttributeKind::kBool: message.set_b(value.as_bool()); break;
      case AttributeKind::kInt: message.set_i(value.as_int()); break;
      case AttributeKind::kFloat: message.set_f(value.as_float()); break;
      case AttributeKind::kString: message.set_s(value.as_string()); break;
      case AttributeKind::kDType: message.set_dtype(std::string(DTypeName(value.as_dtype()))); break;
      case AttributeKind::kInts: Append(value.as_ints(), message.mutable_ints()->mutable_values()); break;
      case AttributeKind::kFloats: Append(value.as_floats(), message.mutable_floats()->mutable_values()); break;
      case AttributeKind::kStrings: Append(value.as_strings(), message.mutable_strings()->mutable_values()); break;
    }
  }
}

template <typename T, typename Values>
std::vector<T> VectorOf(const Values& values) {
  return {values.begin(), values.end()};
}

absl::StatusOr<Attribute> AttributeOf(const AttributeMessage& message) {
  switch (message.value_case()) {
    case AttributeMessage::kB: return Attribute(message.b());
    case AttributeMessage::kI: return Attribute(int64_t{message.i()});
    case AttributeMessage::kF: return Attribute(message.f());
    case AttributeMessage::kS: return Attribute(message.s());
    case AttributeMessage::kDtype: {
      ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(message.dtype()));
      return Attribute(dtype);
    }
    case AttributeMessage::kInts: return Attribute(VectorOf<int64_t>(message.ints().values()));
    case AttributeMessage::kFloats: return Attribute(VectorOf<double>(message.floats().values()));
    case AttributeMessage::kStrings: return Attribute(VectorOf<std::string>(message.strings().values()));
    default: return absl::InvalidArgumentError("found no value");
  }
}

absl::StatusOr<AttributeMap> AttributesOf(const RepeatedPtrField<AttributeMessage>& messages) {
  AttributeMap attributes;
  for (const AttributeMessage& message : messages) {
    absl::StatusOr<Attribute> attribute = AttributeOf(message);
    if (!attribute.ok()) return Annotate(attribute.status(), absl::StrCat("attribute '", message.name(), "'"));
    if (!attributes.emplace(message.name(), *std::move(attribute)).second) {
      return absl::InvalidArgumentError(absl::StrCat("a second attribute '", message.name(), "'"));
    }
  }
  return attributes;
}

// Builds the graph that a message describes.
class Builder {
 public:
  Builder(const ir::OpRegistry& ops, TensorSource tensors, const ImportOptions& options, Budget* budget)
      : ops_(ops), tensors_(tensors), options_(options), budget_(*budget) {}

  absl::StatusOr<std::unique_ptr<ir::Graph>> Build(const GraphMessage& message) {
    if (message.nodes_size() > kMostImportedNodes) {
      return absl::ResourceExhaustedError(absl::StrCat("found more than ", kMostImportedNodes, " nodes"));
    }
    graph_ = std::make_unique<ir::Graph>(message.name(), ops_);
    for (const auto& parameter : message.parameters()) {
      RETURN_IF_ERROR(Annotate(Add(parameter), absl::StrCat("parameter @", parameter.name())));
    }
    for (const auto& module : message.modules()) {
      RETURN_IF_ERROR(Annotate(Add(module), absl::StrCat("module @", module.path())));
    }
    nodes_.reserve(message.nodes_size());
    for (const auto& node : message.nodes()) {
      RETURN_IF_ERROR(Annotate(Add(node), absl::StrCat("node %", node.name())));
    }
    ASSIGN_OR_RETURN(std::vector<ir::Node*> outputs, NodesOf(message.outputs()));
    RETURN_IF_ERROR(graph_->AddOutput(std::move(outputs)).status());
    const absl::Status verified = graph_->Verify();
    if (!verified.ok()) return absl::InvalidArgumentError(verified.message());
    return std::move(graph_);
  }

 private:
  // What the text of the IR can show, and what is not taken.
  static absl::Status CheckName(const std::string& found, const std::string& wanted) {
    if (found == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("found the name '", found, "', wanted it once and as '", wanted, "'"));
  }

  absl::Status Add(const GraphMessage::Parameter& message) {
    ASSIGN_OR_RETURN(TensorType type, TypeOf(message.type()));
    RETURN_IF_ERROR(budget_.Charge(type.byte_size(), "its data"));
    ASSIGN_OR_RETURN(std::shared_ptr<const Tensor> tensor, tensors_(message.data(), std::move(type)));
    const std::string name = graph_->AddParameter(message.name(), std::move(tensor));
    RETURN_IF_ERROR(CheckName(message.name(), name));
    const ir::Parameter& parameter = *graph_->FindParameterOrNull(name);
    // The graph has looked at every byte, so that nobody need do it again.
    if (parameter.fingerprint != message.data().checksum()) {
      return absl::InvalidArgumentError("its data is damaged: it has another checksum");
    }
    if (parameter.tensor->dtype() == DType::kBool) {
      const auto* bytes = static_cast<const uint8_t*>(parameter.tensor->raw_data());
      if (std::any_of(bytes, bytes + parameter.tensor->byte_size(), [](uint8_t byte) { return byte > 1; })) {
        return absl::InvalidArgumentError("its data holds a bool that is neither 0 nor 1");
      }
    }
    return CheckFinite(*parameter.tensor, "its data", options_);
  }

  absl::Status Add(const GraphMessage::Module& message) {
    RETURN_IF_ERROR(CheckName(message.path(), ir::SanitizedName(message.path())));
    ASSIGN_OR_RETURN(AttributeMap attributes, AttributesOf(message.attributes()));
    std::map<std::string, std::string> parameters;
    for (const auto& operand : message.parameters()) parameters[operand.name()] = operand.parameter();
    return graph_->AddModule(message.path(), message.op(), std::move(attributes), std::move(parameters)).status();
  }

  absl::Status Add(const GraphMessage::Node& message) {
    ASSIGN_OR_RETURN(ir::Node* const node, Added(message));
    RETURN_IF_ERROR(CheckName(message.name(), node->name()));
    for (const TensorType& element : node->type().elements()) RETURN_IF_ERROR(budget_.CheckValue(element, "its value"));
    for (const std::string& source : message.sources()) RETURN_IF_ERROR(CheckName(source, ir::SanitizedName(source)));
    node->AddSources(VectorOf<std::string>(message.sources()));
    nodes_.push_back(node);
    return absl::OkStatus();
  }

  absl::StatusOr<ir::Node*> Added(const GraphMessage::Node& message) {
    const auto is = [&](NodeKind kind) { return message.kind() == ir::NodeKindName(kind); };
    if (is(NodeKind::kPlaceholder)) {
      ASSIGN_OR_RETURN(TensorType type, TypeOf(message.type()));
      return graph_->AddPlaceholder(message.name(), std::move(type));
    }
    if (is(NodeKind::kGetAttr)) return graph_->AddGetAttr(message.name(), message.target());
    ASSIGN_OR_RETURN(std::vector<ir::Node*> operands, NodesOf(message.operands()));
    if (is(NodeKind::kCallModule)) {
      return graph_->AddModuleCall(message.name(), message.target(), std::move(operands));
    }
    ASSIGN_OR_RETURN(AttributeMap attributes, AttributesOf(message.attributes()));
    if (is(NodeKind::kCallFunction)) {
      return graph_->AddFunction(message.name(), message.target(), std::move(operands), std::move(attributes));
    }
    if (is(NodeKind::kCallMethod)) {
      return graph_->AddMethod(message.name(), message.target(), std::move(operands), std::move(attributes));
    }
    return absl::InvalidArgumentError(absl::StrCat("found the kind '", message.kind(), "'"));
  }

  absl::StatusOr<std::vector<ir::Node*>> NodesOf(const google::protobuf::RepeatedField<int32_t>& indices) const {
    std::vector<ir::Node*> nodes;
    for (const int32_t index : indices) {
      if (index < -1 || index >= static_cast<int64_t>(nodes_.size())) {
        return absl::InvalidArgumentError(
            absl::StrCat("found node number ", index, ", wanted one of the ", nodes_.size(), " before it"));
      }
      nodes.push_back(index < 0 ? nullptr : nodes_[index]);
    }
    return nodes;
  }

  const ir::OpRegistry& ops_;
  const TensorSource tensors_;
  const ImportOptions& options_;
  Budget& budget_;
  std::unique_ptr<ir::Graph> graph_;
  std::vector<ir::Node*> nodes_;
};

}  // namespace

TypeMessage MessageOf(const TensorType& type) {
  TypeMessage message;
  message.set_dtype(std::string(DTypeName(type.dtype)));
  Append(type.shape, message.mutable_shape());
  if (type.quant.has_value()) {
    TypeMessage::Quantization& quantization = *message.mutable_quantization();
    Append(type.quant->scales, quantization.mutable_scales());
    Append(type.quant->zero_points, quantization.mutable_zero_points());
    quantization.set_axis(type.quant->axis);
  }
  return message;
}

absl::StatusOr<TensorType> TypeOf(const TypeMessage& message) {
  TensorType type;
  ASSIGN_OR_RETURN(type.dtype, DTypeFromName(message.dtype()));
  type.shape = VectorOf<int64_t>(message.shape());
  ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(type.shape));
  if (elements > kMostElements) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", ToString(type.shape), " is too large"));
  }
  if (message.has_quantization()) {
    const TypeMessage::Quantization& quantization = message.quantization();
    type.quant = {VectorOf<float>(quantization.scales()), VectorOf<int32_t>(quantization.zero_points()),
                  quantization.axis()};
    RETURN_IF_ERROR(CheckQuantParams(*type.quant, type.dtype, type.shape));
  }
  return type;
}

GraphMessage MessageOf(const ir::Graph& graph) {
  GraphMessage message;
  message.set_name(graph.name());
  for (const auto& [name, parameter] : graph.parameters()) {
    GraphMessage::Parameter& to = *message.add_parameters();
    to.set_name(name);
    *to.mutable_type() = MessageOf(parameter.tensor->type());
  }
  for (const auto& [path, module] : graph.modules()) {
    GraphMessage::Module& to = *message.add_modules();
    to.set_path(path);
    to.set_op(module->op->name);
    AppendAttributes(module->attributes, to.mutable_attributes());
    for (const auto& [operand, parameter] : module->parameters) {
      GraphMessage::Module::Operand& bound = *to.add_parameters();
      bound.set_name(operand);
      bound.set_parameter(parameter);
    }
  }
  HashMap<const ir::Node*, int> index;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->kind() == NodeKind::kOutput) {
      for (const ir::Node* operand : node->operands()) message.add_outputs(index.at(operand));
      continue;
    }
    index.emplace(node, static_cast<int>(index.size()));
    GraphMessage::Node& to = *message.add_nodes();
    to.set_kind(std::string(ir::NodeKindName(node->kind())));
    to.set_name(node->name());
    to.set_target(node->target());
    for (const ir::Node* operand : node->operands()) to.add_operands(operand == nullptr ? -1 : index.at(operand));
    if (node->module() == nullptr) AppendAttributes(node->attributes(), to.mutable_attributes());
    Append(node->sources(), to.mutable_sources());
    if (node->kind() == NodeKind::kPlaceholder) *to.mutable_type() = MessageOf(node->tensor_type());
  }
  return message;
}

absl::StatusOr<std::unique_ptr<ir::Graph>> GraphOf(const GraphMessage& message, const ir::OpRegistry& ops,
                                                   TensorSource tensors, const ImportOptions& options, Budget* budget) {
  return Builder(ops, tensors, options, budget).Build(message);
}

}  // namespace fuselage::compiler
