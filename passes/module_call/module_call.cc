#include "passes/module_call/module_call.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::module_call {

using ir::Node;

namespace {

struct Described {
  kernels::KernelDesc desc;
  ir::Type type;  // Of its result.
};

absl::StatusOr<Described> Describe(const Call& call, const ir::Graph& graph, const ir::OpSchema& schema,
                                   const kernels::KernelEntry& entry) {
  // Kernels take tensors of rank 4 as NHWC; the runtime arranges it.
  const auto at_run_time = [&entry](TensorType type) {
    if (type.rank() == 4 && entry.layout != kernels::LayoutRule::kRowMajor) type.layout = Layout::kNhwc;
    return type;
  };
  kernels::KernelDesc desc;
  desc.op = call.op;
  desc.isa = kernels::BestIsa();
  desc.attributes = call.attributes;
  std::vector<const ir::Type*> types;
  size_t next = 0;
  const auto take = [&] {
    const Node* value = next < call.operands.size() ? call.operands[next] : nullptr;
    ++next;
    types.push_back(value == nullptr ? nullptr : &value->type());
    desc.inputs.push_back(value == nullptr ? std::nullopt : std::make_optional(at_run_time(value->tensor_type())));
  };
  for (const ir::OperandSpec& spec : schema.operands) {
    if (spec.variadic) break;
    if (!spec.parameter) {
      take();
    } else if (const auto name = call.parameters.find(spec.name); name != call.parameters.end()) {
      const ir::Parameter& parameter = *graph.FindParameterOrNull(name->second);
      types.push_back(&parameter.type);
      desc.parameters[spec.name] = parameter.tensor.get();
    } else {
      types.push_back(nullptr);
    }
  }
  while (next < call.operands.size()) take();
  while (!types.empty() && types.back() == nullptr) types.pop_back();
  ASSIGN_OR_RETURN(ir::Type type, ir::Infer(schema, desc.attributes, std::move(types)));
  for (const TensorType& element : type.elements()) desc.outputs.push_back(at_run_time(element));
  return Described{std::move(desc), std::move(type)};
}

}  // namespace

absl::StatusOr<Accepted> Ask(const Call& call, const ir::Graph& graph, const kernels::KernelRegistry& kernels) {
  const ir::OpSchema* schema = graph.ops().FindOrNull(call.op);
  const kernels::KernelEntry* entry = kernels.FindOrNull(call.op);
  if (schema == nullptr || entry == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no ", schema == nullptr ? "operator " : "kernel for ", call.op));
  }
  ASSIGN_OR_RETURN(Described described, Describe(call, graph, *schema, *entry));
  ASSIGN_OR_RETURN(std::string variant, entry->Supports(described.desc));
  return Accepted{std::move(described.type), std::move(variant)};
}

std::vector<std::string> VariantsOf(const Node& node, const kernels::KernelRegistry& kernels) {
  const kernels::KernelEntry* entry = kernels.FindOrNull(node.op()->name);
  if (entry == nullptr || entry->variants == nullptr) return {};
  Call call = {node.op()->name, {}, node.module()->parameters, node.operands()};
  for (const ir::AttributeSpec& spec : node.op()->attributes)
    call.attributes.emplace(spec.name, node.attribute(spec.name));
  const absl::StatusOr<Described> described = Describe(call, node.graph(), *node.op(), *entry);
  return described.ok() ? entry->variants(described->desc) : std::vector<std::string>();
}

absl::StatusOr<Node*> Replace(const std::vector<Node*>& chain, std::string path, Call call, ir::Graph& graph) {
  const std::string name = chain.back()->name();
  Node* const before = chain.back()->next();
  std::vector<std::string> sources;
  for (const Node* node : chain) {
    for (std::string& source : node->SourcesOrSelf()) sources.push_back(std::move(source));
  }
  const std::vector<ir::Use> uses = Detach(*chain.back());
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) EraseWithModule(*it, graph);
  path = graph.UniqueModulePath(path);
  RETURN_IF_ERROR(graph.AddModule(path, call.op, std::move(call.attributes), std::move(call.parameters)).status());
  ASSIGN_OR_RETURN(Node * replacement, graph.AddModuleCall(name, path, std::move(call.operands), before));
  Attach(uses, replacement);
  replacement->AddSources(sources);
  return replacement;
}

std::vector<ir::Use> Detach(const Node& value) {
  std::vector<ir::Use> uses = value.uses();
  for (const ir::Use& use : uses) use.user->set_operand(use.index, nullptr);
  return uses;
}

void Attach(const std::vector<ir::Use>& uses, Node* value) {
  for (const ir::Use& use : uses) use.user->set_operand(use.index, value);
}

void EraseWithModule(Node* node, ir::Graph& graph) {
  ir::Module* const module = node->module();
  graph.Erase(node);
  if (module != nullptr && module->call_sites.empty()) graph.EraseModule(module);
}

}  // namespace fuselage::module_call
