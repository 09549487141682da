#include "ir/testing/degenerate_graphs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fuselage::testing {
namespace {

using ir::Node;
using ir::OpSchema;

using Types = std::vector<std::optional<ir::Type>>;

// kIntegers: codes without parameters. kRows: i8 codes with f32 scales for rows or groups, and u8 weights.
enum class Values { kFloats, kCodes, kIntegers, kBooleans, kRows };

const std::vector<Shape>& Shapes() {
  static const auto& shapes = *new std::vector<Shape>{
      {},
      {0},
      {1},
      {2},
      {0, 4},  // No box of roi_align.
      {0, 1},
      {1, 0},
      {1, 1},
      {2, 2},
      {1, 256},  // int8.lookup's table.
      {1, 0, 2},
      {1, 1, 1},
      {1, 1, 4},  // A box of nms.
      {1, 3, 1},  // The weight of a gru of one unit.
      {1, 4, 1},  // An lstm's.
      {0, 1, 1},
      {1, 2, 2},
      {1, 1, 1, 1},
      {0, 1, 2, 1},
      {1, 0, 1, 1},
      {1, 2, 0, 1},
      {2, 2, 1, 2},
      {1, 1, 1, 1, 1},
      {1, 1, 0, 1, 2},
      {1, 2, 1, 2, 1},
  };
  return shapes;
}

// What an attribute of the kind may be; inference sorts out what fits.
std::vector<Attribute> Choices(AttributeKind kind) {
  using Ints = std::vector<int64_t>;
  switch (kind) {
    case AttributeKind::kBool: return {true, false};
    case AttributeKind::kInt: return {0, -1, 1};
    case AttributeKind::kInts:
      return {Ints{},     Ints{0},       Ints{1},          Ints{-1},         Ints{0, 0}, Ints{1, 1},
              Ints{0, 1}, Ints{1, 1, 1}, Ints{0, 0, 0, 0}, Ints{0, 2, 3, 1}, Ints{2, 2}, Ints{0, 0, 1, 0, 0, 0}};
    case AttributeKind::kFloat: return {1.0};
    case AttributeKind::kFloats: return {std::vector<double>{0.5}};
    case AttributeKind::kDType: return {DType::kF32, DType::kU8, DType::kI8};
    case AttributeKind::kStrings:
      return {std::vector<std::string>{"relu(0)"}, std::vector<std::string>{"add(0, 1)", "relu(2)"}};
    default: return {};
  }
}

bool SameLength(const Attribute& a, const Attribute& b) {
  if (a.kind() != AttributeKind::kInts || b.kind() != AttributeKind::kInts) return true;
  return a.as_ints().size() == b.as_ints().size();
}

// Every choice of the attributes without a default, and with the first of them each other attribute changed alone.
std::vector<AttributeMap> AttributeChoices(const OpSchema& op) {
  std::vector<AttributeMap> maps = {{}};
  for (const ir::AttributeSpec& spec : op.attributes) {
    if (spec.default_value) continue;
    std::vector<AttributeMap> longer;
    for (const AttributeMap& map : maps) {
      for (const Attribute& choice : Choices(spec.kind)) {
        if (!map.empty() && !SameLength(choice, map.begin()->second)) continue;  // As of kernel_size and stride.
        longer.push_back(map);
        longer.back().insert_or_assign(spec.name, choice);
      }
    }
    maps = std::move(longer);
  }
  const std::vector<AttributeMap> required = maps;
  for (const ir::AttributeSpec& spec : op.attributes) {
    if (!spec.default_value) continue;
    for (const Attribute& choice : Choices(spec.kind)) {
      if (choice == *spec.default_value) continue;
      for (const AttributeMap& map : required) {
        maps.push_back(map);
        maps.back().insert_or_assign(spec.name, choice);
      }
    }
  }
  return maps;
}

TensorType TypeOf(const ir::OperandSpec& operand, Values values, const Shape& shape) {
  if (values == Values::kIntegers) return {DType::kU8, shape, std::nullopt, Layout::kRowMajor};
  const auto is = [&](std::initializer_list<absl::string_view> names) {
    return std::find(names.begin(), names.end(), operand.name) != names.end();
  };
  if (values == Values::kBooleans || is({"condition"})) return {DType::kBool, shape, std::nullopt, Layout::kRowMajor};
  if (is({"index", "indices", "lengths", "sequence_lens"}))
    return {DType::kI64, shape, std::nullopt, Layout::kRowMajor};
  const bool bias = is({"bias", "input_scale"}) || (values == Values::kRows && is({"scale"}));
  if (values == Values::kRows && !bias) {
    return {operand.parameter ? DType::kU8 : DType::kI8, shape, std::nullopt, Layout::kRowMajor};
  }
  if (values == Values::kFloats || bias) return {DType::kF32, shape, std::nullopt, Layout::kRowMajor};
  if (operand.parameter) return {DType::kI8, shape, PerTensor(0.25f, 0), Layout::kRowMajor};
  return {DType::kU8, shape, PerTensor(0.5f, 3), Layout::kRowMajor};
}

class Enumeration {
 public:
  Enumeration(const ir::OpRegistry& ops, const OpSchema& op, Values values,
              const std::function<void(std::unique_ptr<ir::Graph> graph)>& visit)
      : ops_(ops),
        op_(op),
        has_parameters_(std::any_of(op.operands.begin(), op.operands.end(), [](const auto& o) { return o.parameter; })),
        values_(values),
        visit_(visit) {}

