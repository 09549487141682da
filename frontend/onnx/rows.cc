#include "frontend/onnx/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

using Ints = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t Product(const Shape& shape, size_t begin, size_t end) {
  return std::accumulate(shape.begin() + begin, shape.begin() + end, int64_t{1}, std::multiplies<>());
}

int Normalized(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

// The axes that a list of attributes names; all where it is empty.
bool Names(const Ints& axes, int axis, int rank) {
  return axes.empty() ||
         std::any_of(axes.begin(), axes.end(), [=](int64_t named) { return Normalized(named, rank) == axis; });
}

// The attribute, or the schema's default.
const Attribute* FindOrNull(const ir::OpSchema& schema, const AttributeMap& attributes, absl::string_view name) {
  const auto it = attributes.find(std::string(name));
  if (it != attributes.end()) return &it->second;
  const ir::AttributeSpec* spec = schema.FindAttributeOrNull(name);
  return spec == nullptr || !spec->default_value ? nullptr : &*spec->default_value;
}

// A call, as what follows asks for it.
struct Call {
  Builder& builder;
  const std::string& name;
  const ir::OpSchema& schema;
  std::vector<Value> operands;
  AttributeMap attributes;
  const std::vector<bool>* wanted;

  bool Is(absl::string_view op) const { return schema.name == op; }
  const Attribute& Get(absl::string_view attribute) const { return *FindOrNull(schema, attributes, attribute); }
  const Shape& shape(int i) const { return operands[i].shape(); }
  int rank(int i) const { return operands[i].type().rank(); }
  // The axis that an attribute names, of operand 0; -1 where there is no such attribute.
  int dim() const {
    const Attribute* found = FindOrNull(schema, attributes, "dim");
    if (found == nullptr || found->kind() != AttributeKind::kInt || !operands[0].present()) return -1;
    return Normalized(found->as_int(), rank(0));
  }
  bool HasRowsAlong(int i, int axis) const {
    return operands[i].rows.count != nullptr && operands[i].rows.axis == axis;
  }

  absl::StatusOr<Value> Helper(absl::string_view suffix, absl::string_view target, const std::vector<Value>& inputs,
                               AttributeMap with = {}) const {
    return builder.Emit(absl::StrCat(name, ".", suffix), target, inputs, std::move(with));
  }
  absl::StatusOr<Value> Constant(absl::string_view suffix, Tensor tensor) const {
    return builder.ChargedConstant(absl::StrCat(name, ".", suffix), std::move(tensor));
  }
  absl::StatusOr<Value> Number(absl::string_view suffix, int64_t number) const {
    return Constant(suffix, Tensor::Of<int64_t>({1}, {number}));
  }
  // The call as it is, whatever rows its operands have.
  absl::StatusOr<std::vector<Value>> Emit() const {
    if (wanted != nullptr) return builder.EmitTupleAsIs(name, schema.name, operands, attributes, *wanted);
    ASSIGN_OR_RETURN(Value value, builder.EmitAsIs(name, schema.name, operands, attributes));
    return std::vector<Value>{std::move(value)};
  }
};

// A count, i64[1], as a value without rows.
Value CountOf(ir::Node* count) { return {count->name(), nullptr, count}; }

// A part of a key.
std::string KeyOf(const ir::Node* node) { return absl::StrCat(reinterpret_cast<uintptr_t>(node), ","); }

// min(count, end) - start, at least 0: how many of the first `count` rows are in [start, end).
absl::StatusOr<ir::Node*> Within(const Call& call, ir::Node* count, int64_t start, int64_t end) {
  const std::string key = absl::StrCat("within ", KeyOf(count), start, ",", end);
  if (const Value* made = call.builder.MadeOrNull(key); made != nullptr) return made->node;
  ASSIGN_OR_RETURN(const Value most, call.Number("end", end));
  ASSIGN_OR_RETURN(Value number, call.Helper("count", "minimum", {CountOf(count), most}));
  if (start > 0) {
    ASSIGN_OR_RETURN(const Value first, call.Number("start", start));
    ASSIGN_OR_RETURN(number, call.Helper("count", "maximum", {number, first}));
    ASSIGN_OR_RETURN(number, call.Helper("count", "sub", {number, first}));
  }
  return call.builder.KeepMade(key, number).node;
}

// count * by, or with an `over` that is not 1 the number whose product with it the count is.
absl::StatusOr<ir::Node*> Scaled(const Call& call, ir::Node* count, int64_t by, int64_t over) {
  const auto key = [](const ir::Node* of, int64_t times, int64_t by) {
    return absl::StrCat("scaled ", KeyOf(of), times, "/", by);
  };
  if (const Value* made = call.builder.MadeOrNull(key(count, by, over)); made != nullptr) return made->node;
  ASSIGN_OR_RETURN(const Value factor, call.Number("factor", by * over));
  ASSIGN_OR_RETURN(const Value scaled, call.Helper("count", over > 1 ? "div" : "mul", {CountOf(count), factor}));
  call.builder.KeepMade(key(scaled.node, over, by), CountOf(count));
  return call.builder.KeepMade(key(count, by, over), scaled).node;
}

// The rows of a value of this shape under another, in which each is `by` rows, or `over` rows are one; none where there
// is an axis before them.
absl::StatusOr<std::optional<Value::Rows>> Regrouped(const Call& call, const Value::Rows& rows, const Shape& shape,
                                                     const Shape& result) {
  const int64_t room = shape[rows.axis];
  if (call.schema.view != ir::View::kSameOrder || room == 0 || Product(shape, 0, rows.axis) != 1) return std::nullopt;
  const auto to = std::find_if(result.begin(), result.end(), [](int64_t size) { return size != 1; });
  if (to == result.end() || *to == 0 || (*to % room != 0 && room % *to != 0)) return std::nullopt;
  ASSIGN_OR_RETURN(ir::Node * count,
                   Scaled(call, rows.count, std::max<int64_t>(1, *to / room), std::max<int64_t>(1, room / *to)));
  return Value::Rows{count, static_cast<int>(to - result.begin())};
}

// bool[room]: which rows exist.
absl::StatusOr<Value> Exist(Builder& builder, const std::string& name, const Value& value, int axis) {
  const int64_t room = value.shape()[axis];
  const bool all = value.rows.count == nullptr || value.rows.axis != axis;
  const std::string key = absl::StrCat("exist ", all ? "all " : KeyOf(value.rows.count), room);
  if (const Value* made = builder.MadeOrNull(key); made != nullptr) return *made;
  if (all) {
    Tensor mask(DType::kBool, {room});
    std::fill(mask.data<bool>(), mask.data<bool>() + room, true);
    ASSIGN_OR_RETURN(Value exist, builder.ChargedConstant(absl::StrCat(name, ".all"), std::move(mask)));
    return builder.KeepMade(key, std::move(exist));
  }
  const std::string numbers_key = absl::StrCat("numbers ", room);
  const Value* numbers = builder.MadeOrNull(numbers_key);
  if (numbers == nullptr) {
    Tensor rows(DType::kI64, {room});
    std::iota(rows.data<int64_t>(), rows.data<int64_t>() + room, int64_t{0});
    ASSIGN_OR_RETURN(Value made, builder.ChargedConstant(absl::StrCat(name, ".rows"), std::move(rows)));
    numbers = &builder.KeepMade(numbers_key, std::move(made));
  }
  ASSIGN_OR_RETURN(Value exist,
                   builder.Emit(absl::StrCat(name, ".exist"), "lt", {*numbers, CountOf(value.rows.count)}));
  return builder.KeepMade(key, std::move(exist));
}

// Where rows of operand i are in the result of this shape; none where the call drops or mixes them.
std::optional<int> AxisThrough(const Call& call, int i, const Shape& result) {
  const Shape& shape = call.shape(i);
  const int axis = call.operands[i].rows.axis, rank = call.rank(i), result_rank = static_cast<int>(result.size());
  const auto of_result = [&](int64_t found) -> std::optional<int> {
    if (found < 0 || found >= result_rank || result[found] != shape[axis]) return std::nullopt;
    return static_cast<int>(found);
  };
  if (call.schema.elementwise || call.Is("expand")) return of_result(result_rank - rank + axis);
  if (call.schema.view == ir::View::kSameOrder) {
    const int64_t outer = Product(shape, 0, axis);
    for (int to = 0; to < result_rank; ++to) {
      if (result[to] == shape[axis] && Product(result, 0, to) == outer) return to;
    }
    return std::nullopt;
  }
  if (call.Is("permute")) {
    const Ints& dims = call.Get("dims").as_ints();
    const auto at = std::find_if(dims.begin(), dims.end(), [=](int64_t d) { return Normalized(d, rank) == axis; });
    return of_result(at - dims.begin());
  }
  if (call.Is("slice") || call.Is("topk") || call.Is("split") || call.Is("cat") || call.Is("gather")) {
    return of_result(axis);
  }
  const int dim = call.dim();
  if (call.Is("softmax") || call.Is("log_softmax") || call.Is("cumsum")) return of_result(axis);
  if (call.Is("resize") && !Names(call.Get("dims").as_ints(), axis, rank)) return of_result(axis);
  if (call.Is("pad")) {
    const Ints& pads = call.Get("pads").as_ints();
    return pads[axis] == 0 && pads[axis + rank] == 0 ? of_result(axis) : std::nullopt;
  }
  if (call.Is("index_select")) {
    if (i == 1) return of_result(dim + axis);
    return of_result(axis < dim ? axis : axis - 1 + call.rank(1));
  }
  if (call.Is("gather_nd") && call.Get("batch_dims").as_int() == 0) {
    const int depth = static_cast<int>(call.shape(1).back());
    if (i == 1) return axis < rank - 1 ? of_result(axis) : std::nullopt;
    return axis < depth ? std::nullopt : of_result(axis - depth + call.rank(1) - 1);
  }
  if (call.Is("one_hot") && i == 0) {
    const int added = Normalized(call.Get("dim").as_int(), rank + 1);
    return of_result(axis < added ? axis : axis + 1);
  }
  if (call.Is("roi_align")) return i > 0 && axis == 0 ? of_result(0) : std::nullopt;
  if (call.Is("matmul") && axis < rank - 1 && i == 0) return of_result(result_rank - rank + axis);
  if (FindOrNull(call.schema, call.attributes, "keepdim") != nullptr) {
    const Attribute* dims = FindOrNull(call.schema, call.attributes, "dims");
    const Ints over = dims != nullptr ? dims->as_ints() : Ints{dim};
    if (Names(over, axis, rank)) return std::nullopt;
    if (call.Get("keepdim").as_bool()) return of_result(axis);
    int before = axis;
    for (int other = 0; other < axis; ++other) before -= Names(over, other, rank);
    return of_result(before);
  }
  if (call.Is("linear") && i == 0 && axis < rank - 1) return of_result(axis);
  const auto& specs = call.schema.operands;
  const bool parameter = specs[std::min<size_t>(i, specs.size() - 1)].parameter;
  if (call.schema.itemwise && !parameter && dim != 0 && axis == 0 && result_rank > 1) return of_result(0);
  return std::nullopt;
}

// Whether the call only reads rows that it is told of: what it says by positions exists.
bool ReadsAt(const Call& call, int i) {
  if (i != 0) return false;
  if (call.Is("index_select") || call.Is("gather")) return call.operands[0].rows.axis == call.dim();
  return call.Is("gather_nd") && call.operands[0].rows.axis < call.shape(1).back();
}

absl::Status Declined(const Call& call, int i, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("input ", i, ": found ", ToString(call.operands[i].type()),
                                               " with as many elements along axis ", call.operands[i].rows.axis,
                                               " as data says, ", what, " (", call.schema.name,
                                               "): take values before it as the network's outputs"));
}

