// Calls that return one of their operands, bit for bit.
#ifndef FUSELAGE_PASSES_CLEANUP_IDENTITIES_H_
#define FUSELAGE_PASSES_CLEANUP_IDENTITIES_H_

#include "ir/graph.h"

namespace fuselage::cleanup {

// The operand whose value, of the same type, `node` returns; null where it does something.
ir::Node* SameAsOrNull(const ir::Node& node);

}  // namespace fuselage::cleanup

#endif  // FUSELAGE_PASSES_CLEANUP_IDENTITIES_H_