  // Chooses the types of the operands from `types.size()` on.
  void Extend(Types types, const std::vector<AttributeMap>& attributes) {
    const size_t i = types.size();
    const bool ends = i == op_.operands.size() + (Spec(i).variadic ? 1 : 0);
    const bool may_end = Spec(i).optional || i == op_.operands.size();
    if (ends) {
      for (const AttributeMap& map : Fitting(types, attributes)) visit_(Build(types, map));
      return;
    }
    // Where a layer is wrong without its optional operands, none makes it right.
    const bool first_optional = has_parameters_ && Spec(i).optional && !Spec(i - 1).optional;
    const std::vector<AttributeMap> left = first_optional ? Fitting(types, attributes) : attributes;
    if (left.empty()) return;
    types.emplace_back();
    if (may_end) Extend(types, left);
    constexpr size_t kFreeOptional = 2;  // Further ones are as the last of them.
    if (i >= kFreeOptional && Spec(i).optional && Spec(i - kFreeOptional).optional) {
      types[i] = types[i - 1];
      if (types[i]) Extend(types, left);
      return;
    }
    for (const Shape& shape : Shapes()) {
      types[i] = TypeOf(Spec(i), values_, shape);
      Extend(types, left);
    }
  }

 private:
  const ir::OperandSpec& Spec(size_t i) const { return op_.operands[std::min(i, op_.operands.size() - 1)]; }

  // Those of `maps` with which inference takes the operands.
  std::vector<AttributeMap> Fitting(const Types& types, const std::vector<AttributeMap>& maps) const {
    std::vector<const ir::Type*> pointers;
    for (const auto& type : types) pointers.push_back(type ? &*type : nullptr);
    while (!pointers.empty() && pointers.back() == nullptr) pointers.pop_back();
    std::vector<AttributeMap> fitting;
    for (const AttributeMap& map : maps) {
      if (ir::Infer(op_, map, pointers).ok()) fitting.push_back(map);
    }
    return fitting;
  }

  std::unique_ptr<ir::Graph> Build(const Types& types, const AttributeMap& attributes) {
    auto graph = std::make_unique<ir::Graph>("degenerate", ops_);
    std::vector<Node*> operands;
    for (size_t i = 0; i < types.size(); ++i) {
      Node* node = nullptr;
      if (types[i]) {
        const bool parameter = Spec(i).parameter;
        node = parameter ? AddConstant(*graph, Spec(i), types[i]->tensor(), i)
                         : *graph->AddPlaceholder("x", types[i]->tensor());
      }
      operands.push_back(node);
    }
    Node* call = *graph->AddFunction("y", op_.name, operands, attributes);
    std::vector<Node*> outputs = {call};
    if (call->type().is_tuple()) {
      outputs.clear();
      for (size_t i = 0; i < call->type().elements().size(); ++i) {
        outputs.push_back(*graph->AddFunction("e", "getitem", {call}, {{"index", static_cast<int64_t>(i)}}));
      }
    }
    FUSELAGE_CHECK(graph->AddOutput(outputs).ok());
    return graph;
  }

  static Node* AddConstant(ir::Graph& graph, const ir::OperandSpec& spec, const TensorType& type, uint64_t seed) {
    if (spec.name == "weight_scale") {  // E8M0, which seeded values leave.
      Tensor ones(type);
      for (int64_t i = 0; i < ones.num_elements(); ++i) ones.Set(i, 127);
      const std::string name = graph.AddParameter("p", std::make_shared<const Tensor>(std::move(ones)));
      return *graph.AddGetAttr(name, name);
    }
    const std::string name = graph.AddParameter("p", std::make_shared<const Tensor>(SeededTensor(type, seed)), seed);
    return *graph.AddGetAttr(name, name);
  }

  const ir::OpRegistry& ops_;
  const OpSchema& op_;
  const bool has_parameters_;
  const Values values_;
  const std::function<void(std::unique_ptr<ir::Graph> graph)>& visit_;
};

}  // namespace

void ForEachDegenerateCall(const ir::OpRegistry& ops, const OpSchema& op,
                           const std::function<void(std::unique_ptr<ir::Graph> graph)>& visit) {
  std::vector<Values> kinds = {Values::kFloats, Values::kCodes, Values::kIntegers, Values::kBooleans};
  if (op.OperandIndex("weight_scale") >= 0) kinds = {Values::kRows};
  if (op.OperandIndex("scale") >= 0) kinds.push_back(Values::kRows);
  for (const Values values : kinds) {
    Enumeration(ops, op, values, visit).Extend({}, AttributeChoices(op));
  }
}

}  // namespace fuselage::testing
