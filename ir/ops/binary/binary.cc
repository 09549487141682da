#include "ir/ops/binary/binary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::binary {
namespace {

enum class Operation { kAdd, kSub, kMul, kDiv };

double Apply(Operation operation, double a, double b) {
  switch (operation) {
    case Operation::kAdd: return a + b;
    case Operation::kSub: return a - b;
    case Operation::kMul: return a * b;
    case Operation::kDiv: return a / b;
  }
  return 0;
}

// Modulo 2^64; b != 0 in a division.
int64_t Apply(Operation operation, int64_t a, int64_t b) {
  const uint64_t p = static_cast<uint64_t>(a), q = static_cast<uint64_t>(b);
  switch (operation) {
    case Operation::kAdd: return static_cast<int64_t>(p + q);
    case Operation::kSub: return static_cast<int64_t>(p - q);
    case Operation::kMul: return static_cast<int64_t>(p * q);
    case Operation::kDiv: return b == -1 ? static_cast<int64_t>(0 - p) : a / b;
  }
  return 0;
}

absl::StatusOr<ir::Type> InferBinary(const ir::InferCall& call, Operation operation) {
  const TensorType& input = call.tensor(0);
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  RETURN_IF_ERROR(CheckNoCodes(call, 1));
  RETURN_IF_ERROR(CheckDType(call, 1, input.dtype));
  if (input.dtype == DType::kBool) return OperandError(call, 0, "wanted numbers");
  if (operation == Operation::kAdd) {
    RETURN_IF_ERROR(CheckOneOf(call, "activation", {"none", "relu"}));
    const double alpha = call.GetFloat("alpha");
    if (!std::isfinite(alpha)) return AttributeError(call, "alpha", "a finite number");
    if (!IsFloat(input.dtype) && (alpha != std::floor(alpha) || std::fabs(alpha) > 9007199254740992.0)) {
      return AttributeError(call, "alpha", absl::StrCat("a whole number for ", ToString(input)));
    }
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(input.shape, call.tensor(1).shape));
  return ResultType(input.dtype, std::move(shape));
}

// values[i] = the element of `own`, of shape `from`, at index i of the broadcast shape `to`.
template <typename T>
std::vector<T> Stretched(std::vector<T> own, const Shape& from, const TensorType& to) {
  if (from == to.shape) return own;
  std::vector<T> values(to.num_elements());
  ForEachOffset(to.shape, BroadcastStrides(from, to.shape), 0,
                [&](int64_t i, int64_t offset) { values[i] = own[offset]; });
  return values;
}

absl::StatusOr<std::vector<Tensor>> EvaluateBinary(const ir::EvaluateCall& call, Operation operation) {
  const Tensor& input = call.tensor(0);
  const Tensor& other = call.tensor(1);
  const bool is_add = operation == Operation::kAdd;
  const double alpha = is_add ? call.GetFloat("alpha") : 1;
  const bool relu = is_add && call.GetString("activation") == "relu";
  if (IsFloat(input.dtype())) {
    std::vector<double> a = Stretched(RealValues(input), input.shape(), call.result());
    const std::vector<double> b = Stretched(RealValues(other), other.shape(), call.result());
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = Apply(operation, a[i], alpha * b[i]);
      if (relu) a[i] = Relu(a[i]);
    }
    return One(OfReals(call.result(), a));
  }
  std::vector<int64_t> a = Stretched(Integers(input), input.shape(), call.result());
  const std::vector<int64_t> b = Stretched(Integers(other), other.shape(), call.result());
  for (size_t i = 0; i < a.size(); ++i) {
    if (operation == Operation::kDiv && b[i] == 0) {
      return absl::InvalidArgumentError(absl::StrCat("division of the integer ", a[i], " by zero at element ", i));
    }
    a[i] = Apply(operation, a[i], Apply(Operation::kMul, static_cast<int64_t>(alpha), b[i]));
  }
  Tensor result = OfIntegers(call.result(), a);
  for (int64_t i = 0; relu && i < result.num_elements(); ++i) {
    if (result.At(i) < 0) result.Set(i, 0);
  }
  return One(std::move(result));
}

ir::OpSchema Schema(Operation operation, const char* name, std::vector<std::string> aliases) {
  ir::OpSchema schema;
  schema.name = name;
  schema.aliases = std::move(aliases);
  schema.operands = {{"input"}, {"other"}};
  schema.elementwise = true;
  schema.infer = [operation](const ir::InferCall& call) { return InferBinary(call, operation); };
  schema.evaluate = [operation](const ir::EvaluateCall& call) { return EvaluateBinary(call, operation); };
  return schema;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema add = Schema(Operation::kAdd, "add", {"torch.add", "operator.add", "operator.iadd", "add_"});
  add.attributes = {{"alpha", AttributeKind::kFloat, 1.0}, {"activation", AttributeKind::kString, "none"}};
  add.module_form = true;
  add.fusable_activation = true;
  registry.Register(std::move(add));
  registry.Register(Schema(Operation::kSub, "sub", {"torch.sub", "operator.sub", "operator.isub", "sub_"}));
  registry.Register(Schema(Operation::kMul, "mul", {"torch.mul", "operator.mul", "operator.imul", "mul_"}));
  // No alias: PyTorch's division of integers gives floats.
  registry.Register(Schema(Operation::kDiv, "div", {}));
}

}  // namespace fuselage::ops::binary
