// PyTorch exports a group norm as an instance norm of its groups, each a row of elements, between two reshapes:
//   reshape(instance_norm(reshape(x)))    =>  group_norm(x)         without weight and bias, which come behind it
#ifndef FUSELAGE_PASSES_NORMALIZE_GROUPS_H_
#define FUSELAGE_PASSES_NORMALIZE_GROUPS_H_

#include <vector>

#include "passes/normalize/rules.h"

namespace fuselage::normalize {

// What `node` becomes; empty where it stays.
std::vector<NewCall> OfGroups(const ir::Node& node);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_GROUPS_H_
