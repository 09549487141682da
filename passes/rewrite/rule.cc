#include "passes/rewrite/rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/scanner.h"

namespace fuselage::rewrite {
namespace {

constexpr int kMostFactors = 4;  // A match tries them in every order.

class PatternParser {
 public:
  PatternParser(absl::string_view text, absl::string_view file, const ir::OpRegistry& ops)
      : in_(text, file), ops_(ops) {}

  absl::StatusOr<Pattern> Parse() {
    RETURN_IF_ERROR(in_.Expect("graph"));
    RETURN_IF_ERROR(in_.Expect("@"));
    RETURN_IF_ERROR(in_.Name().status());
    RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("output")) RETURN_IF_ERROR(ParseNode());
    std::vector<int> results;
    RETURN_IF_ERROR(in_.List("(", ")", [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const int result, Operand());
      results.push_back(result);
      return absl::OkStatus();
    }));
    if (results.size() != 1) return in_.Error(absl::StrCat(results.size(), " outputs, wanted one"));
    RETURN_IF_ERROR(in_.Expect("}"));
    if (!in_.AtEnd()) return in_.Error("wanted the end of the text");
    pattern_.result = results[0];
    return std::move(pattern_);
  }

 private:
  absl::StatusOr<int> Operand() {
    const size_t begin = in_.position();
    RETURN_IF_ERROR(in_.Expect("%"));
    ASSIGN_OR_RETURN(const std::string name, in_.Name());
    const auto it = index_.find(name);
    if (it == index_.end()) return in_.ErrorAt(begin, absl::StrCat("%", name, " is not defined before its use"));
    return it->second;
  }

