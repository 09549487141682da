#include "frontend/onnx/onnx.h"

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/builder.h"
#include "frontend/onnx/call.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/files.h"
#include "frontend/onnx/inputs.h"
#include "frontend/onnx/structure.h"
#include "frontend/onnx/tensors.h"
#include "frontend/onnx/widened.h"
#include "frontend/onnx/wire.h"
#include "ir/base/budget.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

// What each ONNX name stands for, while someone still reads it.
class Values {
 public:
  Values(HashMap<absl::string_view, int> uses, Budget* budget) : remaining_(std::move(uses)), budget_(budget) {}

  bool IsRead(absl::string_view name) const { return !name.empty() && remaining_.contains(name); }

  // `name` must outlive this.
  void Define(absl::string_view name, Value value) {
    value.name = std::string(name);
    if (IsRead(name)) {
      values_[name] = std::move(value);
    } else {
      Release(value);
    }
  }

  const Value& Get(absl::string_view name) const { return values_.find(name)->second; }

  // One reader is done. The memory of a constant that became no parameter is free after its last reader.
  void Done(absl::string_view name) {
    const auto it = remaining_.find(name);
    if (it == remaining_.end() || --it->second > 0) return;
    remaining_.erase(it);
    const auto value = values_.find(name);
    Release(value->second);
    values_.erase(value);
  }

 private:
  void Release(const Value& value) {
    for (const auto& constant : {value.constant, value.at_next_batch}) {
      if (constant != nullptr && constant.use_count() <= 2) budget_->Release((*constant)[0].byte_size());
    }
  }

  HashMap<absl::string_view, int> remaining_;
  HashMap<absl::string_view, Value> values_;
  Budget* budget_;
};

absl::Status AddInputs(const GraphProto& proto, const LoadOptions& options, ir::Graph* graph, Builder* builder,
                       Values* values) {
  ASSIGN_OR_RETURN(const auto types, BindInputs(proto, options));
  for (const auto& input : proto.input()) {
    if (const auto it = types.find(input.name()); it != types.end()) {
      RETURN_IF_ERROR(builder->budget().CheckValue(it->second, absl::StrCat("input ", Quote(input.name()), ":")));
      ASSIGN_OR_RETURN(ir::Node * node, graph->AddPlaceholder(input.name(), it->second));
      const auto& stated = input.type().tensor_type();
      const bool symbolic =
          !stated.has_shape() || (stated.shape().dim_size() > 0 && !stated.shape().dim(0).has_dim_value());
      if (symbolic && it->second.rank() > 0) builder->MarkBatch(node);
      values->Define(input.name(), {"", nullptr, node});
      if (options.names != nullptr) options.names->inputs.push_back(input.name());
    } else if (const auto constant = options.constants.find(input.name()); constant != options.constants.end()) {
      ASSIGN_OR_RETURN(Value value, builder->ChargedConstant(input.name(), constant->second));
      values->Define(input.name(), std::move(value));
    }
  }
  return absl::OkStatus();
}

absl::Status AddInitializers(const GraphProto& proto, const LoadOptions& options, const std::string& folder,
                             Budget* budget, Values* values) {
  for (const auto& initializer : proto.initializer()) {
    if (options.constants.count(initializer.name()) > 0) continue;
    ASSIGN_OR_RETURN(Tensor tensor, ToTensor(initializer, folder, budget));
    Value value = Builder::Constant("", std::move(tensor));
    value.widened = FindWidenedOrNull(initializer.data_type()) != nullptr;
    values->Define(initializer.name(), std::move(value));
  }
  return absl::OkStatus();
}

