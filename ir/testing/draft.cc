#include "ir/testing/draft.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fuselage::testing {
namespace {

using ir::Node;
using ir::NodeKind;
using Ints = std::vector<int64_t>;

constexpr int64_t kMostElements = 600;
constexpr double kLargestMagnitude = 1e3;

bool OneOf(absl::string_view text, std::initializer_list<absl::string_view> choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

// Ops that select, move or compare: they add no rounding of their own.
bool KeepsExact(const ir::OpSchema& op) {
  return op.view != ir::View::kNone || op.keeps_range || absl::StartsWith(op.name, "int8.") ||
         OneOf(op.name, {"relu", "clamp", "split", "getitem", "pad", "dropout", "quantize", "dequantize",
                         "dequantize_mxfp4", "to"}) ||
         absl::StartsWith(op.name, "dynamic_quantize");
}

}  // namespace

Draft::Draft(uint64_t seed, const ir::OpRegistry& ops, const RandomGraphOptions& options)
    : random_(seed), options_(options), graph_(std::make_unique<ir::Graph>(absl::StrCat("random", seed), ops)) {
  const auto input = [this](DType dtype, Shape shape, std::optional<QuantParams> quant = std::nullopt) {
    Take(graph_->AddPlaceholder("x", {dtype, std::move(shape), std::move(quant), Layout::kRowMajor}));
  };
  const int64_t size = random_.Between(3, 6);
  input(DType::kF32, {random_.Between(1, 2), 4, size, size});
  if (random_.OneIn(2)) input(DType::kF32, {random_.Between(1, 3), random_.Between(4, 8)});
  if (random_.OneIn(3)) input(DType::kF32, {1, 2, random_.Between(4, 9)});
  if (random_.OneIn(3)) input(DType::kF32, {1, 2, 3, 3, 3});
  if (random_.OneIn(2)) input(DType::kI64, {random_.Between(1, 5)});
  if (random_.OneIn(3)) input(DType::kU8, {1, 4, 4, 4}, PerTensor(0.0078125f, 128));
  if (random_.OneIn(4)) input(DType::kI8, {3, 4}, PerAxis(0, {0.0078125f, 0.015625f, 0.03125f}));
  if (random_.OneIn(6)) input(DType::kF64, {1, 2, 3, 3});
}

Node* Draft::PickOrNull(const Condition& fits) {
  std::vector<Node*> found;
  for (Node* node : values_) {
    if (fits(*node)) found.push_back(node);
  }
  if (found.empty()) return nullptr;
  // One of the latest four, so that graphs grow deep; at times any, so that values have several users.
  const int64_t last = static_cast<int64_t>(found.size()) - 1;
  const int64_t first = random_.OneIn(3) ? 0 : std::max<int64_t>(0, last - 3);
  return found[random_.Between(first, last)];
}

Node* Draft::PickFloatOrNull(int low, int high) {
  return PickOrNull([&](const Node& node) {
    if (!node.type().is_tensor() || !IsFloat(node.tensor_type().dtype)) return false;
    const int rank = node.tensor_type().rank();
    return rank >= low && rank <= high && magnitude(node) <= kLargestMagnitude &&
           node.tensor_type().num_elements() <= kMostElements;
  });
}

Node* Draft::PickToRoundOrNull(int low, int high) {
  return PickOrNull([&](const Node& node) {
    if (!node.type().is_tensor() || node.tensor_type().dtype != DType::kF32) return false;
    const int rank = node.tensor_type().rank();
    return rank >= low && rank <= high && node.tensor_type().num_elements() <= kMostElements && MayRound(node);
  });
}

bool Draft::IsExact(const Node& node) const {
  if (!node.is_call()) return true;
  const bool integer = node.type().is_tensor() && !IsFloat(node.tensor_type().dtype);
  if (!integer && !KeepsExact(*node.op())) return false;
  for (const Node* operand : node.operands()) {
    if (operand != nullptr && !exact_.at(operand)) return false;
  }
  return true;
}

Node* Draft::Take(absl::StatusOr<Node*> added) {
  if (!added.ok()) return nullptr;
  Node* node = *added;
  double magnitude = 1;
  for (const Node* operand : node->operands()) {
    if (operand != nullptr) magnitude = std::max(magnitude, magnitude_.at(operand));
  }
  magnitude_[node] = magnitude;
  exact_[node] = IsExact(*node);
  values_.push_back(node);
  num_calls_ += node->is_call();
  return node;
}

Node* Draft::AddInRandomSpelling(const RandomCall& call) {
  const ir::OpSchema* op = graph_->ops().FindOrNull(call.op);
  if (op == nullptr) return nullptr;
  return op->module_form && random_.OneIn(2) ? AddAsModule(call) : AddAsFunctionOrMethod(call, *op);
}

Node* Draft::AddAsModule(const RandomCall& call) {
  const std::string path = graph_->UniqueModulePath(absl::StrCat("net.", call.op));
  absl::StatusOr<ir::Module*> module = graph_->AddModule(path, call.op, call.attributes, call.parameters);
  if (!module.ok()) return nullptr;
  Node* node = Take(graph_->AddModuleCall(call.op, path, call.operands));
  if (node == nullptr) graph_->EraseModule(*module);
  return node;
}

Node* Draft::AddAsFunctionOrMethod(const RandomCall& call, const ir::OpSchema& op) {
  std::vector<Node*> operands, constants;
  size_t next = 0;
  for (const ir::OperandSpec& spec : op.operands) {
    if (spec.variadic) break;
    if (!spec.parameter) {
      operands.push_back(next < call.operands.size() ? call.operands[next] : nullptr);
      ++next;
      continue;
    }
    const auto it = call.parameters.find(spec.name);
    operands.push_back(it == call.parameters.end() ? nullptr : AddGetAttr(it->second));
    if (operands.back() != nullptr) constants.push_back(operands.back());
  }
  while (next < call.operands.size()) operands.push_back(call.operands[next++]);

  std::vector<std::string> names = op.aliases;
  names.push_back(op.name);
  const std::string target = random_.From(names);
  // As torch.fx has it: "torch.relu" and "operator.iadd" are functions, "relu_" and "view" methods, "relu" is both.
  const bool has_parameters =
      std::any_of(op.operands.begin(), op.operands.end(), [](const ir::OperandSpec& spec) { return spec.parameter; });
  const bool dotted = absl::StrContains(target, ".");
  const bool method = !dotted && !has_parameters && (target != op.name || random_.OneIn(3));
  Node* node = Take(method ? graph_->AddMethod(op.name, target, operands, call.attributes)
                           : graph_->AddFunction(op.name, target, operands, call.attributes));
  if (node != nullptr) return node;
  for (Node* constant : constants) {
    values_.erase(std::find(values_.begin(), values_.end(), constant));
    graph_->Erase(constant);
  }
  return nullptr;
}

Node* Draft::AddFunction(absl::string_view op, std::vector<Node*> operands, AttributeMap attributes) {
  return Take(graph_->AddFunction(op, op, std::move(operands), std::move(attributes)));
}

Node* Draft::AddSharedCall(const ir::Module& module, std::vector<Node*> operands) {
  return Take(graph_->AddModuleCall(module.op->name, module.path, std::move(operands)));
}

Node* Draft::AddGetAttr(const std::string& parameter) { return Take(graph_->AddGetAttr(parameter, parameter)); }

std::string Draft::AddParameter(const std::string& name, Tensor value) {
  FUSELAGE_CHECK(value.num_elements() <= 16);  // More than a text shows.
  return graph_->AddParameter(name, std::make_shared<const Tensor>(std::move(value)));
}

std::string Draft::SeededParameter(const std::string& name, TensorType type) {
  const uint64_t seed = random_.Next() % 1000;
  return graph_->AddParameter(name, std::make_shared<const Tensor>(SeededTensor(std::move(type), seed)), seed);
}

std::string Draft::VectorParameter(const std::string& name, DType dtype, int64_t size,
                                   const std::vector<double>& values) {
  Tensor tensor(dtype, Shape{size});
  for (int64_t i = 0; i < size; ++i) tensor.Set(i, values[i % values.size()]);
  return AddParameter(name, std::move(tensor));
}

std::unique_ptr<ir::Graph> Draft::Finish() {
  std::vector<Node*> outputs;
  for (Node* node : values_) {
    if (!node->type().is_tensor() || !node->is_call()) continue;
    const bool sink = node->num_uses() == 0;
    if (sink ? !random_.OneIn(4) : random_.OneIn(12)) outputs.push_back(node);
  }
  if (outputs.empty()) outputs.push_back(values_.back());
  FUSELAGE_CHECK(graph_->AddOutput(outputs).ok());
  if (!random_.OneIn(4)) {  // What refused calls left behind.
    std::vector<std::string> unused;
    for (const auto& [name, parameter] : graph_->parameters()) {
      if (parameter.uses == 0) unused.push_back(name);
    }
    for (const std::string& name : unused) graph_->EraseParameter(name);
  }
  FUSELAGE_CHECK(graph_->Verify().ok());
  return std::move(graph_);
}

Node* AddRandomView(Draft& draft, Node* x) {
  Random& random = draft.random();
  const Shape shape = x->tensor_type().shape;
  const int rank = static_cast<int>(shape.size());
  if (rank == 0) return nullptr;
  switch (random.Between(0, 6)) {
    case 0: {  // Two neighbours become one.
      if (rank < 2) return nullptr;
      const int64_t axis = random.Between(0, rank - 2);
      Shape merged = shape;
      merged[axis] *= merged[axis + 1];
      merged.erase(merged.begin() + axis + 1);
      if (random.OneIn(3)) merged[random.Between(0, merged.size() - 1)] = -1;
      return draft.AddInRandomSpelling({"reshape", {x}, {}, {{"shape", merged}}});
    }
    case 1: {  // One becomes two.
      const int64_t axis = random.Between(0, rank - 1);
      if (rank > 4 || shape[axis] % 2 != 0) return nullptr;
      Shape halved = shape;
      halved[axis] /= 2;
      halved.insert(halved.begin() + axis + random.Between(0, 1), 2);
      return draft.AddInRandomSpelling({"reshape", {x}, {}, {{"shape", halved}}});
    }
    case 2: {
      const int64_t start = random.Between(0, rank - 1);
      return draft.AddInRandomSpelling(
          {"flatten",
           {x},
           {},
           {{"start_dim", start}, {"end_dim", random.OneIn(2) ? -1 : random.Between(start, rank - 1)}}});
    }
    case 3: {
      if (rank > 4) return nullptr;
      return draft.AddInRandomSpelling({"unsqueeze", {x}, {}, {{"dims", Ints{random.Between(-1, rank)}}}});
    }
    case 4: {
      Ints ones;
      for (int axis = 0; axis < rank; ++axis) {
        if (shape[axis] == 1 && random.OneIn(2)) ones.push_back(axis);
      }
      return draft.AddInRandomSpelling({"squeeze", {x}, {}, {{"dims", ones}}});
    }
    case 5: {
      const int64_t dim0 = random.Between(-rank, rank - 1), dim1 = random.Between(0, rank - 1);
      return draft.AddInRandomSpelling({"transpose", {x}, {}, {{"dim0", dim0}, {"dim1", dim1}}});
    }
    default: {
      Ints dims;
      for (int axis = 0; axis < rank; ++axis) dims.push_back(axis);
      if (!random.OneIn(6)) random.Shuffle(dims);
      return draft.AddInRandomSpelling({"permute", {x}, {}, {{"dims", dims}}});
    }
  }
}

}  // namespace fuselage::testing
