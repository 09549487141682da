#include "passes/normalize/patterns.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace fuselage::normalize {
namespace {

// Graphs in the text of passes/rewrite/rule.h, without "graph @name { }". A row with "{this|that}" is two: one has this
// in all places, the other that.
struct Row {
  const char *name, *pattern, *replacement;
};

constexpr Row kRows[] = {
    // --- Bounds.
    {"clamp from below", R"(%x = placeholder %c = get_attr $min %y = call maximum(%x, %c) output(%y))",
     R"(%x = placeholder %y = call_function clamp(%x, min=$min) output(%y))"},
    {"clamp from above", R"(%x = placeholder %c = get_attr $max %y = call minimum(%x, %c) output(%y))",
     R"(%x = placeholder %y = call_function clamp(%x, max=$max) output(%y))"},
    {"clamp from below, then from above",
     R"(%x = placeholder %a = call clamp(%x, min=$min) %y = call clamp(%a, max=$max) output(%y))",
     R"(%x = placeholder %y = call_function clamp(%x, min=$min, max=$max) output(%y))"},
    {"relu, then clamp from above", R"(%x = placeholder %a = call relu(%x) %y = call clamp(%a, max=$max) output(%y))",
     R"(%x = placeholder %y = call_function clamp(%x, min=0.0, max=$max) output(%y))"},
    {"clamp from above, then relu",
     R"(%x = placeholder %a = call clamp(%x, max=$max in [0, inf]) %y = call relu(%a) output(%y))",
     R"(%x = placeholder %y = call_function clamp(%x, min=0.0, max=$max) output(%y))"},
    {"leaky_relu as a maximum",
     R"(%x = placeholder %a = product(%x, $slope in [0, 1]) %y = call maximum(%x, %a) output(%y))",
     R"(%x = placeholder %y = call_function leaky_relu(%x, negative_slope=$slope) output(%y))"},
    {"leaky_relu as a prelu of one slope",
     R"(%x = placeholder %a = get_attr $slope %y = call prelu(%x, %a) output(%y))",
     R"(%x = placeholder %y = call_function leaky_relu(%x, negative_slope=$slope) output(%y))"},

    // --- Sigmoids and what is gated by them.
    {"sigmoid",
     R"(%x = placeholder %n = product(%x, -1) %e = call exp(%n) %one = get_attr 1 %s = call add(%e, %one)
        %y = product(%s^-1) output(%y))",
     R"(%x = placeholder %y = call_function sigmoid(%x) output(%y))"},
    {"silu as a quotient",
     R"(%x = placeholder %n = product(%x, -1) %e = call exp(%n) %one = get_attr 1 %s = call add(%e, %one)
        %y = product(%x, %s^-1) output(%y))",
     R"(%x = placeholder %y = call_function silu(%x) output(%y))"},
    {"silu", R"(%x = placeholder %s = call sigmoid(%x) %y = product(%x, %s) output(%y))",
     R"(%x = placeholder %y = call_function silu(%x) output(%y))"},
    {"hardsigmoid of a relu6",
     R"(%x = placeholder %three = get_attr 3 %t = call add(%x, %three) %c = call clamp(%t, min=0.0, max=6.0)
        %y = product(%c, 0.16666666666666666) output(%y))",
     R"(%x = placeholder %y = call_function hardsigmoid(%x) output(%y))"},
    {"hardsigmoid of a clamp",
     R"(%x = placeholder %a = product(%x, $alpha) %b = get_attr $beta %t = call add(%a, %b)
        %y = call clamp(%t, min=0.0, max=1.0) output(%y))",
     R"(%x = placeholder %y = call_function hardsigmoid(%x, alpha=$alpha, beta=$beta) output(%y))"},
    {"hardswish", R"(%x = placeholder %s = call hardsigmoid(%x) %y = product(%x, %s) output(%y))",
     R"(%x = placeholder %y = call_function hardswish(%x) output(%y))"},
    {"hardswish of a relu6",
     R"(%x = placeholder %three = get_attr 3 %t = call add(%x, %three) %c = call clamp(%t, min=0.0, max=6.0)
        %y = product(%x, %c, 0.16666666666666666) output(%y))",
     R"(%x = placeholder %y = call_function hardswish(%x) output(%y))"},

    // --- gelu: x * 0.5 * (1 + erf(x / sqrt(2))), and 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) in its place. Half
    // of the latter is also sigmoid(2 * sqrt(2 / pi) * ...). x * sigmoid(1.702 * x) is a silu between two factors,
    // which vanish into the layers before and behind it (conv_bn): it has all that a silu has, and needs no kernel.
    {"gelu",
     R"(%x = placeholder %d = product(%x, 0.7071067811865476) %e = call erf(%d) %one = get_attr 1
        %t = call add(%e, %one) %y = product(%x, %t, 0.5) output(%y))",
     R"(%x = placeholder %y = call_function gelu(%x) output(%y))"},
    {"gelu by tanh",
     R"(%x = placeholder %c = product(%x^3, 0.044715) %s = call add(%x, %c) %i = product(%s, 0.7978845608028654)
        %h = call tanh(%i) %one = get_attr 1 %t = call add(%h, %one) %y = product(%x, %t, 0.5) output(%y))",
     R"(%x = placeholder %y = call_function gelu(%x, approximate="tanh") output(%y))"},
    {"gelu by tanh of x * (1 + x^2)",
     R"(%x = placeholder %c = product(%x^2, 0.044715) %one = get_attr 1 %s = call add(%c, %one)
        %i = product(%x, %s, 0.7978845608028654) %h = call tanh(%i) %one_more = get_attr 1
        %t = call add(%h, %one_more) %y = product(%x, %t, 0.5) output(%y))",
     R"(%x = placeholder %y = call_function gelu(%x, approximate="tanh") output(%y))"},
    {"gelu by sigmoid",
     R"(%x = placeholder %c = product(%x^3, 0.044715) %s = call add(%x, %c) %i = product(%s, 1.5957691216057308)
        %g = call sigmoid(%i) %y = product(%x, %g) output(%y))",
     R"(%x = placeholder %y = call_function gelu(%x, approximate="tanh") output(%y))"},
    {"quick gelu", R"(%x = placeholder %i = product(%x, 1.702) %g = call sigmoid(%i) %y = product(%x, %g) output(%y))",
     R"(%x = placeholder %in = get_attr 1.702 %out = get_attr 0.5875440658049353 %i = call_function mul(%x, %in)
        %s = call_function silu(%i) %y = call_function mul(%s, %out) output(%y))"},

    // --- What div and mul do by themselves: vectors brought to length 1 are divided by a length that is expanded to
    // theirs, squeeze and excitation expands its gates. (The former stays a quotient: rms_norm has no such maximum as
    // x / max(length, eps).)
    {"quotient by an expanded value",
     R"(%x = placeholder %z = placeholder %e = call expand(%z, shape=$shape) %y = call div(%x, %e) output(%y))",
     R"(%x = placeholder %z = placeholder %y = call_function div(%x, %z) output(%y))"},
    {"product with an expanded value",
     R"(%x = placeholder %z = placeholder %e = call expand(%z, shape=$shape) %y = call mul(%x, %e) output(%y))",
     R"(%x = placeholder %z = placeholder %y = call_function mul(%x, %z) output(%y))"},

    // --- Logarithms of sums.
    {"softplus",
     R"(%x = placeholder %e = call exp(%x) %one = get_attr 1 %s = call add(%e, %one) %y = call log(%s) output(%y))",
     R"(%x = placeholder %y = call_function softplus(%x) output(%y))"},
    {"mish", R"(%x = placeholder %s = call softplus(%x) %t = call tanh(%s) %y = product(%x, %t) output(%y))",
     R"(%x = placeholder %y = call_function mish(%x) output(%y))"},
    {"softmax",
     R"(%x = placeholder %m = call amax(%x, dims=$dims, keepdim=true) %d = call sub(%x, %m) %e = call exp(%d)
        %s = call sum(%e, dims=$dims, keepdim=true) %y = product(%e, %s^-1) output(%y))",
     R"(%x = placeholder %y = call_function softmax(%x, dim=only($dims)) output(%y))"},
    {"softmax without a maximum",
     R"(%x = placeholder %e = call exp(%x) %s = call sum(%e, dims=$dims, keepdim=true) %y = product(%e, %s^-1)
        output(%y))",
     R"(%x = placeholder %y = call_function softmax(%x, dim=only($dims)) output(%y))"},

    // --- Attention. Scores are scaled on either side of the product, and may be capped: cap * tanh(scores / cap). What
    // is added to them comes before what replaces some of them, or after it. What replaces them is so low that adding
    // it to a score gives it itself.
    {"scaled_dot_product_attention{ with a softcap|}",
     R"(%q = placeholder %k = placeholder %v = placeholder %bias = placeholder %mask = placeholder
        %allowed = placeholder %low = get_attr $low in [-inf, -1e8]
        %masked = placeholder %lower = get_attr $lower in [-inf, -1e8]
        %a = maybe product(%q, $query_scale) %b = maybe product(%k, $key_scale) %p = call matmul(%a, %b)
        {%r = maybe product(%p, $scale) %t = call tanh(%r) %s = product(%t, $cap in [1e-9, inf])|
         %s = maybe product(%p, $scale)}
        %d = maybe call add(%s, %bias) %e = maybe call where(%allowed, %d, %low)
        %f = maybe call where(%masked, %lower, %e) %g = maybe call add(%f, %mask) %w = call softmax(%g)
        %y = call matmul(%w, %v) output(%y))",
     R"(%q = placeholder %k = placeholder %v = placeholder %bias = placeholder %mask = placeholder
        %allowed = placeholder %low = get_attr %masked = placeholder %lower = get_attr %zero = get_attr 0
        %d = maybe call_function add(%bias, %mask) %e = maybe call_function where(%allowed, %zero, %low)
        %f = maybe call_function where(%masked, %lower, %zero) %g = maybe call_function add(%e, %f)
        %added = maybe call_function add(%d, %g) %keys = call_function transpose(%k, dim0=-2, dim1=-1)
        %y = call_function scaled_dot_product_attention(%q, %keys, %v, %added{, softcap=$cap|},
                                                        scale=product($scale, $query_scale, $key_scale{, $cap|}))
        output(%y))"},

    // --- Norms. Weight and bias join what these find (normalize.cc), but for TensorFlow's, which multiplies them into
    // scale and shift: x * f + (bias - mean * f) or x * f + (-mean * f + bias), f = weight / sqrt(variance + eps).
    {"layer_norm of a scale and a shift{| by a negative mean}",
     R"(%x = placeholder %weight = get_attr %bias = get_attr %m = call mean(%x, dims=$dims, keepdim=true)
        %d = call sub(%x, %m) %q = product(%d^2) %v = call mean(%q, dims=$dims, keepdim=true) %eps = get_attr $eps
        %s = call add(%v, %eps) %r = product(%s^-0.5) %f = call mul(%r, %weight) %a = call mul(%x, %f)
        {%b = call mul(%m, %f) %t = call sub(%bias, %b)|
         %n = call neg(%m) %b = call mul(%n, %f) %t = call add(%b, %bias)} %y = call add(%a, %t) output(%y))",
     R"(%x = placeholder %weight = get_attr %bias = get_attr
        %n = call_function layer_norm(%x, eps=$eps, normalized_shape=trailing(%x, $dims))
        %w = call_function mul(%n, %weight) %y = call_function add(%w, %bias) output(%y))"},
    {"layer_norm{| with two differences}",
     R"(%x = placeholder %m = call mean(%x, dims=$dims, keepdim=true) %d = call sub(%x, %m) %q = product(%d^2)
        %v = call mean(%q, dims=$dims, keepdim=true) %eps = get_attr $eps in [0, inf] %s = call add(%v, %eps)
        {|%e = call sub(%x, %m)} %y = product({%d|%e}, %s^-0.5) output(%y))",
     R"(%x = placeholder %y = call_function layer_norm(%x, eps=$eps, normalized_shape=trailing(%x, $dims)) output(%y))"},
    // Of an image's channels: the permutes stay where layers take channels behind pixels anyway.
    {"layer_norm of channels{| with two differences}",
     R"(%x = placeholder %m = call mean(%x, dims=[1], keepdim=true) %d = call sub(%x, %m) %q = product(%d^2)
        %v = call mean(%q, dims=[1], keepdim=true) %eps = get_attr $eps in [0, inf] %s = call add(%v, %eps)
        {|%n = call mean(%x, dims=[1], keepdim=true) %e = call sub(%x, %n)} %y = product({%d|%e}, %s^-0.5) output(%y))",
     R"(%x = placeholder %p = call_function permute(%x, dims=[0, 2, 3, 1])
        %n = call_function layer_norm(%p, eps=$eps, normalized_shape=last(%p))
        %y = call_function permute(%n, dims=[0, 3, 1, 2]) output(%y))"},
    {"rms_norm",
     R"(%x = placeholder %q = product(%x^2) %v = call mean(%q, dims=$dims, keepdim=true)
        %eps = get_attr $eps in [0, inf] %s = call add(%v, %eps) %y = product(%x, %s^-0.5) output(%y))",
     R"(%x = placeholder %y = call_function rms_norm(%x, eps=$eps, normalized_shape=trailing(%x, $dims)) output(%y))"},
};

