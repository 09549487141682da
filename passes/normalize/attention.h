// What exporters put around attention, which normalize's pattern for it (patterns.cc) takes as it is.
#ifndef FUSELAGE_PASSES_NORMALIZE_ATTENTION_H_
#define FUSELAGE_PASSES_NORMALIZE_ATTENTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "passes/normalize/rules.h"

namespace fuselage::normalize {

constexpr double kNever = -1e8;  // What is at most this, added to a score, leaves nothing of its weight.

// scaled_dot_product_attention
//   with keys and values whose heads are repeated by unsqueeze, expand and reshape  =>  with those in front
//   with a constant mask that lets every query look at every key                    =>  without
//   with one that lets query i look at keys 0 to i                                  =>  with is_causal
// What depends on constants alone is constant. As Simplified.
absl::StatusOr<std::vector<NewCall>> SimplifiedAttention(const ir::Node& node);

// reshape(add(reshape(x), m)), of x's shape, where the add sees x's first axis as [1, x's]  =>  add(x, m) without m's
// first axis: the masks of shifted windows. As Simplified.
std::vector<NewCall> AddInPlaceOfViews(const ir::Node& node);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_ATTENTION_H_
