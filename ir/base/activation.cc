#include "ir/base/activation.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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

}  // namespace

std::string ToString(const Activation& activation) {
  if (activation.is_none()) return "none";
  if (activation.is_relu()) return "relu";
  return absl::StrCat("clamp(min=", ShortestText(activation.min), ", max=", ShortestText(activation.max), ")");
}

absl::StatusOr<Activation> ParseActivation(absl::string_view text) {
  Activation activation;
  if (text == "none") return activation;
  if (text == "relu") return Activation::Relu();
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "clamp(") && ConsumeBound("min", &rest, &activation.min) &&
      absl::ConsumePrefix(&rest, ", ") && ConsumeBound("max", &rest, &activation.max) && rest == ")" &&
      activation.min <= activation.max) {
    return activation;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("activation=\"", text, "\": wanted one of \"none\", \"relu\", \"clamp(min=A, max=B)\" with A <= B"));
}

}  // namespace fuselage
