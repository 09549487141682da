#include "ir/base/activation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/base/exact_functions.h"
#include "ir/base/quant_params.h"

namespace fuselage {
namespace {

// Takes "min=0.0" from the front of `text`.
bool ConsumeBound(absl::string_view name, absl::string_view* text, float* bound) {
  if (!absl::ConsumePrefix(text, name) || !absl::ConsumePrefix(text, "=")) return false;
  const size_t end = text->find_first_of(",)");
  if (end == absl::string_view::npos || !absl::SimpleAtof(text->substr(0, end), bound)) return false;
  text->remove_prefix(end);
  return !std::isnan(*bound);
}

bool ParseClamp(absl::string_view text, Activation* clamp) {
  return absl::ConsumePrefix(&text, "clamp(") && ConsumeBound("min", &text, &clamp->min) &&
         absl::ConsumePrefix(&text, ", ") && ConsumeBound("max", &text, &clamp->max) && text == ")" &&
         clamp->min <= clamp->max;
}

// "leaky_relu(negative_slope=0.1)", "silu".
bool ParseFunction(absl::string_view text, Activation* activation) {
  const size_t open = text.find('(');
  AttributeMap attributes;
  if (open != absl::string_view::npos) {
    if (text.back() != ')') return false;
    for (const absl::string_view item : absl::StrSplit(text.substr(open + 1, text.size() - open - 2), ", ")) {
      const std::vector<absl::string_view> parts = absl::StrSplit(item, absl::MaxSplits('=', 1));
      if (parts.size() != 2) return false;
      double number;
      const Attribute value =
          absl::SimpleAtod(parts[1], &number) ? Attribute(number) : Attribute(std::string(parts[1]));
      if (!attributes.emplace(std::string(parts[0]), value).second) return false;
    }
  }
  *activation = FunctionOf(text.substr(0, open), attributes);
  return activation->function.has_value();
}

// "leaky_relu(negative_slope=0.1), clamp(min=-0.5, max=inf)".
bool ParseBoundedFunction(absl::string_view text, Activation* activation) {
  constexpr absl::string_view kBetween = ", ";
  const size_t end = text.find(", clamp(");
  Activation clamp;
  if (end != absl::string_view::npos && !ParseClamp(text.substr(end + kBetween.size()), &clamp)) return false;
  if (!ParseFunction(text.substr(0, end), activation)) return false;
  *activation = activation->Then(clamp);
  return true;
}

std::string ClampText(const Activation& clamp) {
  return absl::StrCat("clamp(min=", ShortestText(clamp.min), ", max=", ShortestText(clamp.max), ")");
}

// "gelu, hardsigmoid, ..."
std::string FunctionNames() {
  std::vector<std::string> names;
  for (const auto& activation : elementwise::kActivations) names.push_back(StepOf({activation.op}).op);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return absl::StrJoin(names, ", ");
}

}  // namespace

Activation Activation::without_bounds() const {
  Activation unbounded;
  unbounded.function = function;
  return unbounded;
}

Activation Activation::Then(const Activation& clamp) const {
  Activation both = *this;
  both.min = clamp(min);
  both.max = clamp(max);
  return both;
}

double Activation::Apply(double x) const {
  switch (function->op) {
    case ElementwiseOp::kLeakyRelu: return exact::LeakyRelu(x, function->p);
    case ElementwiseOp::kHardsigmoid: return exact::HardSigmoid(x, function->p, function->q);
    case ElementwiseOp::kHardswish: return exact::HardSwish(x);
    case ElementwiseOp::kSigmoid: return exact::Sigmoid(x);
    case ElementwiseOp::kSilu: return exact::Silu(x);
    case ElementwiseOp::kTanh: return std::tanh(x);
    case ElementwiseOp::kGelu: return exact::Gelu(x);
    case ElementwiseOp::kGeluTanh: return exact::GeluTanh(x);
    case ElementwiseOp::kMish: return exact::Mish(x);
    default: return x;
  }
}

std::string ToString(const Activation& activation) {
  if (activation.is_none()) return "none";
  if (activation.is_relu()) return "relu";
  if (activation.is_clamp()) return ClampText(activation);
  if (!activation.is_function()) {
    return absl::StrCat(ToString(activation.without_bounds()), ", ", ClampText(activation.bounds()));
  }
  const ElementwiseStep step = StepOf(*activation.function);
  std::vector<std::string> parameters;
  for (const auto& [name, value] : step.attributes) {
    const bool is_text = value.kind() == AttributeKind::kString;
    parameters.push_back(
        absl::StrCat(name, "=", is_text ? value.as_string() : ShortestText(static_cast<float>(value.as_float()))));
  }
  return parameters.empty() ? step.op : absl::StrCat(step.op, "(", absl::StrJoin(parameters, ", "), ")");
}

absl::StatusOr<Activation> ParseActivation(absl::string_view text) {
  Activation activation;
  if (text == "none") return activation;
  if (text == "relu") return Activation::Relu();
  if (ParseClamp(text, &activation) || ParseBoundedFunction(text, &activation)) return activation;
  return absl::InvalidArgumentError(
      absl::StrCat("activation=\"", text,
                   "\": wanted one of \"none\", \"relu\", \"clamp(min=A, max=B)\" with A <= B, or a function and its "
                   "attributes, as \"leaky_relu(negative_slope=0.1)\", and then perhaps \", clamp(min=A, max=B)\", of ",
                   FunctionNames()));
}

Activation FunctionOf(absl::string_view op, const AttributeMap& attributes) {
  Activation activation;
  const absl::StatusOr<std::vector<ElementwiseInstruction>> program =
      CompileElementwise({{std::string(op), {0, 0}, attributes}});
  if (!program.ok()) return activation;
  const ElementwiseInstruction& function = program->front();
  const bool is_activation = std::any_of(std::begin(elementwise::kActivations), std::end(elementwise::kActivations),
                                         [&](const auto& row) { return row.op == function.op; });
  if (is_activation && std::isfinite(function.p) && std::isfinite(function.q)) activation.function = function;
  return activation;
}

}  // namespace fuselage