// The call as it is, and which rows its results have.
absl::StatusOr<std::vector<Value>> Apart(const Call& call) {
  ASSIGN_OR_RETURN(std::vector<Value> values, call.Emit());
  for (Value& value : values) {
    if (!value.present() || value.constant != nullptr) continue;
    for (int i = 0; i < static_cast<int>(call.operands.size()); ++i) {
      ir::Node* count = call.operands[i].rows.count;
      if (count == nullptr || ReadsAt(call, i)) continue;
      std::optional<Value::Rows> rows;
      if (const std::optional<int> axis = AxisThrough(call, i, value.shape()); axis) {
        rows = {count, *axis};
      } else {
        ASSIGN_OR_RETURN(rows, Regrouped(call, call.operands[i].rows, call.shape(i), value.shape()));
      }
      if (!rows) return Declined(call, i, "wanted an operator that keeps them apart");
      if (value.rows.count != nullptr && (value.rows.count != rows->count || value.rows.axis != rows->axis)) {
        return Declined(call, i, "wanted as many as another operand has");
      }
      value.rows = *rows;
    }
  }
  return values;
}

// --- What mixes rows.

// Where the rows of operands that lie one behind another exist: i64[room of all], as rows.
absl::StatusOr<Value> Joined(const Call& call, int dim) {
  std::string key = "joined ";
  for (const Value& operand : call.operands) {
    absl::StrAppend(&key, operand.rows.axis == dim ? KeyOf(operand.rows.count) : "", operand.shape()[dim], ",");
  }
  if (const Value* made = call.builder.MadeOrNull(key); made != nullptr) return *made;
  std::vector<Value> exist;
  for (const Value& operand : call.operands) {
    ASSIGN_OR_RETURN(Value mask, Exist(call.builder, call.name, operand, dim));
    exist.push_back(std::move(mask));
  }
  ASSIGN_OR_RETURN(const Value mask, call.Helper("exist", "cat", exist, {{"dim", 0}}));
  ASSIGN_OR_RETURN(const Value rows, EmitNonzero(call.builder, absl::StrCat(call.name, ".found"), mask));
  ASSIGN_OR_RETURN(Value index, call.Helper("index", "squeeze", {rows}, {{"dims", Ints{1}}}));
  return call.builder.KeepMade(key, std::move(index));
}

