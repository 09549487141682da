// A graph has the shapes of one batch. Which of them say something about others?
#ifndef FUSELAGE_IR_MATCH_BATCH_H_
#define FUSELAGE_IR_MATCH_BATCH_H_

#include "ir/base/hash_map.h"
#include "ir/graph.h"

namespace fuselage::match {

// The nodes that are computed from an input, or by an expand that follows the batch. What is made of constants alone
// has the same shape in every batch, also where at batch 1 it looks like a value of the network's: a position embedding
// [1, T, C]. Knows the nodes that it has visited; a walk over the graph, in its order, visits each, also those it adds.
class BatchFollowers {
 public:
  void Visit(const ir::Node& node);
  bool Contain(const ir::Node& node) const { return nodes_.contains(&node); }

 private:
  HashSet<const ir::Node*> nodes_;
};

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_BATCH_H_
