#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/boxes.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/selection/selection.h"

namespace fuselage::ops::selection {
namespace {

absl::StatusOr<ir::Type> InferNms(const ir::InferCall& call) {
  for (const int i : {0, 1}) {
    RETURN_IF_ERROR(CheckNoCodes(call, i));
    RETURN_IF_ERROR(CheckDType(call, i, DType::kF32));
    RETURN_IF_ERROR(CheckRank(call, i, 3));
  }
  const Shape& scores = call.tensor(1).shape;
  RETURN_IF_ERROR(CheckShape(call, 0, {scores[0], scores[2], 4}));
  const int64_t most = call.GetInt("max_output_boxes_per_class");
  if (most < 0) return AttributeError(call, "max_output_boxes_per_class", "a number >= 0");
  for (const char* name : {"iou_threshold", "score_threshold"}) {
    if (std::isnan(call.GetFloat(name))) return AttributeError(call, name, "a number");
  }
  // No more than the scores have elements.
  const int64_t rows = scores[0] * scores[1] * std::min(scores[2], most);
  ASSIGN_OR_RETURN(ir::Type selected, ResultType(DType::kI64, {rows, 3}));
  return ir::Type::Tuple({selected.tensor(), {DType::kI64, {1}, std::nullopt, Layout::kRowMajor}});
}

absl::StatusOr<std::vector<Tensor>> EvaluateNms(const ir::EvaluateCall& call) {
  const Tensor &boxes = call.tensor(0), &scores = call.tensor(1);
  const bool center = call.GetBool("center_point_box");
  const auto iou = static_cast<float>(call.GetFloat("iou_threshold")),
             least = static_cast<float>(call.GetFloat("score_threshold"));
  const int64_t classes = scores.dim(1), n = scores.dim(2);
  std::vector<Tensor> results;
  for (const TensorType& type : call.result_type->elements()) results.emplace_back(type);
  auto* row = results[0].data<int64_t>();
  for (int64_t line = 0; line < scores.dim(0) * classes; ++line) {
    const float* score = scores.data<float>() + line * n;
    const auto box = [&](int64_t i) { return BoxOf(boxes.data<float>() + (line / classes * n + i) * 4, center); };
    std::vector<bool> out(n);
    for (int64_t i = 0; i < n; ++i) out[i] = !(score[i] > least);
    for (int64_t k = 0; k < call.GetInt("max_output_boxes_per_class"); ++k) {
      int64_t best = -1;
      for (int64_t i = 0; i < n; ++i) {
        if (!out[i] && (best < 0 || score[i] > score[best])) best = i;
      }
      if (best < 0) break;
      for (const int64_t part : {line / classes, line % classes, best}) *row++ = part;
      out[best] = true;
      for (int64_t i = 0; i < n; ++i) out[i] = out[i] || Overlap(box(best), box(i), iou);
    }
  }
  results[1].data<int64_t>()[0] = (row - results[0].data<int64_t>()) / 3;
  return results;
}

}  // namespace

void RegisterNms(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "nms";
  schema.operands = {{"boxes"}, {"scores"}};
  for (ir::OperandSpec& operand : schema.operands) operand.exact = true;
  schema.attributes = {{"max_output_boxes_per_class", AttributeKind::kInt, std::nullopt},
                       {"iou_threshold", AttributeKind::kFloat, 0.0},
                       {"score_threshold", AttributeKind::kFloat, -std::numeric_limits<double>::infinity()},
                       {"center_point_box", AttributeKind::kBool, false}};
  schema.infer = InferNms;
  schema.evaluate = EvaluateNms;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::selection
