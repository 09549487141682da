// int8.attention (ir/ops/int8/attention): integer scores and mixtures by int8.linear's variants, or by tiles of
// operands as they lie, the softmax between them row by row, in memory that grows with the number of keys, not with its
// product with the queries:
//
//   s[j] = float(sum_d (q[d] - z_q) * (k[j][d] - z_k)) * ((s_q * s_k) * scale), then softcap and mask
//   p[j] = rne(255 * e^(s[j] - max s))                               u8
//   y[e] = clamp(rne(float(sum_j p[j] * (v[j][e] - z_v)) * ((s_v / s_y) / float(sum_j p[j]))) + z_y)
//
// Every sum is of integers, so the result does not depend on how rows and keys are blocked. A block's scores fit the
// second-level cache; its weights become rows of codes, the left operand of the second product. Keys and values are
// packed once for all queries of their head (kernels/int8/matmul/operands.h), whose time counts: for a few queries, as
// of one token, they are not.
//
// Declines: Unimplemented where there are no scores or no elements, or more than kMostBroadcastAxes axes;
// FailedPrecondition: D or a number of keys above 33,025, whose sums may overflow; multipliers that are no normal
// floats.
#ifndef FUSELAGE_KERNELS_INT8_ATTENTION_ATTENTION_H_
#define FUSELAGE_KERNELS_INT8_ATTENTION_ATTENTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::attention {

constexpr int64_t kLanes = 16;
constexpr float kNever = -__builtin_inff();

// A block of queries: the products with their keys, and the weights that become of them.
struct Softmax {
  int64_t rows;
  float* scores;  // [rows, score_stride], a multiple of kLanes. Overwritten.
  int64_t score_stride;
  // Not null: `scores` are sums still, int32, and a score is float(sum + [column's] + [row's]) * multiplier.
  const int32_t *column_addends, *row_addends;
  float multiplier;
  const int64_t* keys;        // [rows]: how many a query looks at, the first ones.
  const float* const* masks;  // [rows]: what is added to the scores of those; null: nothing.
  float softcap;              // 0: none.
  uint8_t* weights;           // [rows, weight_stride], zeros behind a query's own; and kLanes more, overwritten.
  int64_t weight_stride;
  int32_t* sums;  // [rows]: of the weights.
};
using WeightsFunction = void(const Softmax& softmax);

// The mixtures of values of a block of queries: y = sums * multipliers, to f32 or codes.
struct Mixtures {
  int64_t rows, width;
  const float* sums;  // [rows, stride]
  int64_t stride;
  const int32_t* row_addends;  // Not null: `sums` are int32, to which a row's is added.
  const float* multipliers;    // [rows]
  bool is_float;
  int32_t zero_point;  // Of the codes' unsigned form (kernels::UnsignedForm), as is `flip`.
  uint8_t flip;
  void* y;
};
using FinishFunction = void(const Mixtures& mixtures);

// A few queries of one head, whose products with keys and values are of these as they lie: [keys, depth] and
// [keys, width], of u8 codes or of i8.
constexpr int64_t kFewRows = 8;
struct FewScores {
  int64_t rows, keys, depth;
  const int16_t* queries;  // [rows, depth], less their zero point.
  const int32_t* addends;  // [rows]: the sum of each row times the keys' zero point, negative.
  const uint8_t* codes;
  bool is_signed;
  float multiplier;
  float* scores;
  int64_t stride;
};
using ScoresFunction = void(const FewScores& few);
struct FewMixtures {
  int64_t rows, keys, width;
  const uint8_t* weights;
  int64_t stride;
  const int32_t* addends;  // [rows]: as above, of the values and the weights.
  const uint8_t* codes;
  bool is_signed;
  float* sums;  // [rows, width]
};
using MixFunction = void(const FewMixtures& few);

// Rows of codes times a packed matrix by tiles, 16 by 16 sums each.
struct TileSums {
  // [rows, row_bytes], i8 codes or u8. Up to a whole tile's rows are read, and of each up to a whole step's 64 bytes:
  // codes behind its own meet zeros of b.
  const uint8_t* a;
  int64_t rows, row_bytes;
  bool is_signed;
  const int64_t* offsets;  // [steps], bytes: where the steps of a row are.
  int64_t steps;
  const int8_t* b;  // [panels], from one to the next panel_bytes: [steps] tiles
  int64_t panel_bytes;
  int64_t panels;
  int32_t* sums;  // [rows, stride], both up to whole tiles.
  int64_t stride;
};
using MultiplyFunction = void(const TileSums& product);

struct Variant {
  const char* name;
  kernels::Isa isa;
  WeightsFunction* weights;
  FinishFunction* finish;
  ScoresFunction* scores;  // With `mix`; null: packing pays for a few too.
  MixFunction* mix;
  MultiplyFunction* multiply;  // Both products, of operands as they lie; null: int8.linear's, to floats.
};
absl::Span<const Variant> Variants();

struct Multipliers {
  float scores, values;  // (s_q * s_k) * scale; s_v / s_y, or s_v for a float result.
};
// FailedPrecondition: one is no normal float.
absl::StatusOr<Multipliers> MultipliersOf(const kernels::KernelDesc& desc);

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// With these variants, whatever desc.isa says. For tests and benchmarks.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const kernels::KernelDesc& desc,
                                                               const linear::Variant& products, const Variant& rows);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(WeightsFunction, Weights)
FUSELAGE_VARIANTS(FinishFunction, Finish)
FUSELAGE_VARIANTS(ScoresFunction, Scores)
FUSELAGE_VARIANTS(MixFunction, Mix)
FUSELAGE_VARIANTS(MultiplyFunction, Multiply)

}  // namespace fuselage::int8::attention

#endif  // FUSELAGE_KERNELS_INT8_ATTENTION_ATTENTION_H_
