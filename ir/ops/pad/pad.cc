#include "ir/ops/pad/pad.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::pad {
namespace {

absl::StatusOr<ir::Type> InferPad(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckOneOf(call, "mode", {"constant", "edge", "reflect", "wrap"}));
  const TensorType& input = call.tensor(0);
  const std::string& mode = call.GetString("mode");
  const std::vector<int64_t>& pads = call.GetInts("pads");
  const int64_t lowest = mode == "constant" ? -std::numeric_limits<int32_t>::max() : 0;
  RETURN_IF_ERROR(CheckInts(call, "pads", 2 * input.rank(), lowest));
  Shape shape = input.shape;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const int64_t before = pads[axis], after = pads[input.rank() + axis];
    shape[axis] += before + after;
    if (shape[axis] < 0) {
      return AttributeError(call, "pads",
                            absl::StrCat("no more cut from axis ", axis, " than its ", input.shape[axis]));
    }
    const int64_t most = mode == "reflect"                             ? std::max<int64_t>(input.shape[axis] - 1, 0)
                         : mode == "constant" || input.shape[axis] > 0 ? std::numeric_limits<int64_t>::max()
                                                                       : 0;
    if (before > most || after > most) {
      return AttributeError(
          call, "pads",
          absl::StrCat("at most ", most, " on axis ", axis, " of size ", input.shape[axis], " in mode ", mode));
    }
  }
  const double value = call.GetFloat("value");
  if (!IsFloat(input.dtype) && value != std::floor(value)) {
    return AttributeError(call, "value", absl::StrCat("a whole number for ", ToString(input)));
  }
  if (input.quant && value != 0) {
    return AttributeError(call, "value", "0 for codes, the one value that they are sure to have");
  }
  return ResultType(input.dtype, std::move(shape), input.quant);
}

// The input's position under position p of the padded axis; -1: the constant.
int64_t Source(int64_t p, int64_t dim, const std::string& mode) {
  if (p >= 0 && p < dim) return p;
  if (mode == "edge") return p < 0 ? 0 : dim - 1;
  if (mode == "reflect") return p < 0 ? -p : 2 * (dim - 1) - p;
  if (mode == "wrap") return ((p % dim) + dim) % dim;
  return -1;
}

absl::StatusOr<std::vector<Tensor>> EvaluatePad(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const std::vector<int64_t>& pads = call.GetInts("pads");
  const std::vector<int64_t> strides = RowMajorStrides(input.shape());
  Tensor result(call.result());
  const int64_t bytes = ByteSize(input.dtype());
  Tensor constant(input.dtype(), {});
  constant.Set(0, input.type().quant ? input.type().quant->zero_point() : call.GetFloat("value"));

  // Offsets along each axis, negative where the constant goes: a sum stays negative once an axis is outside.
  constexpr int64_t kOutside = std::numeric_limits<int64_t>::min() / 64;
  std::vector<std::vector<int64_t>> offsets(input.rank());
  for (int axis = 0; axis < input.rank(); ++axis) {
    for (int64_t p = 0; p < result.dim(axis); ++p) {
      const int64_t source = Source(p - pads[axis], input.dim(axis), call.GetString("mode"));
      offsets[axis].push_back(source < 0 ? kOutside : source * strides[axis]);
    }
  }
  const std::vector<int64_t> result_strides = RowMajorStrides(result.shape());
  const uint8_t* in = static_cast<const uint8_t*>(input.raw_data());
  uint8_t* out = static_cast<uint8_t*>(result.raw_data());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    int64_t offset = 0;
    for (int axis = 0; axis < input.rank() && offset >= 0; ++axis) {
      offset += offsets[axis][i / result_strides[axis] % result.dim(axis)];
    }
    const void* source = offset < 0 ? constant.raw_data() : in + offset * bytes;
    std::memcpy(out + i * bytes, source, bytes);
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "pad";
  schema.operands = {{"input"}};
  schema.attributes = {{"pads", AttributeKind::kInts, std::nullopt},
                       {"mode", AttributeKind::kString, "constant"},
                       {"value", AttributeKind::kFloat, 0.0}};
  schema.keeps_range = true;
  schema.infer = InferPad;
  schema.evaluate = EvaluatePad;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::pad
