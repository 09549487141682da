// Attention and what goes with it: what ai.onnx's and com.microsoft's operators share.
#ifndef FUSELAGE_FRONTEND_ONNX_ATTENTION_H_
#define FUSELAGE_FRONTEND_ONNX_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "frontend/onnx/call.h"

namespace fuselage::onnx {

// [N, S, heads * D] to [N, heads, S, D], and back.
absl::StatusOr<Value> SplitHeads(Call& call, absl::string_view name, const Value& x, int64_t heads);
absl::StatusOr<Value> MergeHeads(Call& call, const Value& x);

struct Attention {
  // [N, heads, S, D], [N, key heads, T, D], [N, key heads, T, E]. A key's head serves as many consecutive heads as
  // there are for each.
  Value query, key, value;
  double scale = 1;        // Multiplies the products of queries and keys.
  double softcap = 0;      // c tanh(scores / c); 0: none.
  bool is_causal = false;  // Query i may look at keys 0 to i.
  // Each broadcasts to [N, heads, S, T], or is absent.
  Value allowed;                   // bool: a query that may look at no key gives 0.
  Value bias;                      // Added to the scores.
  std::optional<DType> precision;  // The softmax's; without a value, the query's.
};

// [N, heads, S, E], by one op.
absl::StatusOr<Value> EmitAttention(Call& call, const Attention& attention);

// The same by the steps of the computation, each [N, heads, S, T] but the result.
struct AttentionSteps {
  Value products, capped, biased, weights, result;
};
absl::StatusOr<AttentionSteps> EmitAttentionSteps(Call& call, Attention attention);

// Where query i may look at key j, which is up to the past and its own place: a constant of bools [queries, keys]. With
// a window, no farther back than so many keys, its own among them.
absl::StatusOr<Value> CausalMask(Call& call, int64_t queries, int64_t keys, int64_t past, int64_t window = 0);
// Both; either may be absent.
absl::StatusOr<Value> BothAllowed(Call& call, absl::string_view name, const Value& a, const Value& b);
// Where key j of `keys` is one of the first lengths[n]: [N, 1, 1, keys] of the i32 or i64 [N].
absl::StatusOr<Value> PaddingMask(Call& call, const Value& lengths, int64_t keys);
// past followed by x on the axis of positions; x where there is no past.
absl::StatusOr<Value> WithPast(Call& call, absl::string_view name, const Value& past, const Value& x);

// Pairs of elements turned by the angle of their position. x [..., D], of which the first 2 * R elements are turned;
// cosines and sines [..., R] broadcast to it. A pair is two neighbours, or else two elements R apart.
struct Rotation {
  Value x, cosines, sines;
  bool interleaved = false;
};
absl::StatusOr<Value> EmitRotation(Call& call, const Rotation& rotation);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_ATTENTION_H_