  absl::Status ParseNode() {
    Pattern::Node node;
    RETURN_IF_ERROR(in_.Expect("%"));
    ASSIGN_OR_RETURN(node.name, in_.Name());
    if (!index_.emplace(node.name, static_cast<int>(pattern_.nodes.size())).second) {
      return in_.Error(absl::StrCat("a second node %", node.name));
    }
    RETURN_IF_ERROR(in_.Expect("="));
    if (in_.Accept("placeholder")) {
      node.kind = Pattern::Kind::kPlaceholder;
    } else if (in_.Accept("get_attr")) {
      node.kind = Pattern::Kind::kConstant;
      if (AtNumber()) RETURN_IF_ERROR(ParseNumber(node));
    } else {
      node.maybe = in_.Accept("maybe");
      if (in_.Accept("product")) {
        node.kind = Pattern::Kind::kProduct;
        RETURN_IF_ERROR(ParseProduct(node));
        pattern_.nodes.push_back(std::move(node));
        return absl::OkStatus();
      }
      if (in_.Accept("call_module")) {
        node.kind = Pattern::Kind::kModule;
      } else if (in_.Accept("call_function")) {
        node.kind = Pattern::Kind::kFunction;
      } else {
        absl::Status status = in_.Expect("call");
        if (!status.ok()) {
          return in_.Error("wanted placeholder, get_attr, call_function, call_module, call, product, or output");
        }
        node.kind = Pattern::Kind::kAnyCall;
      }
      RETURN_IF_ERROR(ParseCall(node));
    }
    pattern_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  bool AtNumber() {
    const char next = in_.Peek();
    return next == '$' || next == '-' || next == '.' || (next >= '0' && next <= '9');
  }

  // 0.5, $number, or $number in [0, 1]
  absl::Status ParseNumber(Pattern::Node& node) {
    if (node.number) return in_.Error("a second number");
    node.number = Pattern::Value();
    if (!in_.Accept("$")) {
      ASSIGN_OR_RETURN(const double number, in_.Float());
      node.number->literal = Attribute(number);
      return absl::OkStatus();
    }
    return ParseCapture(*node.number);
  }

  absl::Status ParseCapture(Pattern::Value& value) {
    ASSIGN_OR_RETURN(value.capture, in_.Name());
    value.optional = in_.Accept("?");
    if (!in_.Accept("in")) return absl::OkStatus();
    RETURN_IF_ERROR(in_.Expect("["));
    ASSIGN_OR_RETURN(value.min, in_.Float());
    RETURN_IF_ERROR(in_.Expect(","));
    ASSIGN_OR_RETURN(value.max, in_.Float());
    return in_.Expect("]");
  }

  // (%a, %b^-0.5, 2.0)
  absl::Status ParseProduct(Pattern::Node& node) {
    RETURN_IF_ERROR(in_.List("(", ")", [&]() -> absl::Status {
      if (in_.Peek() != '%') return ParseNumber(node);
      ASSIGN_OR_RETURN(const int operand, Operand());
      if (absl::c_linear_search(node.operands, operand)) {
        return in_.Error(absl::StrCat("a second factor %", pattern_.nodes[operand].name, ", wanted its power"));
      }
      node.operands.push_back(operand);
      node.exponents.push_back(1);
      if (!in_.Accept("^")) return absl::OkStatus();
      ASSIGN_OR_RETURN(node.exponents.back(), in_.Float());
      return absl::OkStatus();
    }));
    if (node.operands.empty() || node.operands.size() > kMostFactors) {
      return in_.Error(absl::StrCat(node.operands.size(), " factors, wanted 1 to ", kMostFactors));
    }
    if (!node.number) {
      node.number = Pattern::Value();
      node.number->literal = Attribute(1.0);
    }
    return absl::OkStatus();
  }

  // trailing(%x, $dims), last(%x), only($dims), product($a, $b)
  absl::Status ParseFunction(Pattern::Value& value) {
    if (value.function == "product") {
      return in_.List("(", ")", [&]() -> absl::Status {
        RETURN_IF_ERROR(in_.Expect("$"));
        ASSIGN_OR_RETURN(value.factors.emplace_back(), in_.Name());
        return absl::OkStatus();
      });
    }
    RETURN_IF_ERROR(in_.Expect("("));
    if (value.function != "only") {
      ASSIGN_OR_RETURN(value.of, Operand());
      RETURN_IF_ERROR(in_.Expect(value.function == "last" ? ")" : ","));
      if (value.function == "last") return absl::OkStatus();
    }
    RETURN_IF_ERROR(in_.Expect("$"));
    ASSIGN_OR_RETURN(value.capture, in_.Name());
    return in_.Expect(")");
  }

  absl::Status ParseCall(Pattern::Node& node) {
    const size_t begin = in_.position();
    ASSIGN_OR_RETURN(const std::string op, in_.Name());
    node.op = ops_.FindOrNull(op);
    if (node.op == nullptr) return in_.ErrorAt(begin, absl::StrCat("unknown operator '", op, "'"));
    return in_.List("(", ")", [&]() -> absl::Status {
      if (in_.Peek() == '%') {
        ASSIGN_OR_RETURN(const int operand, Operand());
        node.operands.push_back(operand);
        return absl::OkStatus();
      }
      if (in_.Accept("none")) {
        node.operands.push_back(Pattern::kAbsent);
        return absl::OkStatus();
      }
      ASSIGN_OR_RETURN(const std::string name, in_.Name());
      const ir::AttributeSpec* spec = node.op->FindAttributeOrNull(name);
      const int operand = node.op->OperandIndex(name);
      const bool is_parameter =
          node.kind != Pattern::Kind::kFunction && operand >= 0 && node.op->operands[operand].parameter;
      if (spec == nullptr && !is_parameter) {
        return in_.Error(absl::StrCat(node.op->name, " has no attribute or parameter '", name, "'"));
      }
      RETURN_IF_ERROR(in_.Expect("="));
      Pattern::Value value;
      if (in_.Accept("$")) {
        RETURN_IF_ERROR(ParseCapture(value));
      } else if (is_parameter) {
        return in_.Error(absl::StrCat("parameter '", name, "' takes a capture: $name"));
      } else {
        for (const char* function : {"trailing", "last", "only", "product"}) {
          if (!in_.Accept(function)) continue;
          value.function = function;
          RETURN_IF_ERROR(ParseFunction(value));
          break;
        }
        if (value.function.empty()) {
          ASSIGN_OR_RETURN(value.literal, ir::ParseAttribute(in_, spec));
        }
      }
      if (!node.values.emplace(name, std::move(value)).second) return in_.Error(absl::StrCat("a second '", name, "'"));
      return absl::OkStatus();
    });
  }

  ir::Scanner in_;
  const ir::OpRegistry& ops_;
  Pattern pattern_;
  HashMap<std::string, int> index_;
};

// Every call, and in a pattern every node, is above the result.
absl::Status CheckReachable(const Pattern& pattern, bool calls_only) {
  std::vector<bool> reached(pattern.nodes.size(), false);
  reached[pattern.result] = true;
  for (int i = pattern.result; i >= 0; --i) {
    if (!reached[i]) continue;
    for (const int operand : pattern.nodes[i].operands) {
      if (operand != Pattern::kAbsent) reached[operand] = true;
    }
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i] && (!calls_only || pattern.nodes[i].is_call())) {
      return absl::InvalidArgumentError(absl::StrCat("%", pattern.nodes[i].name, " is not above the output"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPattern(const Pattern& pattern) {
  const Pattern::Node& result = pattern.nodes[pattern.result];
  if (!result.is_call() || result.maybe) {
    return absl::InvalidArgumentError(absl::StrCat("the output %", result.name, ", wanted a call"));
  }
  for (const Pattern::Node& node : pattern.nodes) {
    if (node.maybe && (node.operands.empty() || node.operands[0] == Pattern::kAbsent)) {
      return absl::InvalidArgumentError(absl::StrCat("%", node.name, " has no operand that could stand in its place"));
    }
    for (const auto& [name, value] : node.values) {
      if (value.function.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(name, "=", value.function, "(...), which only a replacement has"));
    }
  }
  return CheckReachable(pattern, /*calls_only=*/false);
}

// What the replacement takes from the pattern is there.
absl::Status CheckReplacement(const Pattern& pattern, const Pattern& replacement) {
  RETURN_IF_ERROR(CheckReachable(replacement, /*calls_only=*/true));
  HashSet<std::string> inputs, captures;
  for (const Pattern::Node& node : pattern.nodes) {
    if (!node.is_call()) inputs.insert(node.name);
    for (const auto& [name, value] : node.values) captures.insert(value.capture);
    if (node.number) captures.insert(node.number->capture);
  }
  for (const Pattern::Node& node : replacement.nodes) {
    if (node.is_new_constant()) {
      if (!node.number->literal) {
        return absl::InvalidArgumentError(absl::StrCat("%", node.name, ": a new constant is a number"));
      }
      if (inputs.contains(node.name)) {
        return absl::InvalidArgumentError(absl::StrCat("%", node.name, " has a number, and is the pattern's too"));
      }
    } else if (!node.is_call() && !inputs.contains(node.name)) {
      return absl::InvalidArgumentError(absl::StrCat("%", node.name, " is no placeholder or get_attr of the pattern"));
    }
    if (node.kind == Pattern::Kind::kAnyCall || node.kind == Pattern::Kind::kProduct) {
      return absl::InvalidArgumentError(absl::StrCat("%", node.name, ": wanted call_function or call_module"));
    }
    for (const auto& [name, value] : node.values) {
      if (value.literal) continue;
      std::vector<std::string> read = value.factors;
      if (read.empty()) read.push_back(value.capture);
      for (const std::string& capture : read) {
        if (captures.contains(capture)) continue;
        return absl::InvalidArgumentError(absl::StrCat("$", capture, " is no capture of the pattern"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsClose(double a, double b) {
  if (a == b || !std::isfinite(a) || !std::isfinite(b)) return a == b;
  return std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b));
}

absl::StatusOr<Rule> ParseRule(const RewriteOptions::Rule& rule, const ir::OpRegistry& ops) {
  const std::string label = absl::StrCat("rule \"", rule.name(), "\"");
  const std::string pattern = absl::StrCat(label, " pattern"), replacement = absl::StrCat(label, " replacement");
  Rule parsed;
  parsed.name = rule.name();
  ASSIGN_OR_RETURN(parsed.pattern, PatternParser(rule.pattern(), pattern, ops).Parse());
  ASSIGN_OR_RETURN(parsed.replacement, PatternParser(rule.replacement(), replacement, ops).Parse());
  RETURN_IF_ERROR(Annotate(CheckPattern(parsed.pattern), pattern));
  RETURN_IF_ERROR(Annotate(CheckReplacement(parsed.pattern, parsed.replacement), replacement));
  return parsed;
}

}  // namespace fuselage::rewrite
