// Prints the operators as JSON, an object by name: aliases, operands, and attributes with their kinds and the text of
// their defaults (a required one has none). For tools that are not C++.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/attribute.h"
#include "ir/ops/register_all.h"

namespace fuselage {
namespace {

template <typename Items, typename ToJson>
std::string List(const Items& items, ToJson to_json) {
  return absl::StrCat(
      "[", absl::StrJoin(items, ", ", [&](std::string* out, const auto& item) { *out += to_json(item); }), "]");
}

std::string Alias(const std::string& alias) { return Quoted(alias); }

std::string Operand(const ir::OperandSpec& operand) {
  return absl::StrCat("{\"name\": ", Quoted(operand.name), ", \"parameter\": ", operand.parameter ? "true" : "false",
                      "}");
}

std::string AttributeJson(const ir::AttributeSpec& attribute) {
  const auto& value = attribute.default_value;
  return absl::StrCat("{\"name\": ", Quoted(attribute.name), ", \"kind\": ", Quoted(AttributeKindName(attribute.kind)),
                      value.has_value() ? absl::StrCat(", \"default\": ", Quoted(value->ToString())) : "", "}");
}

std::string Op(const ir::OpSchema* op) {
  return absl::StrCat("  ", Quoted(op->name), ": {\n    \"aliases\": ", List(op->aliases, Alias),
                      ",\n    \"operands\": ", List(op->operands, Operand),
                      ",\n    \"attributes\": ", List(op->attributes, AttributeJson), "\n  }");
}

}  // namespace
}  // namespace fuselage

int main() {
  fuselage::ir::OpRegistry ops;
  fuselage::ops::RegisterAll(ops);
  const std::string text = absl::StrJoin(
      ops.SortedByName(), ",\n", [](std::string* out, const fuselage::ir::OpSchema* op) { *out += fuselage::Op(op); });
  std::printf("{\n%s\n}\n", text.c_str());
}
