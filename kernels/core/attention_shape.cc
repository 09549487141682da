#include "kernels/core/attention_shape.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace fuselage::kernels {
namespace {

enum Input { kQuery, kKey, kValue, kMask };

}  // namespace

absl::StatusOr<AttentionShape> AttentionShapeOf(const KernelDesc& desc) {
  const Shape &q = desc.input(kQuery).shape, &v = desc.input(kValue).shape;
  AttentionShape shape;
  shape.queries = q[q.size() - 2];
  shape.keys = v[v.size() - 2];
  shape.depth = q.back();
  shape.width = v.back();
  shape.is_causal = desc.GetBool("is_causal");
  shape.scores = {DType::kF32, q, std::nullopt, Layout::kRowMajor};
  shape.scores.shape.back() = shape.keys;
  if (shape.scores.rank() > kMostBroadcastAxes || shape.scores.num_elements() == 0) {
    return absl::UnimplementedError(absl::StrCat("scores of type ", ToString(shape.scores)));
  }
  shape.groups = 1;
  for (size_t axis = 0; axis + 2 < v.size(); ++axis) shape.groups *= v[axis];
  shape.rows = shape.scores.num_elements() / shape.keys / shape.groups;
  return shape;
}

AttentionMask::AttentionMask(const KernelDesc& desc, const AttentionShape& shape) : keys_(shape.keys) {
  if (!desc.has_input(kMask)) return;
  is_bool_ = desc.input(kMask).dtype == DType::kBool;
  broadcast_.emplace(desc.input(kMask), shape.scores);
}

void AttentionMask::Rows(const void* mask, int64_t row, int64_t count, float* scratch, const float** rows) const {
  if (!broadcast_) {
    std::fill_n(rows, count, nullptr);
    return;
  }
  const float* floats = static_cast<const float*>(mask);
  const bool* bools = static_cast<const bool*>(mask);
  broadcast_->ForEachRun(row * keys_, count * keys_, [&](int64_t offset, int64_t stride, int64_t n) {
    const bool in_place = !is_bool_ && stride == 1;
    for (; n > 0; n -= keys_, offset += keys_ * stride) {  // Whole rows.
      *rows++ = in_place ? floats + offset : scratch;
      for (int64_t j = 0; !in_place && j < keys_; ++j) {
        const int64_t at = offset + j * stride;
        *scratch++ = !is_bool_ ? floats[at] : bools[at] ? 0.0f : -std::numeric_limits<float>::infinity();
      }
    }
  });
}

}  // namespace fuselage::kernels
