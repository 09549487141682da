#include "frontend/onnx/onnx.h"

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/builder.h"
#include "frontend/onnx/files.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/inputs.h"
#include "frontend/onnx/rows.h"
#include "frontend/onnx/structure.h"
#include "frontend/onnx/tensors.h"
#include "frontend/onnx/wire.h"
#include "ir/base/budget.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using schema::GraphProto;
using schema::ModelProto;
using schema::NodeProto;

absl::Status AddInputs(const GraphProto& proto, const LoadOptions& options, ir::Graph* graph, Builder* builder,
                       Values* values) {
  ASSIGN_OR_RETURN(const auto types, BindInputs(proto, options));
  for (const auto& input : proto.input()) {
    if (const auto it = types.find(input.name()); it != types.end()) {
      RETURN_IF_ERROR(builder->budget().CheckValue(it->second, absl::StrCat("input ", Quote(input.name()), ":")));
      ASSIGN_OR_RETURN(ir::Node * node, graph->AddPlaceholder(input.name(), it->second));
      if (HasOpenBatch(input) && it->second.rank() > 0) builder->MarkBatch(node);
      values->Define(input.name(), {"", nullptr, node});
      if (options.names != nullptr) options.names->inputs.push_back(input.name());
    } else if (const auto constant = options.constants.find(input.name()); constant != options.constants.end()) {
      absl::StatusOr<Tensor> tensor = FitConstant(input, constant->second);
      if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("input ", Quote(input.name())));
      ASSIGN_OR_RETURN(Value value, builder->ChargedConstant(input.name(), *std::move(tensor)));
      values->Define(input.name(), std::move(value));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Import(const ModelProto& model, const Payloads& payloads,
                                                  const ir::OpRegistry& ops, const LoadOptions& options,
                                                  Budget* budget) {
  ASSIGN_OR_RETURN(const Structure structure, CheckStructure(model));
  const GraphProto& proto = model.graph();
  auto graph = std::make_unique<ir::Graph>(proto.name(), ops);
  Builder builder(graph.get(), budget, options);
  Importer importer(structure, options, payloads, &builder);
  ASSIGN_OR_RETURN(const std::vector<Value> values, importer.Import(proto, [&](Values& defined) {
    return AddInputs(proto, options, graph.get(), &builder, &defined);
  }));
  std::vector<ir::Node*> outputs;
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i).name();
    const auto add = [&](const std::string& as, ir::Node* node) {
      outputs.push_back(node);
      if (options.names != nullptr) options.names->outputs.push_back(as);
    };
    const absl::StatusOr<Value> value = FillRows(builder, name, values[i], 0);
    absl::StatusOr<ir::Node*> node = value.ok() ? builder.NodeOf(*value) : value.status();
    if (!node.ok()) return Annotate(node.status(), absl::StrCat("output ", Quote(name)));
    add(name, *node);
    if (values[i].rows.count != nullptr) add(absl::StrCat(name, ".count"), values[i].rows.count);
  }
  ASSIGN_OR_RETURN(ir::Node * output, graph->AddOutput(std::move(outputs)));
  static_cast<void>(output);
  RETURN_IF_ERROR(graph->Verify());
  return graph;
}

// Parses `bytes`, which must outlive the result, within the budget. On failure the message says where.
absl::StatusOr<Payloads> ParseMessage(const ByteSource& bytes, google::protobuf::Message* message, Budget* budget) {
  ASSIGN_OR_RETURN(const WirePlan plan, ScanWire(bytes, *message->GetDescriptor()));
  ASSIGN_OR_RETURN(RawData raw_data, ParseWire(bytes, plan, message, budget));
  return Payloads{&bytes, std::move(raw_data), ""};
}

// The file ends before its graph, or before the opset that follows it, where it is cut between two fields.
absl::Status CheckComplete(const ModelProto& model, int64_t size) {
  if (model.has_graph() && model.opset_import_size() > 0 && model.has_ir_version()) return absl::OkStatus();
  const char* missing = !model.has_graph() ? "graph" : model.has_ir_version() ? "opset_import" : "ir_version";
  return absl::InvalidArgumentError(
      absl::StrCat("truncated at byte ", size, ", or no ONNX model: found no ", missing, ", wanted one"));
}

// Makes these values the graph's outputs, and removes the nodes that none of them needs.
absl::Status SelectOutputs(const std::vector<std::string>& outputs, GraphProto* graph) {
  auto* nodes = graph->mutable_node();
  HashMap<absl::string_view, int> definitions;
  std::vector<std::string> names;
  for (int i = 0; i < nodes->size(); ++i) {
    for (const std::string& name : nodes->Get(i).output()) {
      definitions.emplace(name, i);
      names.push_back(name);
    }
  }
  std::vector<absl::string_view> reached(outputs.begin(), outputs.end());
  for (const absl::string_view output : reached) {
    if (definitions.contains(output)) continue;
    return UsageError(
        absl::StrCat("output ", Quote(output), ": found no node that computes it", DidYouMean(output, names)));
  }
  std::vector<bool> needed(nodes->size());
  while (!reached.empty()) {
    const auto it = definitions.find(reached.back());
    reached.pop_back();
    if (it == definitions.end() || needed[it->second]) continue;
    needed[it->second] = true;
    for (const absl::string_view name : NamesRead(nodes->Get(it->second))) reached.push_back(name);
  }
  int kept = 0;
  for (int i = 0; i < nodes->size(); ++i) {
    if (needed[i]) nodes->SwapElements(kept++, i);
  }
  nodes->DeleteSubrange(kept, nodes->size() - kept);
  graph->clear_output();
  for (const std::string& output : outputs) graph->add_output()->set_name(output);
  return absl::OkStatus();
}

// `folder`: of external data; see Payloads.
absl::StatusOr<std::unique_ptr<ir::Graph>> ParseAndImport(const ByteSource& bytes, const std::string& folder,
                                                          const ir::OpRegistry& ops, const LoadOptions& options,
                                                          ModelProto* model) {
  Budget budget(options.max_memory_bytes);
  ASSIGN_OR_RETURN(Payloads payloads, ParseMessage(bytes, model, &budget));
  RETURN_IF_ERROR(CheckComplete(*model, bytes.size()));
  payloads.folder = folder;
  if (!options.outputs.empty()) RETURN_IF_ERROR(SelectOutputs(options.outputs, model->mutable_graph()));
  return Import(*model, payloads, ops, options, &budget);
}

void AddLocations(const schema::TensorProto& tensor, std::set<std::string>* locations) {
  if (tensor.data_location() != schema::TensorProto::EXTERNAL) return;
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
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const absl::StatusOr<FileRange> file = FileRange::OpenWhole(path);
  if (!file.ok()) return Annotate(file.status(), path);
  ModelProto model;
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ParseAndImport(*file, folder, ops, options, &model);
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
  ModelProto model;
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ParseAndImport(MemoryBytes(bytes), "", ops, options, &model);
  if (!graph.ok()) return Annotate(graph.status(), file);
  return graph;
}

absl::StatusOr<Tensor> ParseTensor(absl::string_view bytes, absl::string_view file, int64_t max_memory_bytes) {
  Budget budget(max_memory_bytes);
  const MemoryBytes source(bytes);
  schema::TensorProto proto;
  const absl::StatusOr<Payloads> payloads = ParseMessage(source, &proto, &budget);
  if (!payloads.ok()) return Annotate(payloads.status(), file);
  absl::StatusOr<Tensor> tensor = ToTensor(proto, *payloads, &budget);
  if (!tensor.ok()) return Annotate(tensor.status(), file);
  return tensor;
}

}  // namespace fuselage::onnx