absl::Status AddNode(const NodeProto& node, int opset, Builder* builder, Values* values) {
  {
    std::vector<Value> operands;
    for (const std::string& input : node.input()) operands.push_back(input.empty() ? Value() : values->Get(input));
    std::vector<bool> wanted;
    for (const std::string& output : node.output()) wanted.push_back(values->IsRead(output));
    Call call(node, opset, std::move(operands), std::move(wanted), builder);
    RETURN_IF_ERROR(Annotate(FindConverterOrNull(node.domain(), node.op_type())->convert(call), NodePlace(node)));
    for (int i = 0; i < node.output_size(); ++i) {
      Value& result = call.results()[i];
      if (result.present()) {
        values->Define(node.output(i), std::move(result));
      } else if (values->IsRead(node.output(i))) {
        return absl::UnimplementedError(absl::StrCat(NodePlace(node), ": found output ", i, " ", Quote(node.output(i)),
                                                     " in use, wanted it unused"));
      }
    }
  }
  for (const std::string& input : node.input()) values->Done(input);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Import(const ModelProto& model, const std::string& folder,
                                                  const ir::OpRegistry& ops, const LoadOptions& options,
                                                  Budget* budget) {
  ASSIGN_OR_RETURN(Structure structure, CheckStructure(model));
  const GraphProto& proto = model.graph();
  auto graph = std::make_unique<ir::Graph>(proto.name(), ops);
  Builder builder(graph.get(), budget, options);
  Values values(std::move(structure.uses), budget);
  RETURN_IF_ERROR(AddInputs(proto, options, graph.get(), &builder, &values));
  RETURN_IF_ERROR(AddInitializers(proto, options, folder, budget, &values));
  for (const NodeProto* node : structure.order) RETURN_IF_ERROR(AddNode(*node, structure.opset, &builder, &values));
  std::vector<ir::Node*> outputs;
  for (const auto& output : proto.output()) {
    absl::StatusOr<ir::Node*> node = builder.NodeOf(values.Get(output.name()));
    if (!node.ok()) return Annotate(node.status(), absl::StrCat("output ", Quote(output.name())));
    outputs.push_back(*node);
    if (options.names != nullptr) options.names->outputs.push_back(output.name());
  }
  ASSIGN_OR_RETURN(ir::Node * output, graph->AddOutput(std::move(outputs)));
  static_cast<void>(output);
  RETURN_IF_ERROR(graph->Verify());
  return graph;
}

// Parses `bytes` within the budget. On failure the message says where.
absl::Status ParseMessage(absl::string_view bytes, WireMessage kind, google::protobuf::MessageLite* message,
                          Budget* budget) {
  ASSIGN_OR_RETURN(const int64_t cost, ScanWire(bytes, kind));
  RETURN_IF_ERROR(budget->Charge(cost, "the parsed file"));
  return ParseWire(bytes, message);
}

// The file ends before its graph, or before the opset that follows it, where it is cut between two fields.
absl::Status CheckComplete(const ModelProto& model, size_t size) {
  if (model.has_graph() && model.opset_import_size() > 0 && model.has_ir_version()) return absl::OkStatus();
  const char* missing = !model.has_graph() ? "graph" : model.has_ir_version() ? "opset_import" : "ir_version";
  return absl::InvalidArgumentError(
      absl::StrCat("truncated at byte ", size, ", or no ONNX model: found no ", missing, ", wanted one"));
}

void AddLocations(const ::onnx::TensorProto& tensor, std::set<std::string>* locations) {
  if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) return;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") locations->insert(entry.value());
  }
}

// Subgraphs are as shallow as the wire format's scan allows.
void AddLocations(const GraphProto& graph, std::set<std::string>* locations) {
  for (const auto& tensor : graph.initializer()) AddLocations(tensor, locations);
  for (const NodeProto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      AddLocations(attribute.t(), locations);
      for (const auto& tensor : attribute.tensors()) AddLocations(tensor, locations);
      if (attribute.has_g()) AddLocations(attribute.g(), locations);
      for (const GraphProto& subgraph : attribute.graphs()) AddLocations(subgraph, locations);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Graph>> Load(const std::string& path, const ir::OpRegistry& ops,
                                                const LoadOptions& options) {
  Budget budget(options.max_memory_bytes);
  ModelProto model;
  {
    absl::StatusOr<std::string> bytes = ReadFile(path, &budget);
    if (!bytes.ok()) return Annotate(bytes.status(), path);
    RETURN_IF_ERROR(Annotate(ParseMessage(*bytes, WireMessage::kModel, &model, &budget), path));
    RETURN_IF_ERROR(Annotate(CheckComplete(model, bytes->size()), path));
    budget.Release(static_cast<int64_t>(bytes->size()));
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = Import(model, folder, ops, options, &budget);
  if (!graph.ok()) return Annotate(graph.status(), path);
  if (options.external_files != nullptr) {
    std::set<std::string> locations;
    AddLocations(model.graph(), &locations);
    for (const std::string& location : locations) {
      options.external_files->push_back(absl::StrCat(folder, absl::EndsWith(folder, "/") ? "" : "/", location));
    }
  }
  return graph;
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Parse(absl::string_view bytes, absl::string_view file,
                                                 const ir::OpRegistry& ops, const LoadOptions& options) {
  Budget budget(options.max_memory_bytes);
  ModelProto model;
  RETURN_IF_ERROR(Annotate(ParseMessage(bytes, WireMessage::kModel, &model, &budget), file));
  RETURN_IF_ERROR(Annotate(CheckComplete(model, bytes.size()), file));
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = Import(model, "", ops, options, &budget);
  if (!graph.ok()) return Annotate(graph.status(), file);
  return graph;
}

absl::StatusOr<Tensor> ParseTensor(absl::string_view bytes, absl::string_view file, int64_t max_memory_bytes) {
  Budget budget(max_memory_bytes);
  ::onnx::TensorProto proto;
  RETURN_IF_ERROR(Annotate(ParseMessage(bytes, WireMessage::kTensor, &proto, &budget), file));
  absl::StatusOr<Tensor> tensor = ToTensor(proto, "", &budget);
  if (!tensor.ok()) return Annotate(tensor.status(), file);
  return tensor;
}

}  // namespace fuselage::onnx
