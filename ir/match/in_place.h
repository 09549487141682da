// In-place spellings of the imported program: "relu_", "add_", "operator.iadd".
#ifndef FUSELAGE_IR_MATCH_IN_PLACE_H_
#define FUSELAGE_IR_MATCH_IN_PLACE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "ir/graph.h"

namespace fuselage::match {

bool IsInPlace(absl::string_view target);

// May the result of `node`, or an element of it, lie in the memory of operand 0? Views do, parts (slice, split,
// getitem), dropout outside of training, and what is computed in place.
bool MayShareMemory(const ir::Node& node);

// Why the in-place call `node` is not its functional form: a node that `is_later` says runs after it reads the value
// that it overwrites, directly or through what shares its memory. Empty where there is none. Looks at the first
// thousand uses, and declines where there are more.
std::string WhyMutationIsSeen(const ir::Node& node, const std::function<bool(const ir::Node&)>& is_later);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_IN_PLACE_H_
