// scaled_dot_product_attention of f32 (ir/ops/attention), with the same bits on every instruction set and number of
// threads, in memory that grows with the number of keys, not with its product with the queries:
//
//   s[j] = fma(q[d], k[j][d], s[j]) for d = 0, 1, ..., D - 1, from 0;   s[j] = s[j] * scale
//   s[j] = softcap * tanh(s[j] / softcap), where there is a softcap
//   s[j] = s[j] + mask[j], or -inf where a bool of the mask is false
//   w[j] = e^(s[j] - max s), 0 below e^-87                              (ir/base/elementwise_math.h)
//   y[e] = sum_j fma(w[j], v[j][e]) / sum w                             0 where all of s are -inf
//
// Values are summed by ascending keys. The sum of the weights is kLanes sums, of every kLanes-th weight, of which
// neighbours kLanes/2, kLanes/4, ..., 1 apart are added. kBlockRows queries of one head of keys go together; a causal
// block stops at the last key that one of them looks at, and those before it that a query does not look at weigh 0.
//
// A block's scores and weights stay in the cache: they are the left factor of the second product as the first one wrote
// them. Keys and values are packed once for all queries of their head (kernels/reproducible/panels.h).
//
// Declines (Unimplemented): operands that are not f32, or without elements; more than kMostBroadcastAxes axes.
#ifndef FUSELAGE_KERNELS_ATTENTION_ATTENTION_H_
#define FUSELAGE_KERNELS_ATTENTION_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/reproducible/primitives.h"

namespace fuselage::attention {

constexpr int64_t kBlockRows = 84;  // Whole tiles of 4, 6 and 14 rows.
constexpr int kLanes = 16;

// The scores of one query, in blocks of reproducible::kDepth keys, reproducible::kRowStride or more floats apart.
struct ScoreRow {
  float* scores;
  int64_t stride;     // Of blocks.
  int64_t keys;       // That it looks at: the first ones.
  const float* mask;  // To add; null: none.
  float scale, softcap;
};
// Makes weights of products; their sum. A block has room for a multiple of kLanes weights, the last of which become 0.
using WeightsFunction = float(const ScoreRow& row);
// y[e] = sums[e] / weight; 0 where the weight is.
using DivideFunction = void(const float* sums, float weight, int64_t n, float* y);

struct Variant {
  const char* name;
  kernels::Isa isa;
  int64_t rows, columns;  // A tile's.
  reproducible::TileFunction* tile;
  WeightsFunction* weights;
  DivideFunction* divide;
};
absl::Span<const Variant> Variants();

// By the best of `table`, which must outlive the kernel.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateWith(absl::Span<const Variant> table,
                                                            const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(WeightsFunction, Weights)
FUSELAGE_VARIANTS(DivideFunction, Divide)

}  // namespace fuselage::attention

#endif  // FUSELAGE_KERNELS_ATTENTION_ATTENTION_H_
