// A rewriting rule: two graphs in the IR's text, in which types are left out.
//
//   graph @pattern {
//     %x = placeholder                        // any value; the same name, the same value
//     %w = get_attr                           // a constant
//     %m = call_function matmul(%x, %w)       // a function or method call, under any spelling
//     %y = call_module relu(%m)               // a call of a module of this op
//     %z = call clamp(%y, max=$max, min=0.0)  // a call of any kind; $max takes whatever value stands there
//     output(%z)
//   }
//
// An attribute that a pattern leaves out must have the schema's default. Parameters of a module are named like
// attributes: `weight=$w` must be there, `bias=$b?` may, others must not. A replacement reads the pattern's
// placeholders, get_attrs and captures; one that took nothing leaves its attribute or parameter out.
#ifndef FUSELAGE_PASSES_REWRITE_RULE_H_
#define FUSELAGE_PASSES_REWRITE_RULE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/graph.h"
#include "passes/rewrite/rewrite.pb.h"

namespace fuselage::rewrite {

struct Pattern {
  enum class Kind { kPlaceholder, kConstant, kFunction, kModule, kAnyCall };

  // The value of an attribute or parameter: a literal, or a capture.
  struct Value {
    std::optional<Attribute> literal;
    std::string capture;  // Without the "$"; empty for a literal.
    bool optional = false;
  };

  struct Node {
    std::string name;  // Without the "%".
    Kind kind = Kind::kPlaceholder;
    const ir::OpSchema* op = nullptr;  // Of calls.
    std::vector<int> operands;         // Indices of nodes; kAbsent.
    std::map<std::string, Value> values;
  };
  static constexpr int kAbsent = -1;

  std::vector<Node> nodes;  // In topological order.
  int result = 0;           // The one output.
};

struct Rule {
  std::string name;
  Pattern pattern, replacement;
};

// InvalidArgument names rule, text, line and column, what was found and what was wanted.
absl::StatusOr<Rule> ParseRule(const RewriteOptions::Rule& rule, const ir::OpRegistry& ops);

}  // namespace fuselage::rewrite

#endif  // FUSELAGE_PASSES_REWRITE_RULE_H_
