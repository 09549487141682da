#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/sampling.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/indexing/indexing.h"
#include "ir/ops/sampling/sampling.h"

namespace fuselage::ops::sampling {
namespace {

absl::StatusOr<ir::Type> InferRoiAlign(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(CheckRank(call, 0, 4));
  RETURN_IF_ERROR(CheckFloat(call, 1));
  RETURN_IF_ERROR(indexing::CheckIndex(call, 2));
  RETURN_IF_ERROR(CheckRank(call, 2, 1));
  const TensorType& input = call.tensor(0);
  const int64_t boxes = call.tensor(2).shape[0];
  RETURN_IF_ERROR(CheckShape(call, 1, {boxes, 4}));
  if (input.shape[2] < 1 || input.shape[3] < 1) return OperandError(call, 0, "wanted at least one pixel");
  const int64_t height = call.GetInt("output_height"), width = call.GetInt("output_width");
  if (height < 1 || height > INT16_MAX) return AttributeError(call, "output_height", "one in [1, 2^15)");
  if (width < 1 || width > INT16_MAX) return AttributeError(call, "output_width", "one in [1, 2^15)");
  if (call.GetInt("sampling_ratio") < 0 || call.GetInt("sampling_ratio") > kMostRoiPlaces) {
    return AttributeError(call, "sampling_ratio", absl::StrCat("one in [0, ", kMostRoiPlaces, "]"));
  }
  if (!std::isfinite(call.GetFloat("spatial_scale"))) return AttributeError(call, "spatial_scale", "a number");
  RETURN_IF_ERROR(CheckOneOf(call, "mode", {"avg", "max"}));
  return ResultType(input.dtype, {boxes, input.shape[1], height, width});
}

// One bin of a plane, given the taps of its places on both axes.
double Bin(const double* plane, int64_t width, absl::Span<const AxisTaps> rows, absl::Span<const AxisTaps> columns,
           bool max) {
  double sum = 0, largest = -std::numeric_limits<double>::infinity();
  for (const AxisTaps& row : rows) {
    for (const AxisTaps& column : columns) {
      for (int i = 0; i < row.count; ++i) {
        for (int j = 0; j < column.count; ++j) {
          const int64_t y = row.index[i], x = column.index[j];
          const double value = y < 0 || x < 0 ? 0 : row.weight[i] * column.weight[j] * plane[y * width + x];
          sum += value;
          largest = std::max(largest, value);
        }
      }
    }
  }
  const auto places = static_cast<double>(rows.size() * columns.size());
  if (places == 0) return 0;
  return max ? largest : sum / places;
}

absl::StatusOr<std::vector<Tensor>> EvaluateRoiAlign(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const std::vector<double> x = RealValues(input), boxes = RealValues(call.tensor(1));
  const std::vector<int64_t> batch = Integers(call.tensor(2));
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const RoiBins bins{call.GetInt("sampling_ratio"), call.GetFloat("spatial_scale"), call.GetBool("aligned")};
  Tensor result(call.result());
  const int64_t out_height = result.dim(2), out_width = result.dim(3);
  for (size_t k = 0; k < batch.size(); ++k) {
    ASSIGN_OR_RETURN(const int64_t image, indexing::Position(batch[k], input.dim(0)));
    ASSIGN_OR_RETURN(const RoiAxis rows, MakeRoiAxis(bins, boxes[4 * k + 1], boxes[4 * k + 3], out_height));
    ASSIGN_OR_RETURN(const RoiAxis columns, MakeRoiAxis(bins, boxes[4 * k], boxes[4 * k + 2], out_width));
    std::vector<AxisTaps> y(rows.places), z(columns.places);
    for (int64_t bin = 0; bin < out_height * out_width; ++bin) {
      for (int64_t i = 0; i < rows.places; ++i) y[i] = RoiTaps(height, rows.Position(bin / out_width, i));
      for (int64_t i = 0; i < columns.places; ++i) z[i] = RoiTaps(width, columns.Position(bin % out_width, i));
      for (int64_t c = 0; c < channels; ++c) {
        const double* plane = x.data() + (image * channels + c) * height * width;
        const int64_t to = (static_cast<int64_t>(k) * channels + c) * out_height * out_width + bin;
        result.Set(to, Bin(plane, width, y, z, call.GetString("mode") == "max"));
      }
    }
  }
  return One(std::move(result));
}

}  // namespace

void RegisterRoiAlign(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "roi_align";
  schema.aliases = {"torchvision.ops.roi_align"};
  schema.operands = {{"input"}, {"boxes"}, {"index"}};
  schema.operands[1].exact = true;
  schema.attributes = {{"output_height", AttributeKind::kInt, 1},     {"output_width", AttributeKind::kInt, 1},
                       {"spatial_scale", AttributeKind::kFloat, 1.0}, {"sampling_ratio", AttributeKind::kInt, 0},
                       {"aligned", AttributeKind::kBool, false},      {"mode", AttributeKind::kString, "avg"}};
  schema.infer = InferRoiAlign;
  schema.evaluate = EvaluateRoiAlign;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::sampling
