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
  std::vector<std::string> aliases;
  std::vector<ir::AttributeSpec> attributes;
  bool integers;
  Map (*make)(const ir::OpCall&);
  double operations = 1;
};

std::vector<Activation> Activations() {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto number = [](const char* name, double value) {
    return ir::AttributeSpec{name, AttributeKind::kFloat, value};
  };
  return {
      {"relu",
       {"torch.relu", "torch.relu_", "torch.nn.functional.relu", "torch.nn.functional.relu_", "relu_"},
       {},
       true,
       MakeRelu},
      {"relu6", {"torch.nn.functional.relu6"}, {}, true, MakeRelu6},
      {"sigmoid",
       {"torch.sigmoid", "torch.sigmoid_", "torch.nn.functional.sigmoid", "sigmoid_"},
       {},
       false,
       MakeSigmoid,
       kTranscendental},
      {"tanh",
       {"torch.tanh", "torch.tanh_", "torch.nn.functional.tanh", "tanh_"},
       {},
       false,
       MakeTanh,
       kTranscendental},
      {"silu", {"torch.nn.functional.silu"}, {}, false, MakeSilu, kTranscendental},
      {"gelu",
       {"torch.nn.functional.gelu"},
       {{"approximate", AttributeKind::kString, "none"}},
       false,
       MakeGelu,
       kTranscendental},
      {"hardswish", {"torch.nn.functional.hardswish"}, {}, false, MakeHardSwish, 4},
      {"hardsigmoid",
       {"torch.nn.functional.hardsigmoid"},
       {number("alpha", 1.0 / 6), number("beta", 0.5)},
       false,
       MakeHardSigmoid,
       3},
      {"leaky_relu",
       {"torch.nn.functional.leaky_relu", "torch.nn.functional.leaky_relu_"},
       {number("negative_slope", 0.01)},
       false,
       MakeLeakyRelu},
      {"elu", {"torch.nn.functional.elu"}, {number("alpha", 1)}, false, MakeElu},
      {"selu",
       {"torch.nn.functional.selu"},
       {number("alpha", 1.6732632423543772), number("gamma", 1.0507009873554805)},
       false,
       MakeSelu},
      {"celu", {"torch.nn.functional.celu"}, {number("alpha", 1)}, false, MakeCelu},
      {"softplus", {"torch.nn.functional.softplus"}, {}, false, MakeSoftplus},
      {"softsign", {"torch.nn.functional.softsign"}, {}, false, MakeSoftsign},
      {"mish", {"torch.nn.functional.mish"}, {}, false, MakeMish},
      {"threshold",
       {"torch.nn.functional.threshold"},
       {number("threshold", 0), number("value", 0)},
       true,
       MakeThreshold},
      {"clamp",
       {"torch.clamp", "torch.clamp_", "torch.clip", "torch.clip_", "clip", "clamp_", "clip_"},
       {number("min", -infinity), number("max", infinity)},
       true,
       MakeClamp},
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
    schema.operands = {{"input"}};
    schema.attributes = op.attributes;
    schema.module_form = true;
    schema.elementwise = true;
    schema.operations_per_element = op.operations;
    const Elements elements = op.integers ? Elements::kNumbers : Elements::kFloats;
    schema.infer = [elements](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
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
