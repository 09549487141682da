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

int64_t AttentionMask::floats() const { return !broadcast_ ? 0 : is_bool_ ? 2 * keys_ : keys_; }

const float* AttentionMask::Row(const void* mask, int64_t row, int64_t keys, float* scratch) const {
  if (!broadcast_) return nullptr;
  if (!is_bool_) {
    broadcast_->Gather(static_cast<const float*>(mask), row * keys_, keys, scratch);
    return scratch;
  }
  bool* allowed = reinterpret_cast<bool*>(scratch + keys_);
  broadcast_->Gather(static_cast<const bool*>(mask), row * keys_, keys, allowed);
  for (int64_t j = 0; j < keys; ++j) scratch[j] = allowed[j] ? 0.0f : -std::numeric_limits<float>::infinity();
  return scratch;
}

}  // namespace fuselage::kernels