// Operands one behind another: rows that exist move together.
absl::StatusOr<std::vector<Value>> Join(const Call& call) {
  const int dim = call.dim();
  ASSIGN_OR_RETURN(const Value index, Joined(call, dim));
  std::vector<Value> parts;
  for (Value part : call.operands) {
    if (part.constant != nullptr) {  // Not folded: its rows are not.
      ASSIGN_OR_RETURN(ir::Node * node, call.builder.NodeOf(part));
      part = {part.name, nullptr, node, nullptr, false, part.rows};
    }
    if (part.rows.axis == dim) part.rows = {};
    parts.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(const Value all, call.Helper("room", "cat", parts, {{"dim", dim}}));
  ASSIGN_OR_RETURN(Value picked, call.builder.Emit(call.name, "index_select", {all, index}, {{"dim", dim}}));
  return std::vector<Value>{std::move(picked)};
}

absl::StatusOr<std::vector<Value>> Best(const Call& call) {
  const int dim = call.dim();
  const Value& x = call.operands[0];
  Call filled = call;
  ASSIGN_OR_RETURN(filled.operands[0],
                   FillRows(call.builder, call.name, x, call.Get("largest").as_bool() ? -kInfinity : kInfinity));
  ASSIGN_OR_RETURN(std::vector<Value> values, filled.Emit());
  ir::Node* count = x.rows.count;
  if (const int64_t k = call.Get("k").as_int(); k < x.shape()[dim]) {
    ASSIGN_OR_RETURN(count, Within(call, count, 0, k));
  }
  for (Value& value : values) {
    if (value.present()) value.rows = {count, dim};
  }
  return values;
}

// Some of the rows, from one on.
absl::StatusOr<std::vector<Value>> Slice(const Call& call) {
  const Value& x = call.operands[0];
  const int rank = call.rank(0), axis = x.rows.axis;
  const Ints &axes = call.Get("axes").as_ints(), &starts = call.Get("starts").as_ints(),
             &ends = call.Get("ends").as_ints(), &steps = call.Get("steps").as_ints();
  ASSIGN_OR_RETURN(std::vector<Value> values, call.Emit());
  ir::Node* count = x.rows.count;
  for (size_t k = 0; k < starts.size(); ++k) {
    if (Normalized(axes.empty() ? static_cast<int64_t>(k) : axes[k], rank) != axis) continue;
    const int64_t room = x.shape()[axis], start = starts[k], end = std::min(ends[k], room);
    if (start < 0 || end < 0 || (!steps.empty() && steps[k] != 1)) {
      return Declined(call, 0, "wanted a slice from the front");
    }
    if (start > 0 || end < room) {
      ASSIGN_OR_RETURN(count, Within(call, count, start, end));
    }
  }
  values[0].rows = {count, axis};
  return values;
}

// Reductions, and what changes nothing in them. Softmax, which of infinities alone makes NaN, gets the lowest number.
struct Neutral {
  const char* op;
  double value;
};
constexpr double kLowest = std::numeric_limits<float>::lowest();
constexpr Neutral kNeutral[] = {{"amax", -kInfinity},
                                {"amin", kInfinity},
                                {"argmax", -kInfinity},
                                {"argmin", kInfinity},
                                {"log_softmax", kLowest},
                                {"logsumexp", -kInfinity},
                                {"mean", 0},
                                {"prod", 1},
                                {"softmax", kLowest},
                                {"sum", 0}};
const Neutral* NeutralOrNull(absl::string_view op) {
  const auto* found =
      std::find_if(std::begin(kNeutral), std::end(kNeutral), [=](const Neutral& n) { return n.op == op; });
  return found == std::end(kNeutral) ? nullptr : found;
}

// Whether the call reduces along the axis of its rows.
bool Reduces(const Call& call) {
  if (NeutralOrNull(call.schema.name) == nullptr) return false;
  const Attribute* dims = FindOrNull(call.schema, call.attributes, "dims");
  return Names(dims != nullptr ? dims->as_ints() : Ints{call.dim()}, call.operands[0].rows.axis, call.rank(0));
}

// An infinity where there are no rows, which calibration would not take, is 0.
absl::StatusOr<Value> FiniteOfNone(const Call& call, ir::Node* count, const Value& result) {
  ASSIGN_OR_RETURN(const Value number, call.Helper("number", "reshape", {CountOf(count)}, {{"shape", Ints{}}}));
  ASSIGN_OR_RETURN(const Value none, call.Constant("none", Tensor::Scalar<int64_t>(0)));
  ASSIGN_OR_RETURN(const Value some, call.Helper("some", "lt", {none, number}));
  ASSIGN_OR_RETURN(const Value zero, call.Constant("zero", Tensor(result.type().dtype, Shape{})));
  return call.Helper("finite", "where", {some, result, zero});
}

// The mean over all the room, times it, over how many rows there are.
absl::StatusOr<Value> OverCount(const Call& call, const Value& x, const Value& mean) {
  const DType dtype = x.type().dtype;
  Tensor size(dtype, Shape{});
  size.Set(0, static_cast<double>(x.shape()[x.rows.axis]));
  ASSIGN_OR_RETURN(const Value room, call.Constant("room", std::move(size)));
  ASSIGN_OR_RETURN(const Value one, call.Number("one", 1));
  ASSIGN_OR_RETURN(const Value some, call.Helper("some", "maximum", {CountOf(x.rows.count), one}));
  ASSIGN_OR_RETURN(const Value number, call.Helper("number", "reshape", {some}, {{"shape", Ints{}}}));
  ASSIGN_OR_RETURN(const Value count, call.Helper("count", "to", {number}, {{"dtype", dtype}}));
  ASSIGN_OR_RETURN(const Value factor, call.Helper("factor", "div", {room, count}));
  return call.Helper("mean", "mul", {mean, factor});
}

absl::StatusOr<std::vector<Value>> Reduce(Call call) {
  const Value x = call.operands[0];
  const Neutral& neutral = *NeutralOrNull(call.schema.name);
  ASSIGN_OR_RETURN(call.operands[0], FillRows(call.builder, call.name, x, neutral.value));
  ASSIGN_OR_RETURN(std::vector<Value> values, call.Emit());
  const Value result = values[0];
  if (neutral.value == kLowest) {
    values[0].rows = x.rows;
  } else if (call.Is("mean")) {
    ASSIGN_OR_RETURN(values[0], OverCount(call, x, result));
  } else if (IsFloat(result.type().dtype) && std::isinf(neutral.value)) {
    ASSIGN_OR_RETURN(values[0], FiniteOfNone(call, x.rows.count, result));
  }
  return values;
}

// The first result of a call whose second one counts its rows.
absl::StatusOr<Value> Found(Builder& builder, const std::string& name, absl::string_view target,
                            const std::vector<Value>& operands, AttributeMap attributes) {
  ASSIGN_OR_RETURN(std::vector<Value> values,
                   builder.EmitTupleAsIs(name, target, operands, std::move(attributes), {true, true}));
  if (const Tensor* count = values[1].TensorOrNull(); count != nullptr) {
    return builder.Emit(name, "slice", {values[0]},
                        {{"starts", Ints{0}}, {"ends", Ints{*count->data<int64_t>()}}, {"axes", Ints{0}}});
  }
  values[0].rows = {values[1].node, 0};
  return std::move(values[0]);
}

// Positions of rows that do not exist are one beyond what is there.
absl::StatusOr<std::vector<Value>> Scatter(Call call) {
  const bool along_0 = call.Is("scatter") ? call.dim() == 0 : call.rank(1) > 1 && call.shape(1).back() == 1;
  if (!along_0 || call.rank(0) == 0 || call.operands[1].rows.axis != 0 || call.operands[0].rows.axis != 0) {
    return Declined(call, 1, "wanted positions along axis 0");
  }
  const Value x = call.operands[0];
  const int64_t room = x.shape()[0];
  Value& index = call.operands[1];
  if (index.type().dtype == DType::kI32) {
    ASSIGN_OR_RETURN(index, call.Helper("index", "to", {index}, {{"dtype", DType::kI64}}));
  }
  ASSIGN_OR_RETURN(index, FillRows(call.builder, call.name, index, static_cast<double>(room)));
  for (Value& operand : call.operands) operand.rows = {};
  TensorType spare = x.type();
  spare.shape[0] = 1;
  ASSIGN_OR_RETURN(const Value row, call.Constant("spare", Tensor(spare)));
  ASSIGN_OR_RETURN(call.operands[0], call.Helper("room", "cat", {call.operands[0], row}, {{"dim", 0}}));
  ASSIGN_OR_RETURN(const std::vector<Value> scattered, call.Emit());
  ASSIGN_OR_RETURN(Value rows, call.Helper("back", "slice", scattered,
                                           {{"starts", Ints{0}}, {"ends", Ints{room}}, {"axes", Ints{0}}}));
  rows.rows = x.rows;
  return std::vector<Value>{std::move(rows)};
}

}  // namespace

