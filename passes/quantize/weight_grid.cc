#include "passes/quantize/weight_grid.h"

#include <algorithm>
#include <cmath>

#include "ir/base/mxfp4.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {
namespace {

constexpr int64_t kMxfp4Group = 32;
constexpr float kLargestCode = 127;

}  // namespace

WeightGrid::WeightGrid(const Tensor& weight, QuantizeOptions::Weights mode)
    : is_mxfp4_(mode == QuantizeOptions::MXFP4), rows_(weight.dim(0)) {
  columns_ = rows_ == 0 ? 0 : weight.num_elements() / rows_;
  group_size_ = is_mxfp4_ ? kMxfp4Group : std::max<int64_t>(columns_, 1);
  groups_per_row_ = (columns_ + group_size_ - 1) / group_size_;
  const std::vector<float> scales =
      is_mxfp4_ ? std::vector<float>(rows_ * groups_per_row_) : WeightScales({&weight, nullptr, 0, mode});
  groups_.resize(scales.size());
  const bool one = scales.size() == 1;
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; column += group_size_) {
      const int64_t index = one ? 0 : row * groups_per_row_ + column / group_size_;
      const int64_t size = std::min(group_size_, columns_ - column);
      const absl::Span<const float> values = weight.values<float>().subspan(row * columns_ + column, size);
      Group& group = groups_[index];
      for (const float value : values) group.largest = std::max(group.largest, std::fabs(value));
      group.scale = is_mxfp4_ ? static_cast<float>(mxfp4::FromE8M0(mxfp4::SharedScale(values))) : scales[index];
    }
  }
}

float WeightGrid::Nearest(int64_t row, int64_t column, float x) const {
  const Group& group = GroupOf(row, column);
  if (is_mxfp4_) return static_cast<float>(mxfp4::FromE2M1(mxfp4::ToE2M1(x / group.scale)) * group.scale);
  const float code = std::clamp(std::nearbyint(x / group.scale), -kLargestCode, kLargestCode);
  // To the last bit what gave the scale, which 127 times the rounded scale need not be.
  const bool is_largest = std::fabs(code) == kLargestCode && std::nearbyint(group.largest / group.scale) == kLargestCode;
  return is_largest ? std::copysign(group.largest, code) : code * group.scale;
}

bool WeightGrid::Decides(int64_t row, int64_t column, float x) const {
  return std::fabs(x) == GroupOf(row, column).largest;
}

Tensor Rounded(const Tensor& weight, QuantizeOptions::Weights mode) {
  const WeightGrid grid(weight, mode);
  Tensor rounded = weight;
  float* value = rounded.data<float>();
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (int64_t column = 0; column < grid.columns(); ++column, ++value) *value = grid.Nearest(row, column, *value);
  }
  return rounded;
}

}  // namespace fuselage::quantize
