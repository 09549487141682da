#include "ir/ops/unary/unary.h"

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/exact_functions.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/elements.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::unary {
namespace {

using Map = std::function<double(double)>;

// --- Activations: the torch.nn modules among them. Each makes its function from the call's attributes.

Map MakeRelu(const ir::OpCall&) { return Relu; }
Map MakeRelu6(const ir::OpCall&) {
  return [](double x) { return x > 6 ? 6 : Relu(x); };
}
Map MakeSigmoid(const ir::OpCall&) { return exact::Sigmoid; }
Map MakeTanh(const ir::OpCall&) {
  return [](double x) { return std::tanh(x); };
}
Map MakeSilu(const ir::OpCall&) { return exact::Silu; }
Map MakeHardSwish(const ir::OpCall&) { return exact::HardSwish; }
Map MakeSoftplus(const ir::OpCall&) { return exact::Softplus; }
Map MakeSoftsign(const ir::OpCall&) {
  return [](double x) { return x / (1 + std::fabs(x)); };
}
Map MakeMish(const ir::OpCall&) { return exact::Mish; }
Map MakeGelu(const ir::OpCall& call) { return call.GetString("approximate") == "tanh" ? exact::GeluTanh : exact::Gelu; }

Map MakeHardSigmoid(const ir::OpCall& call) {
  return [alpha = call.GetFloat("alpha"), beta = call.GetFloat("beta")](double x) {
    return exact::HardSigmoid(x, alpha, beta);
  };
}

Map MakeLeakyRelu(const ir::OpCall& call) {
  return [slope = call.GetFloat("negative_slope")](double x) { return exact::LeakyRelu(x, slope); };
}

// Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units", 2015.
Map MakeElu(const ir::OpCall& call) {
  return [alpha = call.GetFloat("alpha")](double x) { return x < 0 ? alpha * std::expm1(x) : x; };
}
// Klambauer et al., "Self-Normalizing Neural Networks", 2017.
Map MakeSelu(const ir::OpCall& call) {
  return [alpha = call.GetFloat("alpha"), gamma = call.GetFloat("gamma")](double x) {
    return gamma * (x < 0 ? alpha * std::expm1(x) : x);
  };
}
// Barron, "Continuously Differentiable Exponential Linear Units", 2017.
Map MakeCelu(const ir::OpCall& call) {
  return [alpha = call.GetFloat("alpha")](double x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; };
}

Map MakeThreshold(const ir::OpCall& call) {
  return [threshold = call.GetFloat("threshold"), value = call.GetFloat("value")](double x) {
    return x <= threshold ? value : x;
  };
}

Map MakeClamp(const ir::OpCall& call) {
  return [min = call.GetFloat("min"), max = call.GetFloat("max")](double x) {
    const double y = x < min ? min : x;
    return y > max ? max : y;
  };
}

struct Activation {
  const char* name;
  Map (*make)(const ir::OpCall&);
  Elements elements;
  double operations = 1;
  std::vector<ir::AttributeSpec> attributes = {};
  std::vector<std::string> aliases = {};  // None: torch.nn.functional.<name>.
};

std::vector<Activation> Activations() {
  constexpr Elements kNumbers = Elements::kNumbers, kFloats = Elements::kFloats;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto number = [](const char* name, double value) {
    return ir::AttributeSpec{name, AttributeKind::kFloat, value};
  };
  return {
      {"relu",
       MakeRelu,
       kNumbers,
       1,
       {},
       {"torch.relu", "torch.relu_", "torch.nn.functional.relu", "torch.nn.functional.relu_", "relu_"}},
      {"relu6", MakeRelu6, kNumbers},
      {"sigmoid",
       MakeSigmoid,
       kFloats,
       kTranscendental,
       {},
       {"torch.sigmoid", "torch.sigmoid_", "torch.nn.functional.sigmoid", "sigmoid_"}},
      {"tanh",
       MakeTanh,
       kFloats,
       kTranscendental,
       {},
       {"torch.tanh", "torch.tanh_", "torch.nn.functional.tanh", "tanh_"}},
      {"silu", MakeSilu, kFloats, kTranscendental},
      {"gelu", MakeGelu, kFloats, kTranscendental, {{"approximate", AttributeKind::kString, "none"}}},
      {"hardswish", MakeHardSwish, kFloats, 4},
      {"hardsigmoid", MakeHardSigmoid, kFloats, 3, {number("alpha", 1.0 / 6), number("beta", 0.5)}},
      {"leaky_relu",
       MakeLeakyRelu,
       kFloats,
       1,
       {number("negative_slope", 0.01)},
       {"torch.nn.functional.leaky_relu", "torch.nn.functional.leaky_relu_"}},
      {"elu", MakeElu, kFloats, 1, {number("alpha", 1)}},
      {"selu", MakeSelu, kFloats, 1, {number("alpha", 1.6732632423543772), number("gamma", 1.0507009873554805)}},
      {"celu", MakeCelu, kFloats, 1, {number("alpha", 1)}},
      {"softplus", MakeSoftplus, kFloats},
      {"softsign", MakeSoftsign, kFloats},
      {"mish", MakeMish, kFloats},
      {"threshold", MakeThreshold, kNumbers, 1, {number("threshold", 0), number("value", 0)}},
      {"clamp",
       MakeClamp,
       kNumbers,
       1,
       {number("min", -infinity), number("max", infinity)},
       {"torch.clamp", "torch.clamp_", "torch.clip", "torch.clip_", "clip", "clamp_", "clip_"}},
  };
}

// --- Functions of a number alone.

double Erf(double x) { return std::erf(x); }
double Reciprocal(double x) { return 1 / x; }
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double IsNan(double x) { return std::isnan(x); }
double Not(double x) { return x == 0; }

// Modulo 2^64.
int64_t Negated(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }
int64_t Magnitude(int64_t x) { return x < 0 ? Negated(x) : x; }
int64_t SignOf(int64_t x) { return (x > 0) - (x < 0); }
int64_t Complement(int64_t x) { return ~x; }

struct Function {
  const char* name;
  Elements elements;
  double (*real)(double);  // Null: floats are not among the elements.
  int64_t (*integer)(int64_t) = nullptr;
  bool to_bool = false;
};

constexpr Function kFunctions[] = {
    {"abs", Elements::kNumbers, std::fabs, Magnitude},
    {"acos", Elements::kFloats, std::acos},
    {"acosh", Elements::kFloats, std::acosh},
    {"asin", Elements::kFloats, std::asin},
    {"asinh", Elements::kFloats, std::asinh},
    {"atan", Elements::kFloats, std::atan},
    {"atanh", Elements::kFloats, std::atanh},
    {"bitwise_not", Elements::kIntegers, nullptr, Complement},
    {"ceil", Elements::kFloats, std::ceil},
    {"cos", Elements::kFloats, std::cos},
    {"cosh", Elements::kFloats, std::cosh},
    {"erf", Elements::kFloats, Erf},
    {"exp", Elements::kFloats, std::exp},
    {"floor", Elements::kFloats, std::floor},
    {"isnan", Elements::kFloats, IsNan, nullptr, /*to_bool=*/true},
    {"log", Elements::kFloats, std::log},
    {"logical_not", Elements::kBool, Not, nullptr, /*to_bool=*/true},
    {"neg", Elements::kNumbers, [](double x) { return -x; }, Negated},
    {"reciprocal", Elements::kFloats, Reciprocal},
    {"round", Elements::kFloats, std::nearbyint},  // Half to even: the mode of rounding is nobody's to change.
    {"sign", Elements::kNumbers, Sign, SignOf},
    {"sin", Elements::kFloats, std::sin},
    {"sinh", Elements::kFloats, std::sinh},
    {"sqrt", Elements::kFloats, std::sqrt},
    {"tan", Elements::kFloats, std::tan},
};

// --- Inference and evaluation.

absl::Status CheckParameters(const ir::InferCall& call) {
  const TensorType& input = call.tensor(0);
  for (const ir::AttributeSpec& spec : call.schema().attributes) {
    if (spec.name == "approximate") RETURN_IF_ERROR(CheckOneOf(call, "approximate", {"none", "tanh"}));
    if (spec.kind != AttributeKind::kFloat) continue;
    const double value = call.GetFloat(spec.name);
    if (std::isnan(value)) return AttributeError(call, spec.name, "a number");
    if (!IsFloat(input.dtype) && std::isfinite(value) && value != std::floor(value)) {
      return AttributeError(call, spec.name, absl::StrCat("a whole number for ", ToString(input)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> EvaluateReal(const ir::EvaluateCall& call, const Map& map) {
  const Tensor& input = call.tensor(0);
  if (input.dtype() != call.result().dtype) {
    Tensor result(call.result());
    for (int64_t i = 0; i < result.num_elements(); ++i) result.Set(i, map(input.At(i)));
    return One(std::move(result));
  }
  Tensor result = WithType(input, call.result());
  const bool floats = IsFloat(result.dtype());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const double x = result.At(i), y = map(x);
    if (floats || x != y) result.Set(i, y);  // An integer that stays keeps its bits: i64 has more than a double.
  }
  return One(std::move(result));
}

absl::StatusOr<std::vector<Tensor>> EvaluateFunction(const ir::EvaluateCall& call, const Function& function) {
  const Tensor& input = call.tensor(0);
  if (function.integer == nullptr || IsFloat(input.dtype())) return EvaluateReal(call, function.real);
  std::vector<int64_t> values = Integers(input);
  for (int64_t& value : values) value = function.integer(value);
  return One(OfIntegers(call.result(), values));
}

// isinf's result depends on attributes of its own.
void RegisterIsInf(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "isinf";
  schema.aliases = {"torch.isinf"};
  schema.operands = {{"input"}};
  schema.attributes = {{"detect_negative", AttributeKind::kBool, true},
                       {"detect_positive", AttributeKind::kBool, true}};
  schema.elementwise = true;
  schema.infer = [](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
    RETURN_IF_ERROR(CheckElements(call, 0, Elements::kFloats));
    return ResultType(DType::kBool, call.tensor(0).shape);
  };
  schema.evaluate = [](const ir::EvaluateCall& call) {
    const bool negative = call.GetBool("detect_negative"), positive = call.GetBool("detect_positive");
    return EvaluateReal(call, [=](double x) -> double { return std::isinf(x) && (x < 0 ? negative : positive); });
  };
  registry.Register(std::move(schema));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (Activation& op : Activations()) {
    ir::OpSchema schema;
    schema.name = op.name;
    schema.aliases = op.aliases;
    if (op.aliases.empty()) schema.aliases = {absl::StrCat("torch.nn.functional.", op.name)};
    schema.operands = {{"input"}};
    schema.attributes = op.attributes;
    schema.module_form = true;
    schema.elementwise = true;
    schema.homogeneous = schema.name == "relu" || schema.name == "leaky_relu";
    schema.operations_per_element = op.operations;
    schema.infer = [elements = op.elements](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
      RETURN_IF_ERROR(CheckElements(call, 0, elements));
      RETURN_IF_ERROR(CheckParameters(call));
      return ResultType(call.tensor(0).dtype, call.tensor(0).shape);
    };
    schema.evaluate = [make = op.make](const ir::EvaluateCall& call) { return EvaluateReal(call, make(call)); };
    registry.Register(std::move(schema));
  }
  for (const Function& function : kFunctions) {
    ir::OpSchema schema;
    schema.name = function.name;
    schema.aliases = {absl::StrCat("torch.", function.name)};
    schema.operands = {{"input"}};
    schema.elementwise = true;
    schema.infer = [&function](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
      RETURN_IF_ERROR(CheckElements(call, 0, function.elements));
      return ResultType(function.to_bool ? DType::kBool : call.tensor(0).dtype, call.tensor(0).shape);
    };
    schema.evaluate = [&function](const ir::EvaluateCall& call) { return EvaluateFunction(call, function); };
    registry.Register(std::move(schema));
  }
  RegisterIsInf(registry);
}

}  // namespace fuselage::ops::unary
