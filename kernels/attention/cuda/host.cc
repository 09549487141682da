#include "kernels/attention/cuda/host.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/attention_shape.h"
#include "kernels/core/strides.h"

namespace fuselage::attention::cuda {
namespace {

constexpr int kMask = 3;
constexpr int64_t kMostBlocks = 65535;  // In y, CUDA's limit.

}  // namespace

absl::StatusOr<RowShape> RowShapeOf(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const kernels::AttentionShape from, kernels::AttentionShapeOf(desc));
  const Shape& scores = from.scores.shape;
  const int axes = from.scores.rank() - 1;
  const int64_t rows = from.groups * from.rows;
  if (rows > std::numeric_limits<int32_t>::max() || from.width > kMostBlocks * kElementsOfABlock ||
      axes > kMostMaskAxes) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " on CUDA: ", rows, " rows of ", from.width, " elements and ",
                                                 axes, " axes, wanted fewer than 2^31, 2^23 and 9"));
  }
  RowShape shape;
  shape.rows = static_cast<int32_t>(rows);
  shape.group_rows = static_cast<int32_t>(from.rows);
  shape.queries = static_cast<int32_t>(from.queries);
  shape.keys = static_cast<int32_t>(from.keys);
  shape.depth = static_cast<int32_t>(from.depth);
  shape.width = static_cast<int32_t>(from.width);
  shape.is_causal = from.is_causal;
  shape.softcap = static_cast<float>(desc.GetFloat("softcap"));
  if (!desc.has_input(kMask)) return shape;
  // Aligned at the last axis, as numpy does.
  const TensorType& mask = desc.input(kMask);
  const std::vector<int64_t> strides = kernels::StridesOf(mask);
  const auto stride = [&](int axis) {
    const int own = axis - (from.scores.rank() - mask.rank());
    return own < 0 || mask.shape[own] == 1 ? 0 : strides[own];
  };
  shape.mask_axes = axes;
  for (int i = 0; i < axes; ++i)
    shape.mask_axis[i] = {static_cast<uint32_t>(scores[axes - 1 - i]), stride(axes - 1 - i)};
  shape.mask_key_stride = stride(axes);
  return shape;
}

RowShape WithMask(const kernels::Kernel& kernel, RowShape shape, absl::Span<const kernels::ConstBuffer> inputs) {
  if (inputs.size() <= kMask || inputs[kMask].data == nullptr) return shape;
  if (kernel.inputs()[kMask]->dtype == DType::kBool) {
    shape.bool_mask = static_cast<const uint8_t*>(inputs[kMask].data);
  } else {
    shape.mask = static_cast<const float*>(inputs[kMask].data);
  }
  return shape;
}

}  // namespace fuselage::attention::cuda
