// Pattern combinators: a small tree that describes a node and what stands above it.
//
//   Node *bn, *conv;
//   const Pattern pattern = Op("batch_norm").Capture(&bn).With(0, OneOf({"conv2d", "linear"}).OneUse().Capture(&conv));
//   for (Node* node : graph.Snapshot()) {
//     if (pattern.Match(node)) Fold(bn, conv);
//   }
//
// Build a pattern once, in front of the walk. Match compares first and writes the captures only on success, so that
// a failed match leaves them as they were. The cost is the size of the pattern, whatever that of the graph.
#ifndef FUSELAGE_IR_MATCH_MATCH_H_
#define FUSELAGE_IR_MATCH_MATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace fuselage::match {

// A value: each method returns the pattern with one more condition, all of which must hold.
class Pattern {
 public:
  Pattern() = default;  // Matches any node.

  // Operand `i` is present and matches. In a call_module, operands count without the module's parameters.
  Pattern With(int i, Pattern operand) const;
  // The operands 0 and 1 match `a` and `b` in one order or the other; the stated order is tried first.
  Pattern WithEitherOrder(Pattern a, Pattern b) const;
  Pattern OneUse() const;
  Pattern Where(std::function<bool(const ir::Node&)> condition) const;
  Pattern Attr(absl::string_view name, Attribute value) const;  // Equal, the schema's default included; calls only.
  Pattern Capture(ir::Node** node) const;                       // `node` must outlive the pattern.

  // `node` may be null, which nothing matches.
  bool Match(ir::Node* node) const;

 private:
  using Captures = std::vector<std::pair<ir::Node**, ir::Node*>>;
  using Condition = std::function<bool(ir::Node*, Captures*)>;

  Pattern And(Condition condition) const;
  bool Matches(ir::Node* node, Captures* captures) const;

  std::vector<Condition> conditions_;
};

Pattern Any();
Pattern Kind(ir::NodeKind kind);
// A call, of any kind, of the op by its canonical name.
Pattern Op(absl::string_view name);
Pattern OneOf(std::vector<std::string> names);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_MATCH_H_
