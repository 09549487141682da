#include "ir/ops/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::pool {
namespace {

absl::StatusOr<Window> MakePoolWindow(const ir::OpCall& call, const Shape& input) {
  const std::vector<int64_t>& kernel = call.GetInts("kernel_size");
  const std::vector<int64_t> ones(kernel.size(), 1);
  WindowParams params;
  params.input = absl::MakeConstSpan(input).subspan(2);
  params.kernel = kernel;
  params.stride = call.GetInts("stride");
  params.padding = call.GetInts("padding");
  params.dilation = call.schema().FindAttributeOrNull("dilation") != nullptr ? call.GetInts("dilation") : ones;
  params.ceil_mode = call.GetBool("ceil_mode");
  return MakeWindow(params);
}

absl::StatusOr<ir::Type> InferMaxPool(const ir::InferCall& call, int n) {
  ASSIGN_OR_RETURN(const Window window, CheckPool(call, n));
  const TensorType& input = call.tensor(0);
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  if (input.dtype == DType::kBool || input.dtype == DType::kI64) {
    return OperandError(call, 0, "wanted floats or integers of at most 32 bits");
  }
  return ResultType(input.dtype, ResultShape(window, input.shape), input.quant);
}

absl::StatusOr<ir::Type> InferMaxPoolWithIndices(const ir::InferCall& call, int n) {
  ASSIGN_OR_RETURN(const ir::Type values, InferMaxPool(call, n));
  return ir::Type::Tuple({values.tensor(), {DType::kI64, values.tensor().shape, std::nullopt, Layout::kRowMajor}});
}

// The first largest element, or a NaN, among the taps of the window at `output`; -1 where it has none.
int64_t LargestTap(const Window& window, const double* plane, int64_t output) {
  int64_t best = -1;
  ForEachTap(window, output, [&](int64_t offset) {
    if (best < 0 || plane[offset] > plane[best] || std::isnan(plane[offset])) best = offset;
  });
  return best;
}

absl::StatusOr<std::vector<Tensor>> EvaluateMaxPoolWithIndices(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const Window window = WindowOf(call, input.shape());
  const std::vector<double> x = ToDoubles(input);
  std::vector<Tensor> results;
  results.push_back(MaxPool(window, input, call.result_type->elements()[0]));
  results.emplace_back(call.result_type->elements()[1]);
  for (int64_t i = 0; i < results[1].num_elements(); ++i) {
    const double* plane = x.data() + i / window.outputs() * window.inputs();
    results[1].data<int64_t>()[i] = std::max<int64_t>(LargestTap(window, plane, i % window.outputs()), 0);
  }
  return results;
}

absl::StatusOr<ir::Type> InferAvgPool(const ir::InferCall& call, int n) {
  ASSIGN_OR_RETURN(const Window window, CheckPool(call, n));
  RETURN_IF_ERROR(CheckFloat(call, 0));
  return ResultType(call.tensor(0).dtype, ResultShape(window, call.tensor(0).shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateAvgPool(const ir::EvaluateCall& call) {
  const Window window = WindowOf(call, call.tensor(0).shape());
  const bool count_include_pad = call.GetBool("count_include_pad");
  const std::vector<double> x = RealValues(call.tensor(0));
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const double* plane = x.data() + i / window.outputs() * window.inputs();
    const int64_t output = i % window.outputs();
    double sum = 0;
    ForEachTap(window, output, [&](int64_t offset) { sum += plane[offset]; });
    const int64_t divisor = Divisor(window, output, count_include_pad);
    result.Set(i, divisor == 0 ? 0 : sum / static_cast<double>(divisor));
  }
  return One(std::move(result));
}

ir::Cost CostOfPool(const ir::InferCall& call, const ir::Type& result) {
  double window = 1;
  for (const int64_t size : call.GetInts("kernel_size")) window *= static_cast<double>(size);
  return {0, window * ir::NumElements(result)};
}

std::vector<ir::AttributeSpec> PoolAttributes(int n) {
  return {{"kernel_size", AttributeKind::kInts, std::nullopt},
          {"stride", AttributeKind::kInts, std::nullopt},
          {"padding", AttributeKind::kInts, std::vector<int64_t>(2 * n, 0)},
          {"ceil_mode", AttributeKind::kBool, false}};
}

}  // namespace

std::vector<ir::AttributeSpec> MaxPoolAttributes(int n) {
  std::vector<ir::AttributeSpec> attributes = PoolAttributes(n);
  attributes.push_back({"dilation", AttributeKind::kInts, std::vector<int64_t>(n, 1)});
  return attributes;
}

std::vector<ir::AttributeSpec> AvgPoolAttributes(int n) {
  std::vector<ir::AttributeSpec> attributes = PoolAttributes(n);
  attributes.push_back({"count_include_pad", AttributeKind::kBool, false});
  return attributes;
}

absl::StatusOr<Window> CheckPool(const ir::InferCall& call, int n) {
  RETURN_IF_ERROR(CheckRank(call, 0, n + 2));
  RETURN_IF_ERROR(CheckInts(call, "kernel_size", n, 1));
  RETURN_IF_ERROR(CheckInts(call, "stride", n, 1));
  RETURN_IF_ERROR(CheckInts(call, "padding", 2 * n, 0));
  if (call.schema().FindAttributeOrNull("dilation") != nullptr) RETURN_IF_ERROR(CheckInts(call, "dilation", n, 1));
  ASSIGN_OR_RETURN(const Window window, MakePoolWindow(call, call.tensor(0).shape));
  for (const WindowAxis& axis : window.axes) {
    if (axis.begin >= axis.extent() || axis.end >= axis.extent()) {
      return AttributeError(call, "padding", absl::StrCat("less than ", axis.extent(), ", what the kernel spans"));
    }
  }
  return window;
}

Window WindowOf(const ir::OpCall& call, const Shape& input) {
  absl::StatusOr<Window> window = MakePoolWindow(call, input);
  FUSELAGE_CHECK(window.ok());
  return *window;
}

Shape ResultShape(const Window& window, const Shape& input) {
  Shape shape = {input[0], input[1]};
  for (int64_t dim : OutputShape(window, static_cast<int>(input.size()) - 2)) shape.push_back(dim);
  return shape;
}

Tensor MaxPool(const Window& window, const Tensor& input, const TensorType& result_type) {
  const std::vector<double> x = ToDoubles(input);
  Tensor result(result_type);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const double* plane = x.data() + i / window.outputs() * window.inputs();
    const int64_t offset = LargestTap(window, plane, i % window.outputs());
    // Integers: the lowest stands for minus infinity.
    result.Set(i, offset < 0 ? -std::numeric_limits<double>::infinity() : plane[offset]);
  }
  return result;
}

int64_t Divisor(const Window& window, int64_t output, bool count_include_pad) {
  if (count_include_pad) return PaddedTaps(window, output);
  int64_t count = 0;
  ForEachTap(window, output, [&](int64_t) { ++count; });
  return count;
}

void Register(ir::OpRegistry& registry) {
  for (int n = 1; n <= 3; ++n) {
    ir::OpSchema max;
    max.name = absl::StrCat("max_pool", n, "d");
    max.aliases = {absl::StrCat("torch.", max.name), absl::StrCat("torch.nn.functional.", max.name)};
    max.operands = {{"input"}};
    max.attributes = MaxPoolAttributes(n);
    max.module_form = true;
    max.keeps_range = true;
    max.takes_maxima = true;
    max.itemwise = true;
    max.homogeneous = true;
    max.infer = [n](const ir::InferCall& call) { return InferMaxPool(call, n); };
    max.evaluate = [](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
      return One(MaxPool(WindowOf(call, call.tensor(0).shape()), call.tensor(0), call.result()));
    };
    max.cost = CostOfPool;
    registry.Register(std::move(max));

    ir::OpSchema with_indices;
    with_indices.name = absl::StrCat("max_pool", n, "d_with_indices");
    with_indices.aliases = {absl::StrCat("torch.nn.functional.", with_indices.name)};
    with_indices.operands = {{"input"}};
    with_indices.attributes = MaxPoolAttributes(n);
    with_indices.infer = [n](const ir::InferCall& call) { return InferMaxPoolWithIndices(call, n); };
    with_indices.evaluate = EvaluateMaxPoolWithIndices;
    registry.Register(std::move(with_indices));

    // No alias: in PyTorch count_include_pad is true by default.
    ir::OpSchema avg;
    avg.name = absl::StrCat("avg_pool", n, "d");
    avg.operands = {{"input"}};
    avg.attributes = AvgPoolAttributes(n);
    avg.module_form = true;
    avg.homogeneous = true;
    avg.itemwise = true;
    avg.infer = [n](const ir::InferCall& call) { return InferAvgPool(call, n); };
    avg.evaluate = EvaluateAvgPool;
    avg.cost = CostOfPool;
    registry.Register(std::move(avg));
  }
}

}  // namespace fuselage::ops::pool
