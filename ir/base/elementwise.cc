#include "ir/base/elementwise.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fuselage {
namespace {

// A numeric attribute that a step has, and the field of the instruction that takes it.
struct Parameter {
  const char* name;
  float ElementwiseInstruction::*field;
  double default_value;
};
struct StepRule {
  const char* name;
  ElementwiseOp op;
  int operands;
  std::vector<Parameter> parameters;
};

const std::vector<StepRule>& Rules() {
  constexpr auto p = &ElementwiseInstruction::p, q = &ElementwiseInstruction::q;
  const double infinity = std::numeric_limits<double>::infinity();
  static const auto& rules = *new std::vector<StepRule>{
      {"abs", ElementwiseOp::kAbs, 1, {}},
      {"acos", ElementwiseOp::kAcos, 1, {}},
      {"acosh", ElementwiseOp::kAcosh, 1, {}},
      {"add", ElementwiseOp::kAdd, 2, {{"alpha", p, 1}}},
      {"asin", ElementwiseOp::kAsin, 1, {}},
      {"asinh", ElementwiseOp::kAsinh, 1, {}},
      {"atan", ElementwiseOp::kAtan, 1, {}},
      {"atanh", ElementwiseOp::kAtanh, 1, {}},
      {"ceil", ElementwiseOp::kCeil, 1, {}},
      {"celu", ElementwiseOp::kCelu, 1, {{"alpha", p, 1}}},
      {"clamp", ElementwiseOp::kClamp, 1, {{"min", p, -infinity}, {"max", q, infinity}}},
      {"cos", ElementwiseOp::kCos, 1, {}},
      {"cosh", ElementwiseOp::kCosh, 1, {}},
      {"div", ElementwiseOp::kDiv, 2, {}},
      {"elu", ElementwiseOp::kElu, 1, {{"alpha", p, 1}}},
      {"erf", ElementwiseOp::kErf, 1, {}},
      {"exp", ElementwiseOp::kExp, 1, {}},
      {"floor", ElementwiseOp::kFloor, 1, {}},
      {"fmod", ElementwiseOp::kFmod, 2, {}},
      {"gelu", ElementwiseOp::kGelu, 1, {}},
      {"hardsigmoid", ElementwiseOp::kHardsigmoid, 1, {{"alpha", p, 1.0 / 6}, {"beta", q, 0.5}}},
      {"hardswish", ElementwiseOp::kHardswish, 1, {}},
      {"leaky_relu", ElementwiseOp::kLeakyRelu, 1, {{"negative_slope", p, 0.01}}},
      {"log", ElementwiseOp::kLog, 1, {}},
      {"maximum", ElementwiseOp::kMaximum, 2, {}},
      {"minimum", ElementwiseOp::kMinimum, 2, {}},
      {"mish", ElementwiseOp::kMish, 1, {}},
      {"mul", ElementwiseOp::kMul, 2, {}},
      {"neg", ElementwiseOp::kNeg, 1, {}},
      {"pow", ElementwiseOp::kPow, 2, {}},
      {"prelu", ElementwiseOp::kPrelu, 2, {}},
      {"reciprocal", ElementwiseOp::kReciprocal, 1, {}},
      {"relu", ElementwiseOp::kRelu, 1, {}},
      {"remainder", ElementwiseOp::kRemainder, 2, {}},
      {"round", ElementwiseOp::kRound, 1, {}},
      {"selu", ElementwiseOp::kSelu, 1, {{"alpha", p, 1.6732632423543772}, {"gamma", q, 1.0507009873554805}}},
      {"sigmoid", ElementwiseOp::kSigmoid, 1, {}},
      {"sign", ElementwiseOp::kSign, 1, {}},
      {"silu", ElementwiseOp::kSilu, 1, {}},
      {"sin", ElementwiseOp::kSin, 1, {}},
      {"sinh", ElementwiseOp::kSinh, 1, {}},
      {"softplus", ElementwiseOp::kSoftplus, 1, {}},
      {"softsign", ElementwiseOp::kSoftsign, 1, {}},
      {"sqrt", ElementwiseOp::kSqrt, 1, {}},
      {"sub", ElementwiseOp::kSub, 2, {}},
      {"tan", ElementwiseOp::kTan, 1, {}},
      {"tanh", ElementwiseOp::kTanh, 1, {}},
      {"threshold", ElementwiseOp::kThreshold, 1, {{"threshold", p, 0}, {"value", q, 0}}},
  };
  return rules;
}

const StepRule* FindRuleOrNull(absl::string_view op) {
  for (const StepRule& rule : Rules()) {
    if (op == rule.name) return &rule;
  }
  return nullptr;
}

// "0.5", "\"relu\"".
absl::StatusOr<Attribute> ParseValue(absl::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return Attribute(std::string(text.substr(1, text.size() - 2)));
  }
  char* end = nullptr;
  const std::string copy(text);
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no value"));
  return Attribute(value);
}

