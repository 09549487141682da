#include "frontend/onnx/importer.h"

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/widened.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using schema::AttributeProto;
using schema::GraphProto;
using schema::NodeProto;

constexpr int kMostNestedBodies = 32;  // Functions call functions.
constexpr int64_t kMostBodies = 1 << 16;

const AttributeProto* FindOrNull(const NodeProto& node, absl::string_view name) {
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

// Attributes of a function's body that stand for one of the call's become that,
// or vanish where the call has none.
void Substitute(const NodeProto& call, NodeProto* node) {
  auto* attributes = node->mutable_attribute();
  for (int i = attributes->size(); i-- > 0;) {
    AttributeProto& attribute = *attributes->Mutable(i);
    if (attribute.has_g()) {
      for (NodeProto& inner : *attribute.mutable_g()->mutable_node()) Substitute(call, &inner);
    }
    if (attribute.ref_attr_name().empty()) continue;
    const AttributeProto* value = FindOrNull(call, attribute.ref_attr_name());
    if (value == nullptr) {
      attributes->DeleteSubrange(i, 1);
      continue;
    }
    const std::string name = attribute.name();
    attribute = *value;
    attribute.set_name(name);
  }
}

GraphProto BodyOf(const Function& function, const NodeProto& call) {
  GraphProto body;
  for (const std::string& input : function.proto->input()) body.add_input()->set_name(input);
  for (const std::string& output : function.proto->output()) body.add_output()->set_name(output);
  for (const NodeProto& node : function.proto->node()) {
    *body.add_node() = node;
    Substitute(call, body.mutable_node(body.node_size() - 1));
  }
  return body;
}

}  // namespace

void Values::Define(absl::string_view name, Value value) {
  value.name = std::string(name);
  if (IsRead(name)) {
    values_[name] = std::move(value);
  } else {
    Release(value);
  }
}

const Value* Values::GetOrNull(absl::string_view name) const {
  const auto it = values_.find(name);
  if (it != values_.end()) return &it->second;
  return outer_ == nullptr ? nullptr : outer_->GetOrNull(name);
}

void Values::Done(absl::string_view name) {
  const auto it = remaining_.find(name);
  if (it == remaining_.end() || --it->second > 0) return;
  remaining_.erase(it);
  const auto value = values_.find(name);
  if (value == values_.end()) return;  // The outer body's, which counts its readers itself.
  Release(value->second);
  values_.erase(value);
}

void Values::Release(const Value& value) {
  for (const auto& constant : {value.constant, value.at_next_batch, value.at_next_row, value.at_no_row}) {
    if (constant != nullptr && constant.use_count() <= 2) budget_->Release((*constant)[0].byte_size());
  }
}

absl::StatusOr<std::vector<Value>> Importer::Import(const GraphProto& graph, const Define& define) {
  return Run(graph, structure_.opset, nullptr, /*nested=*/false, define);
}

