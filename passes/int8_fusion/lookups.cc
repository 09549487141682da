#include "passes/int8_fusion/lookups.h"

#include <algorithm>
#include <map>
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
constexpr size_t kMostNodes = 8;     // That make one table of codes.
constexpr int64_t kLeastOperations = 2;  // An element: a kernel of one is no slower than a table.

bool IsParameter(const Node* node) { return node->kind() == ir::NodeKind::kGetAttr; }
// Or its codes.
bool IsConstant(const Node* node) {
  return IsParameter(node) || (node->IsOp("int8.quantize") && IsParameter(node->operand(0)));
}

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

struct Value {
  ir::Type type;
  std::vector<Tensor> tensors;
};
using Values = std::map<const Node*, Value>;

// Adds the node's value, and those that it is computed of.
absl::Status Evaluate(const Node* node, Values& values) {
  if (values.count(node) > 0) return absl::OkStatus();
  if (IsParameter(node)) {
    const Tensor& constant = *node->graph().FindParameterOrNull(node->target())->tensor;
    values.emplace(node, Value{node->type(), {constant}});
    return absl::OkStatus();
  }
  std::vector<const std::vector<Tensor>*> operands;
  std::vector<const ir::Type*> types;
  for (const Node* operand : node->operands()) {
    if (operand != nullptr) RETURN_IF_ERROR(Evaluate(operand, values));
    operands.push_back(operand == nullptr ? nullptr : &values.at(operand).tensors);
    types.push_back(operand == nullptr ? nullptr : &values.at(operand).type);
  }
  ASSIGN_OR_RETURN(ir::Type type, ir::Infer(*node->op(), node->attributes(), std::move(types)));
  ASSIGN_OR_RETURN(std::vector<Tensor> tensors,
                   ir::Evaluate(*node->op(), node->attributes(), std::move(operands), type));
  values.emplace(node, Value{std::move(type), std::move(tensors)});
  return absl::OkStatus();
}

// The codes of all bytes: the chain's evaluation on a batch of them, each with all channels.
absl::StatusOr<Tensor> TableOf(const FusableLookup& fusable) {
  const std::vector<Node*>& chain = fusable.chain;
  Shape shape(chain.front()->tensor_type().rank(), 1);
  shape[0] = kBytes;
  if (fusable.tables > 1) shape[ChannelAxis(fusable)] = fusable.tables;
  TensorType bytes = fusable.input->tensor_type();
  bytes.shape = std::move(shape);
  Values values;
  Tensor& all = values.emplace(fusable.input, Value{ir::Type(bytes), {Tensor(bytes)}}).first->second.tensors[0];
  for (int64_t i = 0; i < all.num_elements(); ++i) {
    static_cast<uint8_t*>(all.raw_data())[i] = static_cast<uint8_t>(i / fusable.tables);
  }
  RETURN_IF_ERROR(Evaluate(chain.back(), values));
  const Tensor& result = values.at(chain.back()).tensors[0];
  Tensor table(TensorType{result.dtype(), {fusable.tables, kBytes}, std::nullopt, Layout::kRowMajor});
  for (int64_t i = 0; i < table.num_elements(); ++i) {
    table.Set(i, result.At(i % kBytes * fusable.tables + i / kBytes));
  }
  return table;
}

// The `to` and what follows it, up to the quantize.
FusableLookup OfBytes(Node* quantize) {
  FusableLookup found;
  if (!quantize->IsOp("int8.quantize") || quantize->tensor_type().shape.empty()) return {};
  found.chain = match::ChainFromBytes(*quantize);
  if (found.chain.empty()) return {};
  found.input = found.chain.front()->operand(0);
  found.chain.push_back(quantize);
  found.to_planes = ToPlanesOrNull(*quantize);
  return found;
}

bool IsCodes(const Node* value) {
  if (value == nullptr || !value->type().is_tensor()) return false;
  const TensorType& type = value->tensor_type();
  return type.quant && type.quant->per_tensor() && ByteSize(type.dtype) == 1;
}

bool IsFunctionOfCodes(const Node& node) {
  const bool has_parameters = node.module() != nullptr && !node.module()->parameters.empty();
  if (node.op() == nullptr || !node.op()->elementwise || has_parameters || !IsCodes(&node)) return false;
  const std::vector<Node*> operands = node.operands();
  return std::all_of(operands.begin(), operands.end(), IsCodes);
}