bool HasRows(const std::vector<Value>& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const Value& value) { return value.rows.count != nullptr; });
}

absl::StatusOr<std::vector<Value>> EmitOnRows(Builder& builder, const std::string& name, absl::string_view target,
                                              std::vector<Value> operands, AttributeMap attributes,
                                              const std::vector<bool>* wanted) {
  const ir::OpSchema* schema = builder.FindOpOrNull(target);
  if (schema == nullptr) return absl::InvalidArgumentError(absl::StrCat("found the unknown op ", Quote(target)));
  Call call{builder, name, *schema, std::move(operands), std::move(attributes), wanted};
  const int dim = call.dim();
  if (call.Is("cat") && call.operands.size() > 1) {
    const bool alike = std::all_of(call.operands.begin(), call.operands.end(),
                                   [&](const Value& value) { return value.type().rank() == call.rank(0); });
    for (size_t i = 0; alike && i < call.operands.size(); ++i) {
      if (call.HasRowsAlong(static_cast<int>(i), dim)) return Join(call);
    }
  }
  if (call.operands[0].rows.count != nullptr) {
    if (call.Is("slice")) return Slice(call);
    if (call.Is("topk") && call.operands[0].rows.axis == dim) return Best(call);
    if (call.Is("cumsum") && call.operands[0].rows.axis == dim && call.Get("reverse").as_bool()) {
      return Declined(call, 0, "wanted a sum from the front");
    }
    if (Reduces(call)) return Reduce(std::move(call));
  }
  if ((call.Is("scatter") || call.Is("scatter_nd")) && call.operands[1].rows.count != nullptr) {
    return Scatter(std::move(call));
  }
  return Apart(call);
}