absl::StatusOr<std::vector<Value>> Importer::Inline(const GraphProto& subgraph, std::vector<Value> inputs) {
  if (subgraph.input_size() != static_cast<int>(inputs.size())) {
    return absl::InvalidArgumentError(absl::StrCat("subgraph ", Quote(subgraph.name()), ": found ",
                                                   subgraph.input_size(), " inputs, wanted ", inputs.size()));
  }
  return Run(subgraph, scope_->opset, &scope_->values, /*nested=*/true, [&](Values& values) {
    for (int i = 0; i < subgraph.input_size(); ++i) values.Define(subgraph.input(i).name(), std::move(inputs[i]));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<Value>> Importer::CallFunction(const Function& function, const NodeProto& node,
                                                          std::vector<Value> operands) {
  if (depth_ > kMostNestedBodies) {
    return absl::InvalidArgumentError(absl::StrCat("found calls nested more than ", kMostNestedBodies, " deep"));
  }
  const GraphProto body = BodyOf(function, node);
  const auto bytes = static_cast<int64_t>(body.ByteSizeLong());
  RETURN_IF_ERROR(builder_->budget().Charge(bytes, "the function's body"));
  operands.resize(function.proto->input_size());
  auto results = Run(body, function.opset, nullptr, /*nested=*/false, [&](Values& values) {
    for (int i = 0; i < body.input_size(); ++i) values.Define(body.input(i).name(), std::move(operands[i]));
    return absl::OkStatus();
  });
  builder_->budget().Release(bytes);
  return results;
}

absl::StatusOr<std::vector<Value>> Importer::Run(const GraphProto& graph, int opset, const Values* outer, bool nested,
                                                 const Define& define) {
  RETURN_IF_ERROR(Count(1, graph.node_size()));
  ASSIGN_OR_RETURN(Body body, CheckBody(graph, structure_.functions, nested));
  Scope scope{Values(std::move(body.uses), outer, &builder_->budget()), opset};
  const Scope* around = scope_;
  ++depth_;
  const absl::Cleanup leave = [&] {
    scope_ = around;
    --depth_;
  };
  RETURN_IF_ERROR(define(scope.values));
  RETURN_IF_ERROR(AddInitializers(graph, nested, scope.values));
  for (const NodeProto* node : body.order) {
    scope_ = &scope;
    RETURN_IF_ERROR(AddNode(*node, scope));
  }
  std::vector<Value> outputs;
  for (const auto& output : graph.output()) {
    const Value* value = scope.values.GetOrNull(output.name());
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("found the undefined output ", Quote(output.name()), ", wanted a node's output"));
    }
    outputs.push_back(*value);
  }
  return outputs;
}

absl::Status Importer::AddInitializers(const GraphProto& graph, bool nested, Values& values) {
  for (const auto& initializer : graph.initializer()) {
    if (!nested && options_.constants.count(initializer.name()) > 0) continue;
    ASSIGN_OR_RETURN(Tensor tensor, ToTensor(initializer, payloads_, &builder_->budget()));
    Value value = Builder::Constant("", std::move(tensor));
    value.widened = FindWidenedOrNull(initializer.data_type()) != nullptr;
    values.Define(initializer.name(), std::move(value));
  }
  return absl::OkStatus();
}

absl::Status Importer::AddNode(const NodeProto& node, Scope& scope) {
  std::vector<Value> results;
  RETURN_IF_ERROR(Annotate(Convert(node, scope, &results), NodePlace(node)));
  for (int i = 0; i < node.output_size(); ++i) {
    if (results[i].present()) {
      scope.values.Define(node.output(i), std::move(results[i]));
    } else if (scope.values.IsRead(node.output(i))) {
      return absl::UnimplementedError(
          absl::StrCat(NodePlace(node), ": found output ", i, " ", Quote(node.output(i)), " in use, wanted it unused"));
    }
  }
  for (const absl::string_view name : NamesRead(node)) scope.values.Done(name);
  return absl::OkStatus();
}

absl::Status Importer::Convert(const NodeProto& node, Scope& scope, std::vector<Value>* results) {
  std::vector<Value> operands;
  for (const std::string& input : node.input()) {
    const Value* value = input.empty() ? nullptr : scope.values.GetOrNull(input);
    if (value == nullptr && !input.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("found the undefined input ", Quote(input),
                                                     ", wanted a graph input, an initializer or a node's output"));
    }
    operands.push_back(value == nullptr ? Value() : *value);
  }
  if (const Function* function = FindFunctionOrNull(structure_.functions, node); function != nullptr) {
    ASSIGN_OR_RETURN(*results, CallFunction(*function, node, std::move(operands)));
    return absl::OkStatus();
  }
  std::vector<bool> wanted;
  for (const std::string& output : node.output()) wanted.push_back(scope.values.IsRead(output));
  const Converter& converter = *FindConverterOrNull(node.domain(), node.op_type());
  Call call(node, converter.target, scope.opset, std::move(operands), std::move(wanted), builder_, this);
  RETURN_IF_ERROR(converter.convert(call));
  *results = std::move(call.results());
  return absl::OkStatus();
}

absl::Status Importer::Count(int64_t bodies, int64_t nodes) {
  bodies_ += bodies;
  nodes_ += nodes;
  if (bodies_ <= kMostBodies && nodes_ <= 2 * kMostImportedNodes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("found more than ", kMostBodies,
                                                   " iterations and calls, or more than ", 2 * kMostImportedNodes,
                                                   " nodes in them"));
}

}  // namespace fuselage::onnx
