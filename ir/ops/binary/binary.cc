#include "ir/ops/binary/binary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/elements.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::binary {
namespace {

// --- Real numbers.

double Maximum(double a, double b) { return a >= b || std::isnan(a) ? a : b; }
double Minimum(double a, double b) { return a <= b || std::isnan(a) ? a : b; }
double Remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// --- Integers, modulo 2^64.

int64_t Wrap(uint64_t x) { return static_cast<int64_t>(x); }
int64_t Divide(int64_t a, int64_t b) { return b == -1 ? Wrap(0 - static_cast<uint64_t>(a)) : a / b; }
int64_t Fmod(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
int64_t RemainderOf(int64_t a, int64_t b) {
  const int64_t r = Fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// Truncated where b < 0.
int64_t Power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  uint64_t power = 1, square = static_cast<uint64_t>(a);
  for (; b > 0; b /= 2, square *= square) {
    if (b % 2 == 1) power *= square;
  }
  return Wrap(power);
}
bool IsShift(int64_t b) { return b >= 0 && b < 64; }

bool DividesByZero(int64_t, int64_t b) { return b == 0; }
bool InvertsZero(int64_t a, int64_t b) { return a == 0 && b < 0; }

struct BinaryOp {
  const char* name;
  std::vector<std::string> aliases;
  Elements elements;
  double (*real)(double, double);        // Null: floats are not among the elements.
  int64_t (*integer)(int64_t, int64_t);  // Null: integers and bools are not.
  bool to_bool = false;
  bool (*fails)(int64_t, int64_t) = nullptr;  // Where a division by zero is an error: among integers.
};

std::vector<BinaryOp> BinaryOps() {
#define FUSELAGE_BOTH(expression) \
  [](double a, double b) -> double { return expression; }, [](int64_t a, int64_t b) -> int64_t { return expression; }
  const auto wrapped = [](const char* op) { return std::vector<std::string>{absl::StrCat("torch.", op)}; };
  return {
      {"add",
       {"torch.add", "operator.add", "operator.iadd", "add_"},
       Elements::kNumbers,
       [](double a, double b) { return a + b; },
       [](int64_t a, int64_t b) { return Wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }},
      {"sub",
       {"torch.sub", "operator.sub", "operator.isub", "sub_"},
       Elements::kNumbers,
       [](double a, double b) { return a - b; },
       [](int64_t a, int64_t b) { return Wrap(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }},
      {"mul",
       {"torch.mul", "operator.mul", "operator.imul", "mul_"},
       Elements::kNumbers,
       [](double a, double b) { return a * b; },
       [](int64_t a, int64_t b) { return Wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }},
      // No alias: PyTorch's division of integers gives floats.
      {"div", {}, Elements::kNumbers, [](double a, double b) { return a / b; }, Divide, false, DividesByZero},
      {"pow", {"torch.pow", "operator.pow"}, Elements::kNumbers, std::pow, Power, false, InvertsZero},
      {"fmod", wrapped("fmod"), Elements::kNumbers, std::fmod, Fmod, false, DividesByZero},
      {"remainder",
       {"torch.remainder", "operator.mod"},
       Elements::kNumbers,
       Remainder,
       RemainderOf,
       false,
       DividesByZero},
      {"maximum", wrapped("maximum"), Elements::kNumbers, Maximum, [](int64_t a, int64_t b) { return a >= b ? a : b; }},
      {"minimum", wrapped("minimum"), Elements::kNumbers, Minimum, [](int64_t a, int64_t b) { return a <= b ? a : b; }},
      {"prelu",
       {},
       Elements::kNumbers,
       [](double x, double w) { return x < 0 ? w * x : x; },
       [](int64_t x, int64_t w) { return x < 0 ? Wrap(static_cast<uint64_t>(x) * static_cast<uint64_t>(w)) : x; }},
      {"eq", {"torch.eq", "operator.eq"}, Elements::kAny, FUSELAGE_BOTH(a == b), true},
      {"ne", {"torch.ne", "operator.ne"}, Elements::kAny, FUSELAGE_BOTH(a != b), true},
      {"gt", {"torch.gt", "operator.gt"}, Elements::kAny, FUSELAGE_BOTH(a > b), true},
      {"ge", {"torch.ge", "operator.ge"}, Elements::kAny, FUSELAGE_BOTH(a >= b), true},
      {"lt", {"torch.lt", "operator.lt"}, Elements::kAny, FUSELAGE_BOTH(a < b), true},
      {"le", {"torch.le", "operator.le"}, Elements::kAny, FUSELAGE_BOTH(a <= b), true},
      {"logical_and", wrapped("logical_and"), Elements::kBool, nullptr, [](int64_t a, int64_t b) { return a & b; }},
      {"logical_or", wrapped("logical_or"), Elements::kBool, nullptr, [](int64_t a, int64_t b) { return a | b; }},
      {"logical_xor", wrapped("logical_xor"), Elements::kBool, nullptr, [](int64_t a, int64_t b) { return a ^ b; }},
      {"bitwise_and", wrapped("bitwise_and"), Elements::kIntegers, nullptr, [](int64_t a, int64_t b) { return a & b; }},
      {"bitwise_or", wrapped("bitwise_or"), Elements::kIntegers, nullptr, [](int64_t a, int64_t b) { return a | b; }},
      {"bitwise_xor", wrapped("bitwise_xor"), Elements::kIntegers, nullptr, [](int64_t a, int64_t b) { return a ^ b; }},
      {"bitwise_left_shift", wrapped("bitwise_left_shift"), Elements::kIntegers, nullptr,
       [](int64_t a, int64_t b) { return IsShift(b) ? Wrap(static_cast<uint64_t>(a) << b) : 0; }},
      {"bitwise_right_shift", wrapped("bitwise_right_shift"), Elements::kIntegers, nullptr,
       [](int64_t a, int64_t b) { return IsShift(b) ? a >> b
                                         : a < 0    ? int64_t{-1}
                                                    : 0; }},
  };
#undef FUSELAGE_BOTH
}

bool IsAdd(const ir::OpCall& call) { return call.schema().FindAttributeOrNull("alpha") != nullptr; }

absl::StatusOr<ir::Type> InferBinary(const ir::InferCall& call, Elements elements, bool to_bool) {
  const TensorType& input = call.tensor(0);
  RETURN_IF_ERROR(CheckElements(call, 0, elements));
  RETURN_IF_ERROR(CheckNoCodes(call, 1));
  RETURN_IF_ERROR(CheckDType(call, 1, input.dtype));
  if (IsAdd(call)) {
    RETURN_IF_ERROR(CheckOneOf(call, "activation", {"none", "relu"}));
    const double alpha = call.GetFloat("alpha");
    if (!std::isfinite(alpha)) return AttributeError(call, "alpha", "a finite number");
    if (!IsFloat(input.dtype) && (alpha != std::floor(alpha) || std::fabs(alpha) > 9007199254740992.0)) {
      return AttributeError(call, "alpha", absl::StrCat("a whole number for ", ToString(input)));
    }
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(input.shape, call.tensor(1).shape));
  return ResultType(to_bool ? DType::kBool : input.dtype, std::move(shape));
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

absl::StatusOr<std::vector<Tensor>> EvaluateBinary(const ir::EvaluateCall& call, const BinaryOp& op) {
  const Tensor& input = call.tensor(0);
  const Tensor& other = call.tensor(1);
  const double alpha = IsAdd(call) ? call.GetFloat("alpha") : 1;
  const bool relu = IsAdd(call) && call.GetString("activation") == "relu";
  if (IsFloat(input.dtype())) {
    std::vector<double> a = Stretched(RealValues(input), input.shape(), call.result());
    const std::vector<double> b = Stretched(RealValues(other), other.shape(), call.result());
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = op.real(a[i], alpha * b[i]);
      if (relu) a[i] = Relu(a[i]);
    }
    return One(OfReals(call.result(), a));
  }
  const uint64_t factor = static_cast<uint64_t>(static_cast<int64_t>(alpha));
  std::vector<int64_t> a = Stretched(Integers(input), input.shape(), call.result());
  const std::vector<int64_t> b = Stretched(Integers(other), other.shape(), call.result());
  for (size_t i = 0; i < a.size(); ++i) {
    if (op.fails != nullptr && op.fails(a[i], b[i])) {
      return absl::InvalidArgumentError(absl::StrCat("division of the integer ", a[i], " by zero at element ", i));
    }
    a[i] = op.integer(a[i], Wrap(factor * static_cast<uint64_t>(b[i])));
  }
  Tensor result = OfIntegers(call.result(), a);
  for (int64_t i = 0; relu && i < result.num_elements(); ++i) {
    if (result.At(i) < 0) result.Set(i, 0);
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const BinaryOp& op : BinaryOps()) {
    ir::OpSchema schema;
    schema.name = op.name;
    schema.aliases = op.aliases;
    schema.operands = {{"input"}, {"other"}};
    schema.elementwise = true;
    schema.homogeneous = schema.name == "add" || schema.name == "sub";
    schema.infer = [elements = op.elements, to_bool = op.to_bool](const ir::InferCall& call) {
      return InferBinary(call, elements, to_bool);
    };
    schema.evaluate = [op](const ir::EvaluateCall& call) { return EvaluateBinary(call, op); };
    if (schema.name == "add") {
      schema.attributes = {{"alpha", AttributeKind::kFloat, 1.0}, {"activation", AttributeKind::kString, "none"}};
      schema.module_form = true;
      schema.fusable_activation = true;
    }
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::binary
