#include "frontend/onnx/structure.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/onnx/call.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using schema::GraphProto;
using schema::ModelProto;
using schema::NodeProto;

using Imports = google::protobuf::RepeatedPtrField<schema::OperatorSetIdProto>;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

// 0 where no version of the default domain is named, which is legal for a model
// without nodes of it.
absl::StatusOr<int> FindOpset(const Imports& imports) {
  HashSet<std::string> seen;
  int64_t opset = 0;
  for (const auto& import : imports) {
    const std::string domain = IsDefaultDomain(import.domain()) ? "" : import.domain();
    if (!seen.insert(domain).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("found two opset_import of the domain ", Quote(domain), ", wanted one"));
    }
    if (!domain.empty()) continue;
    opset = import.version();
    if (opset < 1) return absl::InvalidArgumentError(absl::StrCat("found opset ", opset, ", wanted one > 0"));
    if (opset > kNewestOpset) {
      return absl::UnimplementedError(
          absl::StrCat("found opset ", opset, ", wanted ", kOldestOpset, " to ", kNewestOpset));
    }
  }
  if (seen.empty()) {
    return absl::InvalidArgumentError("found no opset_import, wanted the version of each domain");
  }
  return static_cast<int>(opset);
}

struct Unsupported {
  int count = 0;
  std::string first;
};

// Finds the operators that are unknown, by name; looks into each function once.
class OperatorCheck {
 public:
  explicit OperatorCheck(const Functions& functions) : functions_(functions) {}

  void Visit(const Nodes& nodes, int opset) {
    for (const NodeProto& node : nodes) {
      if (const Function* function = FindFunctionOrNull(functions_, node); function != nullptr) {
        if (visited_.insert(function).second) Visit(function->proto->node(), function->opset);
      } else {
        VisitOperator(node, opset);
      }
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) Visit(attribute.g().node(), opset);
        for (const GraphProto& subgraph : attribute.graphs()) Visit(subgraph.node(), opset);
      }
    }
  }

  absl::Status status() const {
    if (found_.empty()) return absl::OkStatus();
    std::vector<std::string> lines;
    for (const auto& [what, entry] : found_) {
      lines.push_back(absl::StrCat(Quote(what), ": ", entry.count,
                                   entry.count == 1 ? " node, first " : " nodes, first ", entry.first));
    }
    return absl::UnimplementedError(absl::StrCat("found ", found_.size(), " unsupported operator",
                                                 lines.size() == 1 ? "" : "s", ":\n  ", absl::StrJoin(lines, "\n  ")));
  }

 private:
  void VisitOperator(const NodeProto& node, int opset) {
    const Converter* converter = FindConverterOrNull(node.domain(), node.op_type());
    std::string what;
    if (converter == nullptr) {
      what = absl::StrCat(IsDefaultDomain(node.domain()) ? "" : node.domain() + ".",
                          node.op_type().empty() ? "(no operator)" : node.op_type());
    } else if (IsDefaultDomain(node.domain()) && opset < converter->since) {
      what = absl::StrCat(node.op_type(), " of opset ", opset, " (supported from ", converter->since, " on)");
    }
    if (what.empty()) return;
    Unsupported& entry = found_[what];
    if (++entry.count == 1) entry.first = NodeLabel(node);
  }

  const Functions& functions_;
  HashSet<const Function*> visited_;
  std::map<std::string, Unsupported> found_;
};

absl::Status CheckArity(absl::string_view what, int found, Arity wanted) {
  if (found >= wanted.least && found <= wanted.most) return absl::OkStatus();
  const std::string limits = wanted.most == kAnyNumber     ? absl::StrCat("at least ", wanted.least)
                             : wanted.least == wanted.most ? absl::StrCat(wanted.least)
                                                           : absl::StrCat(wanted.least, " to ", wanted.most);
  return absl::InvalidArgumentError(absl::StrCat("found ", found, " ", what, ", wanted ", limits));
}

