// The shapes and the mask of scaled_dot_product_attention (ir/ops/attention), as its kernels see them.
#ifndef FUSELAGE_KERNELS_CORE_ATTENTION_SHAPE_H_
#define FUSELAGE_KERNELS_CORE_ATTENTION_SHAPE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/core/broadcast.h"
#include "kernels/core/kernel.h"

namespace fuselage::kernels {

// A group is a head of keys; its rows are the queries of all heads that it serves, one head after the other.
struct AttentionShape {
  int64_t groups = 0, rows = 0, queries = 0, keys = 0, depth = 0, width = 0;
  bool is_causal = false;
  TensorType scores;  // [..., H, S, T], f32

  // How many keys the query of a row looks at: the first ones.
  int64_t KeysOf(int64_t row) const { return is_causal ? std::min(keys, row % queries + 1) : keys; }
  // The most that one of the queries of [row, row + count) looks at.
  int64_t MostKeys(int64_t row, int64_t count) const {
    int64_t most = 0;
    for (int64_t i = row; i < row + count; ++i) most = std::max(most, KeysOf(i));
    return most;
  }
};

// Of inputs query, key, value and the attribute is_causal. Unimplemented: no scores, or more than kMostBroadcastAxes
// axes of them.
absl::StatusOr<AttentionShape> AttentionShapeOf(const KernelDesc& desc);

// What is added to scores: input 3 of f32, or of bools, where false is -inf; or nothing.
class AttentionMask {
 public:
  AttentionMask(const KernelDesc& desc, const AttentionShape& shape);

  // Scratch memory that a row needs.
  int64_t floats() const { return broadcast_ ? keys_ : 0; }
  // What is added to the scores of each of `count` rows of all groups' side by side: in `mask` itself, or in `scratch`,
  // of so many rows; null: nothing.
  void Rows(const void* mask, int64_t row, int64_t count, float* scratch, const float** rows) const;

 private:
  int64_t keys_;
  bool is_bool_ = false;
  std::optional<Broadcast> broadcast_;
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_ATTENTION_SHAPE_H_
