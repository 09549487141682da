// Attention that patterns.cc has no row for: what is done to its scores comes in any order, and views may lie between,
// as batch and heads are one axis in OPT, Bloom and GPT-NeoX.
//
//   softmax(f(matmul(q, k))) times v  =>  scaled_dot_product_attention(q, transpose(k), v, mask, scale)
//
// f: products with and quotients by constants, sums and differences, where(allowed, s, low), where(masked, low, s), and
// bounds from below by `low`, which is at most -1e8: adding it to a score gives it itself, and its weight is 0. What is
// added to scores is the mask, times what they are multiplied by later.
#ifndef FUSELAGE_PASSES_NORMALIZE_SCORES_H_
#define FUSELAGE_PASSES_NORMALIZE_SCORES_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/normalize/new_nodes.h"

namespace fuselage::normalize {

// Adds what gives what `node` does, the attention last; false where it is no mixture of values, or of another form. A
// view of the mixture is meant where operands are views of values that have its axes.
absl::StatusOr<bool> AsAttention(const ir::Node& node, NewNodes& nodes);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_SCORES_H_
