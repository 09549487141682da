#include "ir/ops/int8/pool/pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"
#include "ir/ops/pool/pool.h"

namespace fuselage::ops::int8::pool {
namespace {

// More elements could overflow a 32-bit sum of x - z_x.
constexpr int64_t kMostElements = ((int64_t{1} << 31) - 1) / 255;

absl::StatusOr<ir::Type> InferMaxPool(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, 0));
  ASSIGN_OR_RETURN(const Window window, ops::pool::CheckPool(call, 2));
  const TensorType& input = call.tensor(0);
  return ResultType(input.dtype, ops::pool::ResultShape(window, input.shape), input.quant);
}

absl::StatusOr<ir::Type> InferAvgPool(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, 0));
  ASSIGN_OR_RETURN(const Window window, ops::pool::CheckPool(call, 2));
  return OutputType(call, ops::pool::ResultShape(window, call.tensor(0).shape));
}

absl::StatusOr<ir::Type> InferGlobalAvgPool(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, 0));
  RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  Shape shape = call.tensor(0).shape;
  if (std::count(shape.begin() + 2, shape.end(), 0) > 0) return OperandError(call, 0, "the mean of no elements");
  std::fill(shape.begin() + 2, shape.end(), 1);
  return OutputType(call, std::move(shape));
}

// The code of a mean of `count` elements with the given sum of x - z_x.
absl::StatusOr<double> MeanCode(const ir::EvaluateCall& call, double sum, int64_t count) {
  if (count == 0) return call.result().quant->zero_point();
  if (count > kMostElements) {
    return absl::FailedPreconditionError(
        absl::StrCat("the mean of ", count, " codes may overflow 32 bits, wanted at most ", kMostElements));
  }
  ASSIGN_OR_RETURN(const float multiplier,
                   Multiplier(call.tensor(0).type().quant->scale(),
                              call.result().quant->scale() * static_cast<float>(count), "the multiplier"));
  return RoundingOf(call.result())(static_cast<float>(sum) * multiplier);
}

absl::StatusOr<std::vector<Tensor>> EvaluateAvgPool(const ir::EvaluateCall& call) {
  const Window window = ops::pool::WindowOf(call, call.tensor(0).shape());
  const bool count_include_pad = call.GetBool("count_include_pad");
  const std::vector<double> x = Centered(call.tensor(0));
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const double* plane = x.data() + i / window.outputs() * window.inputs();
    const int64_t output = i % window.outputs();
    double sum = 0;
    ForEachTap(window, output, [&](int64_t offset) { sum += plane[offset]; });
    ASSIGN_OR_RETURN(const double code, MeanCode(call, sum, ops::pool::Divisor(window, output, count_include_pad)));
    result.Set(i, code);
  }
  return One(std::move(result));
}

absl::StatusOr<std::vector<Tensor>> EvaluateGlobalAvgPool(const ir::EvaluateCall& call) {
  const std::vector<double> x = Centered(call.tensor(0));
  Tensor result(call.result());
  const int64_t count = result.num_elements() == 0 ? 0 : static_cast<int64_t>(x.size()) / result.num_elements();
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += x[i * count + k];
    ASSIGN_OR_RETURN(const double code, MeanCode(call, sum, count));
    result.Set(i, code);
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema max;
  max.name = "int8.max_pool2d";
  max.quantized_form_of = "max_pool2d";
  max.keeps_range = true;
  max.takes_maxima = true;
  max.itemwise = true;
  max.operands = {{"input"}};
  max.attributes = ops::pool::MaxPoolAttributes(2);
  max.module_form = true;
  max.infer = InferMaxPool;
  max.evaluate = [](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    const Tensor& input = call.tensor(0);
    return One(ops::pool::MaxPool(ops::pool::WindowOf(call, input.shape()), input, call.result()));
  };
  registry.Register(std::move(max));

  ir::OpSchema avg;
  avg.name = "int8.avg_pool2d";
  avg.quantized_form_of = "avg_pool2d";
  avg.operands = {{"input"}};
  avg.attributes = ops::pool::AvgPoolAttributes(2);
  for (ir::AttributeSpec& attribute : OutputAttributes()) avg.attributes.push_back(std::move(attribute));
  avg.itemwise = true;
  avg.module_form = true;
  avg.infer = InferAvgPool;
  avg.evaluate = EvaluateAvgPool;
  registry.Register(std::move(avg));

  ir::OpSchema global;
  global.name = "int8.global_avg_pool";
  global.quantized_form_of = "global_avg_pool";
  global.operands = {{"input"}};
  global.attributes = OutputAttributes();
  global.itemwise = true;
  global.module_form = true;
  global.infer = InferGlobalAvgPool;
  global.evaluate = EvaluateGlobalAvgPool;
  registry.Register(std::move(global));
}

}  // namespace fuselage::ops::int8::pool
