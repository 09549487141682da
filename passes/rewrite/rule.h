// A rewriting rule: two graphs in the IR's text, in which types are left out.
//
//   graph @pattern {
//     %x = placeholder                        // any value; the same name, the same value
//     %w = get_attr                           // a constant
//     %m = call_function matmul(%x, %w)       // a function or method call, under any spelling
//     %y = call_module relu(%m)               // a call of a module of this op
//     %z = call clamp(%y, max=$max, min=0.0)  // a call of any kind; $max takes whatever value stands there
//     %h = get_attr 0.5                       // a constant that is 0.5 in every element
//     %e = get_attr $e in [0, 1]              // one that is the same number in every element, between 0 and 1
//     %p = product(%z, %w^-0.5, 2)            // 2 * z / sqrt(w) from mul, div, pow, sqrt, reciprocal, neg (product.h)
//     %b = maybe call add(%p, %bias)          // such a call, or %p itself: its first operand that is a call
//     output(%b)
//   }
//
// An attribute that a pattern leaves out must have the schema's default. Parameters of a module are named like
// attributes: `weight=$w` must be there, `bias=$b?` may, others must not. Numbers are equal where they differ by no
// more than exporters round them (IsClose).
//
// What reads a `maybe` is the only one to read it. Where it is passed over, its other operands and its captures are
// absent.
//
// A replacement reads the pattern's placeholders, get_attrs and captures; one that took nothing leaves its operand,
// attribute or parameter out. Other constants of it are new. An attribute of it may follow from the match:
//
//   normalized_shape=trailing(%x, $dims)      // the sizes of %x along $dims, which must be its last axes
//   normalized_shape=last(%x)                 // the size of the last axis of %x
//   dim=only($dims)                           // the one element of $dims
//   scale=product($a, $b)                     // of those that took a number
//
//   %zero = get_attr 0                                // a new constant, of the result's element type
//   %m = maybe call_function add(%bias, %more)        // where one of them is absent, the other; absent without both
//   %f = maybe call_function where(%c, %zero, %low)   // new constants do not count: absent without %c and %low
#ifndef FUSELAGE_PASSES_REWRITE_RULE_H_
#define FUSELAGE_PASSES_REWRITE_RULE_H_

#include <limits>
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
  enum class Kind { kPlaceholder, kConstant, kFunction, kModule, kAnyCall, kProduct };

  // The value of an attribute or parameter, the elements of a constant, the coefficient of a product: a literal, a
  // capture, or in a replacement a function of a capture.
  struct Value {
    std::optional<Attribute> literal;
    std::string capture;  // Without the "$"; empty for a literal.
    bool optional = false;
    double min = -std::numeric_limits<double>::infinity();  // Bounds of a captured number.
    double max = std::numeric_limits<double>::infinity();
    std::string function;              // "trailing", "last", "only", "product"; empty: the capture as it is.
    int of = kAbsent;                  // Index of the node whose sizes `trailing` and `last` take.
    std::vector<std::string> factors;  // The captures that `product` takes.
  };
  static constexpr int kAbsent = -1;

  struct Node {
    std::string name;  // Without the "%".
    Kind kind = Kind::kPlaceholder;
    bool maybe = false;
    const ir::OpSchema* op = nullptr;  // A call's.
    std::vector<int> operands;         // Indices of nodes; kAbsent.
    std::vector<double> exponents;     // One for each operand of a product.
    std::map<std::string, Value> values;
    std::optional<Value> number;  // What a constant's elements are, or a product's coefficient.

    bool is_call() const { return kind != Kind::kPlaceholder && kind != Kind::kConstant; }
    // In a replacement.
    bool is_new_constant() const { return kind == Kind::kConstant && number.has_value(); }
  };

  std::vector<Node> nodes;  // In topological order.
  int result = 0;           // The one output.
};

struct Rule {
  std::string name;
  Pattern pattern, replacement;
};

// Equal but for a rounding to f32.
bool IsClose(double a, double b);

// InvalidArgument names rule, text, line and column, what was found and what was wanted.
absl::StatusOr<Rule> ParseRule(const RewriteOptions::Rule& rule, const ir::OpRegistry& ops);

}  // namespace fuselage::rewrite

#endif  // FUSELAGE_PASSES_REWRITE_RULE_H_
