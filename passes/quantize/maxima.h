// Which values nothing but maxima is taken of: of such a value these alone are calibrated, since the others are lost.
#ifndef FUSELAGE_PASSES_QUANTIZE_MAXIMA_H_
#define FUSELAGE_PASSES_QUANTIZE_MAXIMA_H_

#include <vector>

#include "ir/base/hash_map.h"
#include "ir/graph.h"

namespace fuselage::quantize {

class Maxima {
 public:
  explicit Maxima(const ir::Graph& graph);

  // Adds the value to `values`, or the maxima that are left of it.
  void AddWhatMatters(ir::Node* value, std::vector<ir::Node*>& values) const;

 private:
  HashSet<const ir::Node*> only_read_by_maxima_;  // Views between.
};

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_MAXIMA_H_