absl::StatusOr<Value> FillRows(Builder& builder, const std::string& name, const Value& value, double fill) {
  if (value.rows.count == nullptr) return value;
  const int axis = value.rows.axis;
  ASSIGN_OR_RETURN(Value exist, Exist(builder, name, value, axis));
  Ints shape(value.type().rank(), 1);
  shape[axis] = value.shape()[axis];
  ASSIGN_OR_RETURN(
      exist, builder.Emit(absl::StrCat(name, ".exist"), "reshape", {exist}, {{"shape", shape}, {"allow_zero", true}}));
  Value all = value;
  all.rows = {};
  const DType dtype = value.type().dtype;
  if (dtype == DType::kBool && fill == 0) {
    return builder.Emit(absl::StrCat(name, ".filled"), "logical_and", {exist, all});
  }
  Tensor scalar(dtype, Shape{});
  switch (dtype) {  // What comes next to an infinity.
    case DType::kI64: fill = std::clamp(fill, -0x1p62, 0x1p62); break;
    case DType::kI32: fill = std::clamp(fill, -0x1p31, 0x1p31 - 1); break;
    case DType::kI16: fill = std::clamp(fill, -0x1p15, 0x1p15 - 1); break;
    case DType::kI8: fill = std::clamp(fill, -128.0, 127.0); break;
    case DType::kU8: fill = std::clamp(fill, 0.0, 255.0); break;
    case DType::kBool: fill = fill > 0; break;
    case DType::kF16: fill = std::clamp(fill, -65504.0, 65504.0); break;
    case DType::kF32:
    case DType::kF64: break;
  }
  scalar.Set(0, fill);
  ASSIGN_OR_RETURN(const Value other, builder.ChargedConstant(absl::StrCat(name, ".fill"), std::move(scalar)));
  return builder.Emit(absl::StrCat(name, ".filled"), "where", {exist, all, other});
}