absl::Status CheckNode(const NodeProto& node, const Functions& functions) {
  if (const Function* function = FindFunctionOrNull(functions, node); function != nullptr) {
    RETURN_IF_ERROR(CheckArity("inputs", node.input_size(), {0, function->proto->input_size()}));
    return CheckArity("outputs", node.output_size(), {0, function->proto->output_size()});
  }
  const Converter& converter = *FindConverterOrNull(node.domain(), node.op_type());
  RETURN_IF_ERROR(CheckArity("inputs", node.input_size(), converter.inputs));
  RETURN_IF_ERROR(CheckArity("outputs", node.output_size(), converter.outputs));
  for (int i = 0; i < converter.inputs.least; ++i) {
    if (node.input(i).empty()) return absl::InvalidArgumentError(absl::StrCat("found input ", i, " absent, wanted it"));
  }
  return CheckAttributes(node, converter.attributes);
}

// Who defines each name: a node's index, or -1 for an input or initializer.
using Definitions = HashMap<absl::string_view, int>;

absl::StatusOr<Definitions> FindDefinitions(const GraphProto& graph) {
  Definitions definitions;
  for (const auto& input : graph.input()) {
    if (input.name().empty()) return absl::InvalidArgumentError("found a graph input without a name, wanted a name");
    if (!definitions.emplace(input.name(), -1).second) {
      return absl::InvalidArgumentError(absl::StrCat("found two graph inputs ", Quote(input.name()), ", wanted one"));
    }
  }
  HashSet<absl::string_view> initializers;
  for (const auto& initializer : graph.initializer()) {
    if (initializer.name().empty()) {
      return absl::InvalidArgumentError("found an initializer without a name, wanted a name");
    }
    if (!initializers.insert(initializer.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("found two initializers ", Quote(initializer.name()), ", wanted one"));
    }
    definitions.emplace(initializer.name(), -1);  // An input's default value has the input's name.
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& output : graph.node(i).output()) {
      if (output.empty()) continue;
      if (!definitions.emplace(output, i).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(NodePlace(graph.node(i)), ": found a second definition of ", Quote(output), ", wanted one"));
      }
    }
  }
  return definitions;
}

// Kahn's algorithm; among the nodes that are ready, the first of the file goes
// first.
absl::StatusOr<std::vector<const NodeProto*>> Sort(const GraphProto& graph, const Definitions& definitions,
                                                   bool nested) {
  std::vector<int> pending(graph.node_size());
  std::vector<std::vector<int>> readers(graph.node_size());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const absl::string_view input : NamesRead(graph.node(i))) {
      const auto it = definitions.find(input);
      if (it == definitions.end() && nested) continue;
      if (it == definitions.end()) {
        return absl::InvalidArgumentError(absl::StrCat(NodePlace(graph.node(i)), ": found the undefined input ",
                                                       Quote(input),
                                                       ", wanted a graph input, an initializer or a node's output"));
      }
      if (it->second < 0) continue;
      readers[it->second].push_back(i);
      ++pending[i];
    }
    if (pending[i] == 0) ready.push(i);
  }
  std::vector<const NodeProto*> order;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(&graph.node(i));
    for (int reader : readers[i]) {
      if (--pending[reader] == 0) ready.push(reader);
    }
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    if (pending[i] > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodePlace(graph.node(i)), ": found a cycle that reaches it, wanted none"));
    }
  }
  return order;
}

// What a subgraph reads and does not define.
void AddFreeNames(const GraphProto& graph, std::vector<absl::string_view>* names) {
  HashSet<absl::string_view> own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& initializer : graph.initializer()) own.insert(initializer.name());
  for (const NodeProto& node : graph.node())
    for (const std::string& output : node.output()) own.insert(output);
  const auto add = [&](absl::string_view name) {
    if (!own.contains(name)) names->push_back(name);
  };
  for (const NodeProto& node : graph.node()) {
    for (const absl::string_view name : NamesRead(node)) add(name);
  }
  for (const auto& output : graph.output()) add(output.name());
}

