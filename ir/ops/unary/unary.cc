#include "ir/ops/unary/unary.h"

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::unary {
namespace {

using Map = std::function<double(double)>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double HardSigmoid(double x, double alpha, double beta) {
  const double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

Map MakeRelu(const ir::OpCall&) { return Relu; }
Map MakeRelu6(const ir::OpCall&) {
  return [](double x) { return x > 6 ? 6 : Relu(x); };
}
Map MakeSigmoid(const ir::OpCall&) { return Sigmoid; }
Map MakeTanh(const ir::OpCall&) {
  return [](double x) { return std::tanh(x); };
}
Map MakeSilu(const ir::OpCall&) {
  return [](double x) { return x * Sigmoid(x); };
}
Map MakeHardSwish(const ir::OpCall&) {
  return [](double x) { return x * HardSigmoid(x, 1.0 / 6, 0.5); };
}

// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
Map MakeGelu(const ir::OpCall& call) {
  if (call.GetString("approximate") == "tanh") {
    return [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); };
  }
  return [](double x) { return 0.5 * x * (1 + std::erf(x / M_SQRT2)); };
}

Map MakeHardSigmoid(const ir::OpCall& call) {
  return
      [alpha = call.GetFloat("alpha"), beta = call.GetFloat("beta")](double x) { return HardSigmoid(x, alpha, beta); };
}

Map MakeLeakyRelu(const ir::OpCall& call) {
  return [slope = call.GetFloat("negative_slope")](double x) { return x < 0 ? slope * x : x; };
}

Map MakeClamp(const ir::OpCall& call) {
  return [min = call.GetFloat("min"), max = call.GetFloat("max")](double x) {
    const double y = x < min ? min : x;
    return y > max ? max : y;
  };
}

struct UnaryOp {
  const char* name;
  std::vector<std::string> aliases;
  std::vector<ir::AttributeSpec> attributes;
  bool integers;
  Map (*make)(const ir::OpCall&);
};

std::vector<UnaryOp> UnaryOps() {
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
       MakeSigmoid},
      {"tanh", {"torch.tanh", "torch.tanh_", "torch.nn.functional.tanh", "tanh_"}, {}, false, MakeTanh},
      {"silu", {"torch.nn.functional.silu"}, {}, false, MakeSilu},
      {"gelu", {"torch.nn.functional.gelu"}, {{"approximate", AttributeKind::kString, "none"}}, false, MakeGelu},
      {"hardswish", {"torch.nn.functional.hardswish"}, {}, false, MakeHardSwish},
      {"hardsigmoid",
       {"torch.nn.functional.hardsigmoid"},
       {number("alpha", 1.0 / 6), number("beta", 0.5)},
       false,
       MakeHardSigmoid},
      {"leaky_relu",
       {"torch.nn.functional.leaky_relu", "torch.nn.functional.leaky_relu_"},
       {number("negative_slope", 0.01)},
       false,
       MakeLeakyRelu},
      {"clamp",
       {"torch.clamp", "torch.clamp_", "torch.clip", "torch.clip_", "clip", "clamp_", "clip_"},
       {number("min", -infinity), number("max", infinity)},
       true,
       MakeClamp},
  };
}

absl::StatusOr<ir::Type> InferUnary(const ir::InferCall& call, bool integers) {
  const TensorType& input = call.tensor(0);
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  if (!integers) RETURN_IF_ERROR(CheckFloat(call, 0));
  if (input.dtype == DType::kBool) return OperandError(call, 0, "wanted numbers");
  for (const ir::AttributeSpec& spec : call.schema().attributes) {
    if (spec.name == "approximate") RETURN_IF_ERROR(CheckOneOf(call, "approximate", {"none", "tanh"}));
    if (spec.kind != AttributeKind::kFloat) continue;
    const double value = call.GetFloat(spec.name);
    if (std::isnan(value)) return AttributeError(call, spec.name, "a number");
    if (!IsFloat(input.dtype) && std::isfinite(value) && value != std::floor(value)) {
      return AttributeError(call, spec.name, absl::StrCat("a whole number for ", ToString(input)));
    }
  }
  return ResultType(input.dtype, input.shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateUnary(const ir::EvaluateCall& call, const Map& map) {
  Tensor result = WithType(call.tensor(0), call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const double x = result.At(i), y = map(x);
    if (x != y) result.Set(i, y);  // What stays keeps its bits: i64 has more of them than a double.
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (UnaryOp& op : UnaryOps()) {
    ir::OpSchema schema;
    schema.name = op.name;
    schema.aliases = op.aliases;
    schema.operands = {{"input"}};
    schema.attributes = op.attributes;
    schema.module_form = true;
    schema.elementwise = true;
    schema.infer = [integers = op.integers](const ir::InferCall& call) { return InferUnary(call, integers); };
    schema.evaluate = [make = op.make](const ir::EvaluateCall& call) { return EvaluateUnary(call, make(call)); };
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::unary