absl::StatusOr<Value> EmitNonzero(Builder& builder, const std::string& name, const Value& value) {
  const std::string key = absl::StrCat("nonzero ", KeyOf(value.node));
  const Value* made = value.node == nullptr ? nullptr : builder.MadeOrNull(key);
  if (made != nullptr) return *made;
  ASSIGN_OR_RETURN(const Value filled, FillRows(builder, name, value, 0));
  ASSIGN_OR_RETURN(Value rows, Found(builder, name, "nonzero", {filled}, {}));
  return value.node == nullptr ? rows : builder.KeepMade(key, std::move(rows));
}

absl::StatusOr<Value> EmitNms(Builder& builder, const std::string& name, Value boxes, Value scores,
                              AttributeMap attributes) {
  const Value::Rows of_boxes = boxes.rows;
  if (boxes.type().rank() != 3 || scores.type().rank() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("found boxes ", ToString(boxes.type()), " and scores ",
                                                   ToString(scores.type()), ", wanted rank 3"));
  }
  if (scores.rows.count == nullptr && of_boxes.count != nullptr) scores.rows = {of_boxes.count, 2};
  if ((of_boxes.count != nullptr && of_boxes.axis != 1) || (scores.rows.count != nullptr && scores.rows.axis != 2)) {
    return absl::UnimplementedError("found as many images or classes as data says, wanted as many boxes");
  }
  // Scores of boxes that do not exist are below any threshold.
  ASSIGN_OR_RETURN(scores, FillRows(builder, name, scores, -kInfinity));
  boxes.rows = {};
  return Found(builder, name, "nms", {boxes, scores}, std::move(attributes));
}

}  // namespace fuselage::onnx