// Each function with its opset, which is the model's where it names none.
absl::StatusOr<Functions> FindFunctions(const ModelProto& model, int opset) {
  Functions functions;
  for (const auto& proto : model.functions()) {
    Function function{&proto, opset};
    if (proto.opset_import_size() > 0) {
      ASSIGN_OR_RETURN(function.opset, FindOpset(proto.opset_import()));
    }
    const std::string domain = IsDefaultDomain(proto.domain()) ? "" : proto.domain();
    if (!functions.emplace(std::make_pair(domain, proto.name()), function).second) {
      return absl::InvalidArgumentError(absl::StrCat("found two functions ", Quote(proto.name()), ", wanted one"));
    }
  }
  return functions;
}

}  // namespace

std::string NodePlace(const NodeProto& node) {
  return absl::StrCat("node ", NodeLabel(node), " (", node.op_type().empty() ? "no operator" : node.op_type(), ")");
}

const Function* FindFunctionOrNull(const Functions& functions, const NodeProto& node) {
  if (functions.empty()) return nullptr;
  const auto it = functions.find({IsDefaultDomain(node.domain()) ? "" : node.domain(), node.op_type()});
  return it == functions.end() ? nullptr : &it->second;
}

std::vector<absl::string_view> NamesRead(const NodeProto& node) {
  std::vector<absl::string_view> names;
  for (const std::string& input : node.input()) {
    if (!input.empty()) names.push_back(input);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) AddFreeNames(attribute.g(), &names);
  }
  return names;
}

absl::StatusOr<Structure> CheckStructure(const ModelProto& model) {
  if (!model.has_graph()) return absl::InvalidArgumentError("found no graph, wanted one");
  const GraphProto& graph = model.graph();
  Structure structure;
  ASSIGN_OR_RETURN(structure.opset, FindOpset(model.opset_import()));
  ASSIGN_OR_RETURN(structure.functions, FindFunctions(model, structure.opset));
  OperatorCheck operators(structure.functions);
  operators.Visit(graph.node(), structure.opset);
  RETURN_IF_ERROR(operators.status());
  const auto is_default = [&](const NodeProto& node) {
    return IsDefaultDomain(node.domain()) && FindFunctionOrNull(structure.functions, node) == nullptr;
  };
  if (structure.opset == 0 && std::any_of(graph.node().begin(), graph.node().end(), is_default)) {
    return absl::InvalidArgumentError("found no opset_import of the default domain, wanted one");
  }
  if (graph.output_size() == 0) return absl::InvalidArgumentError("found no graph output, wanted at least one");
  return structure;
}

absl::StatusOr<Body> CheckBody(const GraphProto& graph, const Functions& functions, bool nested) {
  if (graph.sparse_initializer_size() > 0) {
    return absl::UnimplementedError(absl::StrCat(
        "found the sparse initializer ", Quote(graph.sparse_initializer(0).values().name()), ", wanted dense ones"));
  }
  for (const NodeProto& node : graph.node()) RETURN_IF_ERROR(Annotate(CheckNode(node, functions), NodePlace(node)));
  ASSIGN_OR_RETURN(const Definitions definitions, FindDefinitions(graph));
  Body body;
  ASSIGN_OR_RETURN(body.order, Sort(graph, definitions, nested));
  for (const NodeProto& node : graph.node()) {
    for (const absl::string_view name : NamesRead(node)) ++body.uses[name];
  }
  for (const auto& output : graph.output()) {
    if (!nested && definitions.find(output.name()) == definitions.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("found the undefined graph output ", Quote(output.name()), ", wanted a node's output"));
    }
    ++body.uses[output.name()];
  }
  return body;
}

}  // namespace fuselage::onnx
