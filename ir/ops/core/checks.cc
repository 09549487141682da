#include "ir/ops/core/checks.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fuselage::ops {
namespace {

const std::string& OperandName(const ir::InferCall& call, int i) {
  const auto& operands = call.schema().operands;
  return operands[std::min<int>(i, static_cast<int>(operands.size()) - 1)].name;
}

}  // namespace

absl::Status OperandError(const ir::InferCall& call, int i, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(OperandName(call, i), " ", ir::ToString(*call.operands[i]), ": ", problem));
}

absl::Status AttributeError(const ir::OpCall& call, absl::string_view name, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(name, "=", call.attribute(name).ToString(), ": wanted ", wanted));
}

absl::Status CheckRank(const ir::InferCall& call, int i, int min, int max) {
  if (max < min) max = min;
  const int rank = call.tensor(i).rank();
  if (rank >= min && rank <= max) return absl::OkStatus();
  return OperandError(call, i,
                      absl::StrCat("rank ", rank, ", wanted ", min, max == min ? "" : absl::StrCat(" to ", max)));
}

absl::Status CheckMinRank(const ir::InferCall& call, int i, int min) {
  const int rank = call.tensor(i).rank();
  if (rank >= min) return absl::OkStatus();
  return OperandError(call, i, absl::StrCat("rank ", rank, ", wanted at least ", min));
}

absl::Status CheckFloat(const ir::InferCall& call, int i) {
  if (IsFloat(call.tensor(i).dtype)) return absl::OkStatus();
  return OperandError(call, i, "wanted f16, f32 or f64");
}

absl::Status CheckNoCodes(const ir::InferCall& call, int i) {
  if (!call.tensor(i).quant) return absl::OkStatus();
  return OperandError(call, i, "wanted values, found quantized codes: dequantize them first");
}

absl::Status CheckPerTensor(const ir::InferCall& call, int i) {
  if (!call.tensor(i).quant || call.tensor(i).quant->per_tensor()) return absl::OkStatus();
  return OperandError(call, i, "wanted one scale for the whole tensor");
}

absl::Status CheckShape(const ir::InferCall& call, int i, const Shape& shape) {
  if (call.tensor(i).shape == shape) return absl::OkStatus();
  return OperandError(call, i, absl::StrCat("wanted shape ", ToString(shape)));
}

absl::Status CheckDType(const ir::InferCall& call, int i, DType dtype) {
  if (call.tensor(i).dtype == dtype) return absl::OkStatus();
  return OperandError(call, i, absl::StrCat("wanted element type ", DTypeName(dtype)));
}

absl::Status CheckParameterDType(const ir::InferCall& call, int i, DType dtype) {
  const TensorType& type = call.tensor(i);
  if (!type.quant) return CheckDType(call, i, dtype);
  if (IsFloat(dtype)) return CheckQuantParams(*type.quant, type.dtype, type.shape);
  return OperandError(call, i, absl::StrCat("quantized, but the input is ", DTypeName(dtype)));
}

absl::Status CheckInts(const ir::OpCall& call, absl::string_view name, int count, int64_t min) {
  const std::vector<int64_t>& values = call.GetInts(name);
  bool good = static_cast<int>(values.size()) == count;
  for (int64_t value : values) good = good && value >= min && value <= std::numeric_limits<int32_t>::max();
  if (good) return absl::OkStatus();
  return AttributeError(call, name, absl::StrCat(count, " value", count == 1 ? "" : "s", " in [", min, ", 2^31)"));
}

absl::Status CheckOneOf(const ir::OpCall& call, absl::string_view name, const std::vector<std::string>& wanted) {
  const std::string& value = call.GetString(name);
  if (std::find(wanted.begin(), wanted.end(), value) != wanted.end()) return absl::OkStatus();
  return AttributeError(call, name, absl::StrCat("one of \"", absl::StrJoin(wanted, "\", \""), "\""));
}

absl::StatusOr<int> AxisOf(const ir::OpCall& call, absl::string_view name, int rank) {
  absl::StatusOr<int> axis = NormalizeAxis(call.GetInt(name), rank);
  if (!axis.ok()) return Annotate(axis.status(), name);
  return axis;
}

absl::StatusOr<std::vector<int>> AxesOf(const ir::OpCall& call, absl::string_view name, int rank) {
  std::vector<int> axes;
  std::vector<bool> seen(rank, false);
  for (int64_t value : call.GetInts(name)) {
    absl::StatusOr<int> axis = NormalizeAxis(value, rank);
    if (!axis.ok()) return Annotate(axis.status(), name);
    if (seen[*axis]) return AttributeError(call, name, absl::StrCat("each axis once, found ", value, " again"));
    seen[*axis] = true;
    axes.push_back(*axis);
  }
  return axes;
}

absl::StatusOr<ir::Type> ResultType(DType dtype, Shape shape, std::optional<QuantParams> quant) {
  absl::StatusOr<int64_t> count = CheckedNumElements(shape);
  if (!count.ok()) return Annotate(count.status(), "result");
  TensorType type{dtype, std::move(shape), std::move(quant), Layout::kRowMajor};
  return ir::Type(std::move(type));
}

}  // namespace fuselage::ops
