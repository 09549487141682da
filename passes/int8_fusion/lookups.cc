#include "passes/int8_fusion/lookups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/match/bytes.h"
#include "ir/match/sharing.h"
#include "passes/module_call/module_call.h"

namespace fuselage::int8_fusion {
namespace {

using ir::Node;

constexpr char kLookup[] = "int8.lookup";  // Its kernel runs any.
constexpr int64_t kBytes = 256;
constexpr int64_t kMostTables = 64;  // 16 KiB.

bool IsConstant(const Node* node) { return node->kind() == ir::NodeKind::kGetAttr; }

// The permute from pixels to planes that alone reads the value; null where there is none.
Node* ToPlanesOrNull(const Node& value) {
  if (!value.has_one_use() || value.tensor_type().rank() != 4) return nullptr;
  Node* user = value.users()[0];
  if (!user->IsOp("permute")) return nullptr;
  return user->attribute("dims").as_ints() == std::vector<int64_t>{0, 3, 1, 2} ? user : nullptr;
}

// How many values a constant has along `axis` of a tensor of `rank`; 0 where it varies along another one.
int64_t ValuesAlong(int axis, const Shape& constant, int rank) {
  int64_t values = 1;
  for (int i = 0; i < static_cast<int>(constant.size()); ++i) {
    if (constant[i] == 1) continue;
    if (rank - static_cast<int>(constant.size()) + i != axis) return 0;
    values = constant[i];
  }
  return values;
}

int ChannelAxis(const FusableLookup& fusable) { return fusable.to_planes != nullptr ? 3 : 1; }

// The codes of all bytes: the chain's evaluation on a batch of them, each with all channels.
absl::StatusOr<Tensor> TableOf(const FusableLookup& fusable) {
  const std::vector<Node*>& chain = fusable.chain;
  Shape shape(chain.front()->tensor_type().rank(), 1);
  shape[0] = kBytes;
  if (fusable.tables > 1) shape[ChannelAxis(fusable)] = fusable.tables;
  const TensorType bytes = {DType::kU8, shape, std::nullopt, Layout::kRowMajor};
  std::vector<Tensor> value = {Tensor(bytes)};
  for (int64_t i = 0; i < value[0].num_elements(); ++i) value[0].Set(i, i / fusable.tables);
  ir::Type type(bytes);
  for (const Node* node : chain) {
    std::vector<std::vector<Tensor>> constants(node->num_operands());
    std::vector<const std::vector<Tensor>*> operands;
    std::vector<const ir::Type*> types;
    for (int i = 0; i < node->num_operands(); ++i) {
      const Node* operand = node->operand(i);
      const bool constant = operand != nullptr && IsConstant(operand);
      if (constant) constants[i] = {*node->graph().FindParameterOrNull(operand->target())->tensor};
      operands.push_back(operand == nullptr ? nullptr : constant ? &constants[i] : &value);
      types.push_back(operand == nullptr ? nullptr : constant ? &operand->type() : &type);
    }
    ASSIGN_OR_RETURN(ir::Type result, ir::Infer(*node->op(), node->attributes(), std::move(types)));
    ASSIGN_OR_RETURN(value, ir::Evaluate(*node->op(), node->attributes(), std::move(operands), result));
    type = std::move(result);
  }
  Tensor table(TensorType{type.tensor().dtype, {fusable.tables, kBytes}, std::nullopt, Layout::kRowMajor});
  for (int64_t i = 0; i < table.num_elements(); ++i) {
    table.Set(i, value[0].At(i % kBytes * fusable.tables + i / kBytes));
  }
  return table;
}

}  // namespace

FusableLookup FusableLookupAt(Node* quantize, const kernels::KernelRegistry& kernels) {
  FusableLookup found;
  if (!quantize->IsOp("int8.quantize") || quantize->tensor_type().shape.empty()) return {};
  found.chain = match::ChainFromBytes(*quantize);
  if (found.chain.empty()) return {};
  found.chain.push_back(quantize);
  found.to_planes = ToPlanesOrNull(*quantize);
  if (kernels.FindOrNull(kLookup) == nullptr) found.why_not = absl::StrCat("no kernel for ", kLookup);
  for (size_t i = 0; i + 1 < found.chain.size() && found.why_not.empty(); ++i) {
    const Node &node = *found.chain[i], &next = *found.chain[i + 1];
    const bool alone = node.users() == std::vector<Node*>{found.chain[i + 1]};
    found.why_not = alone ? match::SharedModule(node) : match::SharedBesides(node, next);
  }
  for (const Node* node : found.chain) {
    for (const Node* operand : node->operands()) {
      if (operand == nullptr || !IsConstant(operand)) continue;
      const Shape& constant = operand->tensor_type().shape;
      const int64_t values = ValuesAlong(ChannelAxis(found), constant, quantize->tensor_type().rank());
      found.tables = std::max(found.tables, values);
      if (values == 0) {
        found.why_not = absl::StrCat("%", operand->name(), " varies along other axes than the channels'");
      }
    }
  }
  if (found.tables > kMostTables && found.why_not.empty()) {
    found.why_not = absl::StrCat("a table for each of ", found.tables, " channels, wanted at most ", kMostTables);
  }
  return found;
}

absl::StatusOr<Node*> FuseLookup(const FusableLookup& fusable, ir::Graph& graph, passes::Remarks& remarks) {
  Node *const to = fusable.chain.front(), *const quantize = fusable.chain.back();
  std::vector<Node*> chain = fusable.chain;
  Node* x = to->operand(0);
  if (Node* permute = fusable.to_planes) {
    chain.push_back(permute);
    ASSIGN_OR_RETURN(x, graph.AddFunction(permute->name(), "permute", {x}, {{"dims", permute->attribute("dims")}}, to));
  }
  module_call::Call call = {kLookup, {}, {}, {x}};
  for (const ir::AttributeSpec& spec : graph.ops().FindOrNull(call.op)->attributes) {
    call.attributes.emplace(spec.name, quantize->attribute(spec.name));
  }
  ASSIGN_OR_RETURN(Tensor table, TableOf(fusable));
  call.parameters["table"] =
      graph.AddParameter(absl::StrCat(quantize->name(), ".table"), std::make_shared<const Tensor>(std::move(table)));
  const std::string names = absl::StrCat("%", to->name(), " to %", quantize->name());
  const std::string path = quantize->module() != nullptr ? quantize->module()->path : quantize->name();
  ASSIGN_OR_RETURN(Node * node, module_call::Replace(chain, path, std::move(call), graph));
  remarks.Applied(*node, absl::StrCat(names, " as int8.lookup, ",
                                      fusable.tables == 1 ? "one table" : absl::StrCat(fusable.tables, " tables")));
  return node;
}

}  // namespace fuselage::int8_fusion
