// What attention's CUDA kernels share: shapes and mask (kernels/core/attention_shape.h).
#ifndef FUSELAGE_KERNELS_ATTENTION_CUDA_ROW_SHAPE_H_
#define FUSELAGE_KERNELS_ATTENTION_CUDA_ROW_SHAPE_H_

#include <array>
#include <cstdint>

namespace fuselage::attention::cuda {

constexpr int kMostMaskAxes = 8;
constexpr int kRowsOfABlock = 4;
constexpr int kElementsOfABlock = 128;
// kBlockRows of kernels/attention.
constexpr int kCpuRows = 84;

struct RowShape {
  int32_t rows = 0, group_rows = 0, queries = 0, keys = 0, depth = 0, width = 0;  // Rows of all groups.
  bool is_causal = false;
  float softcap = 0;  // 0: none.
  // The mask of a row and a key; null: none. Axes of the rows, the innermost first.
  const float* mask = nullptr;
  const uint8_t* bool_mask = nullptr;
  int mask_axes = 0;
  struct Axis {
    uint32_t size;
    int64_t stride;
  } mask_axis[kMostMaskAxes] = {};
  int64_t mask_key_stride = 0;
};

inline std::array<int, 3> GridOf(const RowShape& shape) {
  return {(shape.rows + kRowsOfABlock - 1) / kRowsOfABlock, (shape.width + kElementsOfABlock - 1) / kElementsOfABlock,
          1};
}

}  // namespace fuselage::attention::cuda

#endif  // FUSELAGE_KERNELS_ATTENTION_CUDA_ROW_SHAPE_H_