absl::StatusOr<ElementwiseStep> ParseStep(absl::string_view text, int num_values) {
  const size_t open = text.find('(');
  if (open == absl::string_view::npos || text.back() != ')') {
    return absl::InvalidArgumentError("wanted op(values, name=value)");
  }
  ElementwiseStep step{std::string(text.substr(0, open)), {}, {}};
  const StepRule* rule = FindRuleOrNull(step.op);
  if (rule == nullptr) return absl::InvalidArgumentError(absl::StrCat("'", step.op, "' is no elementwise step"));
  for (absl::string_view item : absl::StrSplit(text.substr(open + 1, text.size() - open - 2), ',')) {
    item = absl::StripAsciiWhitespace(item);
    const size_t equals = item.find('=');
    if (equals != absl::string_view::npos) {
      ASSIGN_OR_RETURN(Attribute value, ParseValue(item.substr(equals + 1)));
      step.attributes.emplace(std::string(item.substr(0, equals)), std::move(value));
      continue;
    }
    int value;
    if (!absl::SimpleAtoi(item, &value) || value < 0 || value >= num_values) {
      return absl::InvalidArgumentError(absl::StrCat("'", item, "', wanted a value in [0, ", num_values, ")"));
    }
    step.operands.push_back(value);
  }
  if (static_cast<int>(step.operands.size()) != rule->operands) {
    return absl::InvalidArgumentError(absl::StrCat(step.operands.size(), " values, wanted ", rule->operands));
  }
  return step;
}

absl::StatusOr<ElementwiseInstruction> Compile(const ElementwiseStep& step) {
  const StepRule* rule = FindRuleOrNull(step.op);
  if (rule == nullptr) return absl::InvalidArgumentError(absl::StrCat("'", step.op, "' is no elementwise step"));
  ElementwiseInstruction instruction;
  instruction.op = rule->op;
  instruction.a = step.operands[0];
  if (rule->operands == 2) instruction.b = step.operands[1];
  for (const Parameter& parameter : rule->parameters) {
    instruction.*parameter.field = static_cast<float>(parameter.default_value);
  }
  for (const auto& [name, value] : step.attributes) {
    bool known = false;
    for (const Parameter& parameter : rule->parameters) {
      if (name != parameter.name || value.kind() != AttributeKind::kFloat || std::isnan(value.as_float())) continue;
      instruction.*parameter.field = static_cast<float>(value.as_float());
      known = true;
    }
    if (step.op == "add" && name == "activation" && value == Attribute("none")) known = true;
    if (step.op == "add" && name == "activation" && value == Attribute("relu")) {
      instruction.q = 1;
      known = true;
    }
    if (step.op == "gelu" && name == "approximate" && value == Attribute("none")) known = true;
    if (step.op == "gelu" && name == "approximate" && value == Attribute("tanh")) {
      instruction.op = ElementwiseOp::kGeluTanh;
      known = true;
    }
    if (!known) return absl::InvalidArgumentError(absl::StrCat(name, "=", value.ToString()));
  }
  return instruction;
}

}  // namespace

std::string ToString(const ElementwiseStep& step) {
  std::string text = absl::StrCat(step.op, "(");
  const char* separator = "";
  for (const int operand : step.operands) {
    absl::StrAppend(&text, separator, operand);
    separator = ", ";
  }
  for (const auto& [name, value] : step.attributes) absl::StrAppend(&text, separator, name, "=", value.ToString());
  return absl::StrCat(text, ")");
}

absl::StatusOr<std::vector<ElementwiseStep>> ParseElementwiseSteps(absl::Span<const std::string> steps,
                                                                   int num_operands) {
  std::vector<ElementwiseStep> parsed;
  for (const std::string& text : steps) {
    absl::StatusOr<ElementwiseStep> step = ParseStep(text, num_operands + static_cast<int>(parsed.size()));
    if (!step.ok()) return Annotate(step.status(), absl::StrCat("step \"", text, "\""));
    parsed.push_back(*std::move(step));
  }
  if (parsed.empty()) return absl::InvalidArgumentError("no steps");
  return parsed;
}

std::vector<absl::string_view> ElementwiseSteps() {
  std::vector<absl::string_view> names;
  for (const StepRule& rule : Rules()) names.push_back(rule.name);
  return names;
}

bool IsElementwiseStep(absl::string_view op) { return FindRuleOrNull(op) != nullptr; }

absl::StatusOr<std::vector<ElementwiseInstruction>> CompileElementwise(const std::vector<ElementwiseStep>& steps) {
  std::vector<ElementwiseInstruction> program;
  for (const ElementwiseStep& step : steps) {
    absl::StatusOr<ElementwiseInstruction> instruction = Compile(step);
    if (!instruction.ok()) return Annotate(instruction.status(), absl::StrCat("step \"", ToString(step), "\""));
    program.push_back(*instruction);
  }
  return program;
}

ElementwiseStep StepOf(const ElementwiseInstruction& instruction) {
  ElementwiseStep step;
  ElementwiseOp op = instruction.op;
  if (op == ElementwiseOp::kGeluTanh) {
    op = ElementwiseOp::kGelu;
    step.attributes.emplace("approximate", Attribute("tanh"));
  }
  for (const StepRule& rule : Rules()) {
    if (rule.op != op) continue;
    step.op = rule.name;
    step.operands.push_back(instruction.a);
    if (rule.operands == 2) step.operands.push_back(instruction.b);
    for (const Parameter& parameter : rule.parameters) {
      const float value = instruction.*parameter.field;
      if (value == static_cast<float>(parameter.default_value)) continue;
      step.attributes.emplace(parameter.name, Attribute(double{value}));
    }
  }
  if (op == ElementwiseOp::kAdd && instruction.q != 0) step.attributes.emplace("activation", Attribute("relu"));
  return step;
}

}  // namespace fuselage
