// The rewrites of normalize that replace one op by another. Each only looks: the pass applies what it returns.
#ifndef FUSELAGE_PASSES_NORMALIZE_RULES_H_
#define FUSELAGE_PASSES_NORMALIZE_RULES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"
#include "passes/normalize/constants.h"

namespace fuselage::normalize {

// A call to put in a node's place.
struct NewCall {
  std::string op;
  std::vector<ir::Node*> operands;                           // Without parameters, in the schema's order.
  std::vector<std::pair<std::string, Constant>> parameters;  // Operand name -> value.
  AttributeMap attributes;
};

// The op of a module's call, with its attributes and constant parameters.
NewCall CallWithoutOperands(const ir::Node& node);

// A call that gives its operand's elements in their order, in another shape.
bool IsView(const ir::Node& node);

// What `node` becomes: a chain, in which each further call reads the one before it as operand 0, in front of its own.
// Empty: no rule matches. A near miss leaves a remark.
absl::StatusOr<std::vector<NewCall>> Simplified(const ir::Node& node, passes::Remarks& remarks);

// mean over all dimensions behind the channels => global_avg_pool, and a flatten where they do not stay as 1. As above.
absl::StatusOr<std::vector<NewCall>> MeanToPool(const ir::Node& node);

// x, where `node` is x: identity, a cast to its own type, axes in their own order, dropout in evaluation, a view of a
// view that gives x back, a slice of a cat that does, a sum with zeros (but for the sign of 0), a product with ones,
// what a constant condition picks. Else null.
ir::Node* SameOrNull(const ir::Node& node);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_RULES_H_
