// The values that the codes of a weight can have.
#ifndef FUSELAGE_PASSES_QUANTIZE_WEIGHT_GRID_H_
#define FUSELAGE_PASSES_QUANTIZE_WEIGHT_GRID_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/base/tensor.h"
#include "passes/quantize/quantize.pb.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {

// How the codes of a weight are stored.
struct WeightFormat {
  WeightFormat(QuantizeOptions::Weights mode, int64_t group = 32)  // NOLINT: most have no groups.
      : weights(mode), group_size(mode == QuantizeOptions::MXFP4 || group == 0 ? 32 : group) {}

  bool in_groups() const {
    return is_mxfp4() || weights == QuantizeOptions::INT4 || weights == QuantizeOptions::INT8_GROUPS;
  }
  bool is_mxfp4() const { return weights == QuantizeOptions::MXFP4; }

  QuantizeOptions::Weights weights;
  int64_t group_size;  // Where it has groups.
};

// InvalidArgument where the size of the groups is none that there are kernels for.
absl::Status CheckFormat(const WeightFormat& format);

// "i8 per channel", "MXFP4", "INT4 in groups of 64".
std::string Describe(const WeightFormat& format);

// Elements that share a scale are those of an output channel, of all, or of a group along the features, as the format
// says. INT4 has the codes -7 to 7; where a group has four bits already (FourBitGroups), it has its own, sixteen that
// follow each other in [-15, 15].
//
// The scale is what `quantize` will choose for the same weight, and for any other weight of the grid in which the
// largest elements of each group are as they were: so `quantize` gives such a weight its values as codes, exactly.
class WeightGrid {
 public:
  // `weight`: f32 [output channels, ...], finite.
  WeightGrid(const Tensor& weight, const WeightFormat& format);

  int64_t rows() const { return rows_; }        // Output channels.
  int64_t columns() const { return columns_; }  // Elements of one.

  // The code of that value: an integer, or E2M1's.
  int Code(int64_t row, int64_t column, float x) const;
  float Scale(int64_t row, int64_t column) const { return GroupOf(row, column).scale; }

  // The value that element [row, column] can have which is nearest to `x`.
  float Nearest(int64_t row, int64_t column, float x) const;

  // Whether an element of value `x` there decides the scale.
  bool Decides(int64_t row, int64_t column, float x) const;

 private:
  struct Group {
    float largest = 0;  // Magnitude of an element.
    float scale = 1;
    float least = 0, most = 0;  // Codes.
  };
  const Group& GroupOf(int64_t row, int64_t column) const {
    return groups_[groups_.size() == 1 ? 0 : row * groups_per_row_ + column / group_size_];
  }

  WeightFormat format_;
  int64_t rows_, columns_, group_size_, groups_per_row_;
  std::vector<Group> groups_;
};

// Each element of the weight rounded.
Tensor Rounded(const Tensor& weight, const WeightFormat& format);

// [N, K] in groups: codes [N, K] and scales [N, ceil(K / group_size)], as dequantize_mxfp4 and dequantize_groups take
// them.
struct GroupedWeight {
  Tensor codes, scale;
};
GroupedWeight InGroups(const Tensor& weight, const WeightFormat& format);

// The size of the groups in which `weight` [N, K] is codes of four bits, of which it has more than eight, less a zero
// point and times a scale for each group, but for roundings; none where it is not. What another quantizer has left so
// is such a weight (com.microsoft's MatMulNBits): these codes are all that it holds.
std::optional<int64_t> FourBitGroups(const Tensor& weight);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_WEIGHT_GRID_H_
