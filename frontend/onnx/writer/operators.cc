#include "frontend/onnx/writer/operators.h"

#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"

namespace fuselage::onnx::writer {
namespace {

constexpr Operator kLowered = {"int8.", nullptr, "a lowered graph is written before it is lowered"};
// The steps are written, each by its own row (see Writer).
constexpr Operator kFused = {"fused_elementwise", nullptr, ""};

const Operator* FindOperatorOrNull(absl::string_view op) {
  if (op.substr(0, 5) == kLowered.op) return &kLowered;
  if (op == kFused.op) return &kFused;
  static const Operators& all = *[] {
    auto operators = std::make_unique<Operators>();
    RegisterAll(*operators);
    return operators.release();
  }();
  const Operator* row = all.FindOrNull(op);
  if (row != nullptr || op.size() < 3) return row;
  const absl::string_view rank = op.substr(op.size() - 2);
  return rank == "1d" || rank == "2d" || rank == "3d" ? all.FindOrNull(op.substr(0, op.size() - 2)) : nullptr;
}

}  // namespace

void Operators::Add(std::initializer_list<Operator> operators) {
  for (const Operator& row : operators) {
    const bool inserted = by_op_.try_emplace(row.op, row).second;
    FUSELAGE_CHECK(inserted);
  }
}

const Operator* Operators::FindOrNull(absl::string_view op) const {
  const auto it = by_op_.find(op);
  return it == by_op_.end() ? nullptr : &it->second;
}

absl::Status WriteSame(const Call& c) {
  c.Emit(c.onnx, c.in);
  return absl::OkStatus();
}

ModelBuilder& Emitter::Emit(const std::string& op, Values in, Values results) {
  while (!in.empty() && in.back().empty()) in.pop_back();
  const std::string name = results[0];
  return model_.Node(op, std::move(in), std::move(results), name);
}

std::string Call::Suffixed(absl::string_view suffix) const { return absl::StrCat(name, ":", suffix); }
std::string Call::Element(int64_t i) const { return absl::StrCat(name, ":", i); }

std::string Call::Constant(absl::string_view suffix, const Tensor& tensor) const {
  to.model().Initializer(Suffixed(suffix), tensor);
  return Suffixed(suffix);
}
std::string Call::Ints(absl::string_view suffix, const std::vector<int64_t>& values) const {
  return Constant(suffix, Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
std::string Call::Number(absl::string_view suffix, double value, DType dtype) const {
  Tensor number(dtype, {});
  number.Set(0, value);
  return Constant(suffix, number);
}

// Axes are an attribute before opset 18 (13 for sums), an input from then on.
void Call::EmitReduction(const std::string& operator_name, const std::string& x, bool keepdims,
                         const std::string& result) const {
  std::vector<int64_t> axes = op.GetInts("dims");
  if (axes.empty()) {
    axes.resize(type(0).rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const bool input = to.opset() >= (operator_name == "ReduceSum" ? 13 : 18);
  ModelBuilder& node = to.Emit(operator_name, {x, input ? Ints("axes", axes) : ""}, result);
  if (!input) node.Ints("axes", axes);
  node.Int("keepdims", keepdims);
}

absl::Status Call::Declined(absl::string_view why) const {
  return absl::UnimplementedError(absl::StrCat(op.schema().name, why, " has no operator in ONNX"));
}

absl::Status WriteOperator(const ir::OpCall& op, Values in, std::vector<const ir::Type*> types, const ir::Type& result,
                           const std::string& name, Emitter& to) {
  const Operator* row = FindOperatorOrNull(op.schema().name);
  if (row == nullptr) return absl::UnimplementedError(absl::StrCat(op.schema().name, " has no operator in ONNX"));
  if (row->write == nullptr) {
    return absl::UnimplementedError(absl::StrCat(op.schema().name, " has no operator in ONNX: ", row->onnx));
  }
  return row->write({op, row->onnx, name, std::move(in), std::move(types), result, to});
}

const char* WhyNotOrNull(absl::string_view op) {
  const Operator* row = FindOperatorOrNull(op);
  return row == nullptr ? nullptr : row->write == nullptr ? row->onnx : "";
}

}  // namespace fuselage::onnx::writer
