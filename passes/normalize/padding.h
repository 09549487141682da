// Pads in front of what can pad itself, as TensorFlow's exporters write SAME padding of strided convolutions.
#ifndef FUSELAGE_PASSES_NORMALIZE_PADDING_H_
#define FUSELAGE_PASSES_NORMALIZE_PADDING_H_

#include <optional>

#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::normalize {

// The attributes with which `node`, a convolution or a pool, does what the pad that it reads does for it. nullopt where
// there is no pad, or, with a remark, where it cannot: it fills otherwise, pads batch or channels, or cuts; a pool has
// ceil_mode, would have windows in the padding alone, or does not count padding of its own; the module has a second
// call site.
std::optional<AttributeMap> WithPadding(const ir::Node& node, passes::Remarks& remarks);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_PADDING_H_
