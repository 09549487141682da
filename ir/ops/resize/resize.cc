#include "ir/ops/resize/resize.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/base/resize_axis.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::resize {
namespace {

std::vector<std::string> Names(absl::Span<const char* const> names) { return {names.begin(), names.end()}; }

ResizeMode ModeOf(const ir::OpCall& call) {
  return {call.GetString("mode"),         call.GetString("coordinates"), call.GetString("nearest_mode"),
          call.GetFloat("cubic_coeff_a"), call.GetBool("antialias"),     call.GetBool("exclude_outside")};
}

// The axis that dims[i] is resized along; the attributes have been checked.
ResizeAxis AxisAt(const ir::OpCall& call, const Shape& input, int axis, size_t i) {
  const std::vector<double>&scales = call.GetFloats("scales"), &roi = call.GetFloats("roi");
  ResizeAxis result;
  result.input = input[axis];
  result.output = call.GetInts("sizes")[i];
  result.scale = scales.empty() ? static_cast<double>(result.output) / static_cast<double>(result.input) : scales[i];
  if (!roi.empty()) {
    result.roi_start = roi[i];
    result.roi_end = roi[i + roi.size() / 2];
  }
  return result;
}

absl::Status CheckAttributes(const ir::InferCall& call, const Shape& input, const std::vector<int>& axes) {
  const int count = static_cast<int>(axes.size());
  RETURN_IF_ERROR(CheckInts(call, "sizes", count, 0));
  const std::vector<double>&scales = call.GetFloats("scales"), &roi = call.GetFloats("roi");
  if (!scales.empty() && scales.size() != axes.size()) {
    return AttributeError(call, "scales", absl::StrCat(count, " numbers, one for each of dims"));
  }
  bool good = roi.empty() || roi.size() == 2 * axes.size();
  for (const double edge : roi) good = good && std::isfinite(edge);
  if (!good)
    return AttributeError(call, "roi", absl::StrCat(2 * count, " numbers, a start and an end for each of dims"));
  if (!std::isfinite(call.GetFloat("cubic_coeff_a"))) return AttributeError(call, "cubic_coeff_a", "a number");
  for (int i = 0; i < count; ++i) {
    const double size = static_cast<double>(call.GetInts("sizes")[i]), own = static_cast<double>(input[axes[i]]);
    if (size > 0 && (own < 1 || own > 1 << 27)) {
      return AttributeError(call, "dims", absl::StrCat("axes of 1 to 2^27 elements, axis ", axes[i], " has ", own));
    }
    if (scales.empty()) continue;
    if (!(scales[i] > 0 && scales[i] * own >= size / 2 && scales[i] * own <= 2 * size + 2)) {
      return AttributeError(call, "scales",
                            absl::StrCat("what makes ", size, " of ", own, ", the size of axis ", axes[i]));
    }
  }
  RETURN_IF_ERROR(CheckOneOf(call, "mode", Names(ResizeModes())));
  RETURN_IF_ERROR(CheckOneOf(call, "coordinates", Names(ResizeCoordinates())));
  return CheckOneOf(call, "nearest_mode", Names(ResizeNearestModes()));
}

absl::StatusOr<ir::Type> InferResize(const ir::InferCall& call) {
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", input.rank()));
  RETURN_IF_ERROR(CheckAttributes(call, input.shape, axes));
  if (call.GetString("mode") == "nearest") {
    RETURN_IF_ERROR(CheckPerTensor(call, 0));
    if (call.GetString("coordinates") == "tf_crop_and_resize") RETURN_IF_ERROR(CheckNoCodes(call, 0));
  } else {
    RETURN_IF_ERROR(CheckFloat(call, 0));
  }
  Shape shape = input.shape;
  for (size_t i = 0; i < axes.size(); ++i) shape[axes[i]] = call.GetInts("sizes")[i];
  return ResultType(input.dtype, std::move(shape), input.quant);
}

// `values` of `shape`, resized on one axis.
std::vector<double> ResizeOne(const std::vector<double>& values, const Shape& shape, int axis, const ResizeTable& table,
                              int64_t size, double extrapolation) {
  const int64_t dim = shape[axis];
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (i != axis) (i < axis ? outer : inner) *= shape[i];
  }
  std::vector<double> result(outer * size * inner, 0);
  for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
    const int64_t o = i / inner % size, from = i / (size * inner) * dim * inner + i % inner;
    if (!table.outside.empty() && table.outside[o]) {
      result[i] = extrapolation;
      continue;
    }
    for (int t = 0; t < table.taps; ++t) {
      const double weight = table.weight[o * table.taps + t];
      if (weight != 0) result[i] += weight * values[from + table.index[o * table.taps + t] * inner];
    }
  }
  return result;
}

absl::StatusOr<std::vector<Tensor>> EvaluateResize(const ir::EvaluateCall& call) {
  if (call.result().num_elements() == 0) return One(Tensor(call.result()));
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", input.rank()));
  const ResizeMode mode = ModeOf(call);
  Shape shape = input.shape();
  // Integers of 64 bits are no doubles: nearest moves positions instead of values.
  const bool nearest = mode.mode == "nearest";
  std::vector<double> values = ToDoubles(input);
  for (int64_t i = 0; nearest && i < input.num_elements(); ++i) values[i] = static_cast<double>(i);
  for (size_t i = 0; i < axes.size(); ++i) {
    const ResizeTable table = MakeResizeTable(mode, AxisAt(call, input.shape(), axes[i], i));
    values = ResizeOne(values, shape, axes[i], table, call.GetInts("sizes")[i],
                       nearest ? -1 : call.GetFloat("extrapolation_value"));
    shape[axes[i]] = call.GetInts("sizes")[i];
  }
  if (!nearest) return One(OfReals(call.result(), values));
  Tensor result(call.result());
  const int64_t size = ByteSize(input.dtype());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    if (values[i] < 0) {
      result.Set(i, call.GetFloat("extrapolation_value"));
    } else {
      std::memcpy(static_cast<char*>(result.raw_data()) + i * size,
                  static_cast<const char*>(input.raw_data()) + static_cast<int64_t>(values[i]) * size, size);
    }
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "resize";
  schema.operands = {{"input"}};
  schema.attributes = {{"dims", AttributeKind::kInts, std::nullopt},
                       {"sizes", AttributeKind::kInts, std::nullopt},
                       {"scales", AttributeKind::kFloats, Attribute(std::vector<double>{})},
                       {"roi", AttributeKind::kFloats, Attribute(std::vector<double>{})},
                       {"mode", AttributeKind::kString, "nearest"},
                       {"coordinates", AttributeKind::kString, "half_pixel"},
                       {"nearest_mode", AttributeKind::kString, "round_prefer_floor"},
                       {"cubic_coeff_a", AttributeKind::kFloat, -0.75},
                       {"antialias", AttributeKind::kBool, false},
                       {"exclude_outside", AttributeKind::kBool, false},
                       {"extrapolation_value", AttributeKind::kFloat, 0.0}};
  schema.keeps_range = true;  // Nearest does, and it alone takes codes.
  schema.infer = InferResize;
  schema.evaluate = EvaluateResize;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::resize
