// In-place calls, seen while walking a graph in order.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_MUTATIONS_H_
#define FUSELAGE_PASSES_QUANT_LIFT_MUTATIONS_H_

#include <cstdint>

#include "ir/base/hash_map.h"
#include "ir/graph.h"

namespace fuselage::quant_lift {

class Mutations {
 public:
  // The next node of the walk.
  void Visit(const ir::Node& node);
  // The in-place call that, so far, last changed the memory behind an operand of `reader`, directly or through a view
  // or a slice of it; null where there is none. Two places with the same answer read the same.
  const ir::Node* LastChangeOrNull(const ir::Node& reader) const;

 private:
  const ir::Node* MemoryOf(const ir::Node& value) const;

  struct Change {
    int64_t number = 0;
    const ir::Node* in_place = nullptr;
  };
  HashMap<const ir::Node*, const ir::Node*> memory_;  // From a value that shares another's to that value.
  HashMap<const ir::Node*, Change> last_change_;      // By the value that owns the memory.
  int64_t num_changes_ = 0;
};

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_MUTATIONS_H_
