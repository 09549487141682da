// A graph has the shapes of one batch. Which of them say something about others?
#ifndef FUSELAGE_IR_MATCH_BATCH_H_
#define FUSELAGE_IR_MATCH_BATCH_H_

#include "ir/graph.h"

namespace fuselage::match {

// Is `node` computed from an input, or by an expand that follows the batch? What is made of constants alone has the
// same shape in every batch, also where at batch 1 it looks like a value of the network's: a position embedding [1, T,
// C].
bool FollowsBatch(const ir::Node& node);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_BATCH_H_
