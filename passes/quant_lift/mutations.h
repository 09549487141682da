// In-place calls, seen while walking a graph in order.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_MUTATIONS_H_
#define FUSELAGE_PASSES_QUANT_LIFT_MUTATIONS_H_

#include "absl/container/flat_hash_map.h"
#include "ir/graph.h"

namespace fuselage::quant_lift {

class Mutations {
 public:
  // The next node of the walk.
  void Visit(const ir::Node& node);
  // The in-place call that, so far, last changed the memory behind `value`, directly or through a view or a slice of
  // it; null where there is none. A value reads the same at two places with the same answer.
  const ir::Node* LastChangeOrNull(const ir::Node& value) const;

 private:
  const ir::Node* MemoryOf(const ir::Node& value) const;

  absl::flat_hash_map<const ir::Node*, const ir::Node*> memory_;       // Of a value that shares another's: that value.
  absl::flat_hash_map<const ir::Node*, const ir::Node*> last_change_;  // By the value that owns the memory.
};

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_MUTATIONS_H_
