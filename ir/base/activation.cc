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

constexpr absl::string_view kClamp = "clamp(", kBetween = ", ";

// Takes "min=0.0" from the front of `text`.
bool ConsumeBound(absl::string_view name, absl::string_view* text, float* bound) {
  if (!absl::ConsumePrefix(text, name) || !absl::ConsumePrefix(text, "=")) return false;
  const size_t end = text->find_first_of(",)");
  if (end == absl::string_view::npos || !absl::SimpleAtof(text->substr(0, end), bound)) return false;
  text->remove_prefix(end);
  return !std::isnan(*bound);
}

bool ParseClamp(absl::string_view text, Activation* clamp) {
  return absl::ConsumePrefix(&text, kClamp) && ConsumeBound("min", &text, &clamp->min) &&
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
  both.min = std::min(std::max(min, clamp.min), clamp.max);
  both.max = std::min(std::max(max, clamp.min), clamp.max);
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
  std::string text;
  if (activation.function) {
    const ElementwiseStep step = StepOf(*activation.function);
    std::vector<std::string> parameters;
    for (const auto& [name, value] : step.attributes) {
      const bool is_text = value.kind() == AttributeKind::kString;
      parameters.push_back(
          absl::StrCat(name, "=", is_text ? value.as_string() : ShortestText(static_cast<float>(value.as_float()))));
    }
    text = parameters.empty() ? step.op : absl::StrCat(step.op, "(", absl::StrJoin(parameters, ", "), ")");
    if (activation.is_function()) return text;
    absl::StrAppend(&text, kBetween);
  }
  return absl::StrCat(text, kClamp, "min=", ShortestText(activation.min), ", max=", ShortestText(activation.max), ")");
}

absl::StatusOr<Activation> ParseActivation(absl::string_view text) {
  Activation activation;
  if (text == "none") return activation;
  if (text == "relu") return Activation::Relu();
  const size_t clamp = text.find(kClamp);
  const bool bounded = clamp != absl::string_view::npos;
  absl::string_view function = text.substr(0, clamp);
  const bool separate = !bounded || absl::ConsumeSuffix(&function, kBetween);
  if ((clamp == 0 || (separate && ParseFunction(function, &activation))) &&
      (!bounded || ParseClamp(text.substr(clamp), &activation))) {
    return activation;
  }
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