// The operators that make `last` of the codes of one value, and are read by each other alone.
FusableLookup CollectedAt(Node* last) {
  if (!IsFunctionOfCodes(*last) || last->tensor_type().shape.empty()) return {};
  FusableLookup found;
  found.chain = {last};
  for (size_t i = 0; i < found.chain.size(); ++i) {
    for (Node* operand : found.chain[i]->operands()) {
      const bool known = std::count(found.chain.begin(), found.chain.end(), operand) > 0;
      if (IsConstant(operand) || operand == found.input || known) continue;
      const bool inside =
          IsFunctionOfCodes(*operand) && operand->users().size() == 1 && found.chain.size() < kMostNodes;
      if (inside) {
        found.chain.push_back(operand);
      } else if (found.input == nullptr) {
        found.input = operand;
      } else {
        return {};
      }
    }
  }
  if (found.input == nullptr || found.input->tensor_type().shape != last->tensor_type().shape) return {};
  std::reverse(found.chain.begin(), found.chain.end());
  double operations = 0;
  for (const Node* node : found.chain) operations += last->graph().CostOf(*node).operations;
  const double elements = static_cast<double>(last->tensor_type().num_elements());
  return operations < kLeastOperations * elements ? FusableLookup() : found;
}

// Says why it cannot be one node, where it cannot.
FusableLookup Checked(FusableLookup found, const Node* last, const kernels::KernelRegistry& kernels) {
  if (found.chain.empty()) return {};
  if (kernels.FindOrNull(kLookup) == nullptr) found.why_not = absl::StrCat("no kernel for ", kLookup);
  for (size_t i = 0; i + 1 < found.chain.size() && found.why_not.empty(); ++i) {
    // None has a module with parameters: who else calls it does not matter.
    const Node &node = *found.chain[i], &next = *found.chain[i + 1];
    if (node.users().size() > 1) found.why_not = match::SharedBesides(node, next);
  }
  for (const Node* node : found.chain) {
    for (const Node* operand : node->operands()) {
      if (operand == nullptr || !IsConstant(operand)) continue;
      const Shape& constant = operand->tensor_type().shape;
      const int64_t values = ValuesAlong(ChannelAxis(found), constant, last->tensor_type().rank());
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

}  // namespace

FusableLookup LookupOfBytesAt(Node* last, const kernels::KernelRegistry& kernels) {
  return Checked(OfBytes(last), last, kernels);
}

FusableLookup LookupOfCodesAt(Node* last, const kernels::KernelRegistry& kernels) {
  return Checked(CollectedAt(last), last, kernels);
}

absl::StatusOr<Node*> FuseLookup(const FusableLookup& fusable, ir::Graph& graph, passes::Remarks& remarks) {
  Node *const first = fusable.chain.front(), *const last = fusable.chain.back();
  std::vector<Node*> chain = fusable.chain;
  Node* x = fusable.input;
  if (Node* permute = fusable.to_planes) {
    chain.push_back(permute);
    ASSIGN_OR_RETURN(x,
                     graph.AddFunction(permute->name(), "permute", {x}, {{"dims", permute->attribute("dims")}}, first));
  }
  module_call::Call call = {kLookup, {}, {}, {x}};
  for (const ir::AttributeSpec& spec : graph.ops().FindOrNull(call.op)->attributes) {
    call.attributes.emplace(spec.name, last->attribute(spec.name));
  }
  ASSIGN_OR_RETURN(Tensor table, TableOf(fusable));
  call.parameters["table"] =
      graph.AddParameter(absl::StrCat(last->name(), ".table"), std::make_shared<const Tensor>(std::move(table)));
  const std::string names = absl::StrCat("%", first->name(), " to %", last->name());
  const std::string path = last->module() != nullptr ? last->module()->path : last->name();
  ASSIGN_OR_RETURN(Node * node, module_call::Replace(chain, path, std::move(call), graph));
  remarks.Applied(*node, absl::StrCat(names, " as int8.lookup, ",
                                      fusable.tables == 1 ? "one table" : absl::StrCat(fusable.tables, " tables")));
  return node;
}

}  // namespace fuselage::int8_fusion
