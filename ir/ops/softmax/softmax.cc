#include "ir/ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::softmax {
namespace {

absl::StatusOr<ir::Type> InferSoftmax(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(AxisOf(call, "dim", call.tensor(0).rank()).status());
  return ResultType(call.tensor(0).dtype, call.tensor(0).shape);
}

// What becomes of `count` elements, `stride` apart.
using Function = void (*)(double* line, int64_t count, int64_t stride);

double Largest(const double* line, int64_t count, int64_t stride) {
  double largest = line[0];
  for (int64_t k = 1; k < count; ++k) largest = std::max(largest, line[k * stride]);
  return largest;
}

void Softmax(double* line, int64_t count, int64_t stride) {
  const double largest = Largest(line, count, stride);
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += line[k * stride] = std::exp(line[k * stride] - largest);
  for (int64_t k = 0; k < count; ++k) line[k * stride] /= sum;
}

void LogSoftmax(double* line, int64_t count, int64_t stride) {
  const double largest = Largest(line, count, stride);
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += std::exp(line[k * stride] - largest);
  for (int64_t k = 0; k < count; ++k) line[k * stride] -= largest + std::log(sum);
}

void Hardmax(double* line, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t k = 1; k < count; ++k) {
    if (line[k * stride] > line[best * stride]) best = k;
  }
  for (int64_t k = 0; k < count; ++k) line[k * stride] = k == best;
}

absl::StatusOr<std::vector<Tensor>> EvaluateSoftmax(const ir::EvaluateCall& call, Function function) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  std::vector<double> x = RealValues(input);
  const int64_t count = input.dim(axis), stride = RowMajorStrides(input.shape())[axis];
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) / stride % count != 0) continue;  // The first element of each line along the axis.
    function(x.data() + i, count, stride);
  }
  return One(OfReals(call.result(), x));
}

struct SoftmaxOp {
  const char* name;
  std::vector<std::string> aliases;
  Function function;
  double operations_per_element;
};

}  // namespace

void Register(ir::OpRegistry& registry) {
  const SoftmaxOp ops[] = {
      {"softmax", {"torch.softmax", "torch.nn.functional.softmax"}, Softmax, kTranscendental},
      {"log_softmax", {"torch.log_softmax", "torch.nn.functional.log_softmax"}, LogSoftmax, kTranscendental},
      {"hardmax", {}, Hardmax, 1},
  };
  for (const SoftmaxOp& op : ops) {
    ir::OpSchema schema;
    schema.name = op.name;
    schema.aliases = op.aliases;
    schema.operands = {{"input"}};
    schema.attributes = {{"dim", AttributeKind::kInt, -1}};
    schema.module_form = true;
    schema.itemwise = true;
    schema.infer = InferSoftmax;
    schema.evaluate = [function = op.function](const ir::EvaluateCall& call) {
      return EvaluateSoftmax(call, function);
    };
    schema.operations_per_element = op.operations_per_element;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::softmax
