// The values that the codes of a weight can have.
#ifndef FUSELAGE_PASSES_QUANTIZE_WEIGHT_GRID_H_
#define FUSELAGE_PASSES_QUANTIZE_WEIGHT_GRID_H_

#include <cstdint>
#include <vector>

#include "ir/base/tensor.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::quantize {

// Elements that share a scale are those of an output channel, of all, or of a group along the features, as `mode` says.
// The scale is what `quantize` will choose for the same weight, and for any other weight of the grid in which the
// largest elements of each group are as they were: so `quantize` gives such a weight its values as codes, exactly.
class WeightGrid {
 public:
  // `weight`: f32 [output channels, ...], finite.
  WeightGrid(const Tensor& weight, QuantizeOptions::Weights mode);

  int64_t rows() const { return rows_; }        // Output channels.
  int64_t columns() const { return columns_; }  // Elements of one.

  // The value that element [row, column] can have which is nearest to `x`.
  float Nearest(int64_t row, int64_t column, float x) const;

  // Whether an element of value `x` there decides the scale.
  bool Decides(int64_t row, int64_t column, float x) const;

 private:
  struct Group {
    float largest = 0;  // Magnitude of an element.
    float scale = 1;
  };
  const Group& GroupOf(int64_t row, int64_t column) const {
    return groups_[groups_.size() == 1 ? 0 : row * groups_per_row_ + column / group_size_];
  }

  bool is_mxfp4_;
  int64_t rows_, columns_, group_size_, groups_per_row_;
  std::vector<Group> groups_;
};

// Each element of the weight rounded.
Tensor Rounded(const Tensor& weight, QuantizeOptions::Weights mode);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_WEIGHT_GRID_H_