// The text with one of each "{this|that}", the one that `side` says.
std::string Chosen(absl::string_view text, int side) {
  std::string chosen;
  for (const absl::string_view part : absl::StrSplit(text, '{')) {
    const std::vector<absl::string_view> choice_and_rest = absl::StrSplit(part, absl::MaxSplits('}', 1));
    if (choice_and_rest.size() == 1) {
      absl::StrAppend(&chosen, part);
      continue;
    }
    const std::vector<absl::string_view> choice = absl::StrSplit(choice_and_rest[0], '|');
    absl::StrAppend(&chosen, choice[side], choice_and_rest[1]);
  }
  return chosen;
}

}  // namespace

absl::StatusOr<std::vector<rewrite::Rule>> Patterns(const ir::OpRegistry& ops) {
  std::vector<rewrite::Rule> rules;
  for (const Row& row : kRows) {
    for (const int side : {0, 1}) {
      if (side == 1 && !absl::StrContains(row.pattern, '{')) continue;
      RewriteOptions::Rule text;
      text.set_name(Chosen(row.name, side));
      text.set_pattern(absl::StrCat("graph @pattern {", Chosen(row.pattern, side), "}"));
      text.set_replacement(absl::StrCat("graph @replacement {", Chosen(row.replacement, side), "}"));
      ASSIGN_OR_RETURN(rules.emplace_back(), rewrite::ParseRule(text, ops));
    }
  }
  return rules;
}

}  // namespace fuselage::normalize
