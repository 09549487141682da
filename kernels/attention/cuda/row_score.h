// The keys that a row of scores has, where its mask is, and softcap.
#ifndef FUSELAGE_KERNELS_ATTENTION_CUDA_ROW_SCORE_H_
#define FUSELAGE_KERNELS_ATTENTION_CUDA_ROW_SCORE_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/attention/cuda/row_shape.h"
#include "kernels/cuda/block.h"

namespace fuselage::attention::cuda {

FUSELAGE_DEVICE int KeysOf(const RowShape& s, int row) {
  if (!s.is_causal) return s.keys;
  const int keys = row % s.group_rows % s.queries + 1;
  return keys < s.keys ? keys : s.keys;
}

FUSELAGE_DEVICE int64_t MaskOffset(const RowShape& s, int row) {
  int64_t offset = 0;
  auto left = static_cast<uint32_t>(row);
  for (int i = 0; i < s.mask_axes; ++i) {
    offset += left % s.mask_axis[i].size * s.mask_axis[i].stride;
    left /= s.mask_axis[i].size;
  }
  return offset;
}

FUSELAGE_DEVICE float Softcapped(const RowShape& s, float score) {
  return s.softcap * elementwise::Tanh(score / s.softcap);
}

}  // namespace fuselage::attention::cuda

#endif  // FUSELAGE_KERNELS_ATTENTION_CUDA_ROW_SCORE_H_
