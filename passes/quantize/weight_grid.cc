#include "passes/quantize/weight_grid.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "ir/base/mxfp4.h"

namespace fuselage::quantize {
namespace {

constexpr float kLeastFourBits = -8, kMostFourBits = 7;
constexpr int kCodesOfFourBits = 16;

// The value of the largest magnitude; 0 of none.
float Largest(absl::Span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  return largest;
}

// Codes of four bits times a scale. They are -8 to 7, by a scale that is negative where the largest value is 8 steps
// above 0, or any sixteen in [-15, 15] that follow each other: those of 0 to 15 without a zero point. 0: no such.
struct FourBits {
  float scale = 0;
  float least = 0, most = 0;  // Codes that a value has.
  uint32_t used = 0;          // Bit i: least + i is one.
};
FourBits FourBitsOf(absl::Span<const float> values) {
  // A product of a code and a scale is rounded, and so is a quotient of two.
  constexpr float kRoundings = 32 * std::numeric_limits<float>::epsilon();
  constexpr float kRoundingSum = 12582912.0f;  // 1.5 * 2^23, whose last bit is 1.
  const float largest = Largest(values);
  const auto fits = [&](float scale, float least, float most, FourBits& found) {
    if (!std::isnormal(scale)) return false;
    found = {scale, most, least, 0};
    uint32_t used = 0;  // By the codes that there can be.
    for (const float value : values) {
      const float quotient = value / scale, code = quotient + kRoundingSum - kRoundingSum;
      if (!(code >= least && code <= most && std::fabs(quotient - code) <= kRoundings)) return false;  // NaN is none.
      found.least = std::min(found.least, code);
      found.most = std::max(found.most, code);
      if (found.most - found.least > kCodesOfFourBits - 1) return false;
      used |= 1u << static_cast<int>(code - least);
    }
    found.used = used >> static_cast<int>(found.least - least);
    return true;
  };
  FourBits found;
  for (const int steps : {7, 8, 6, 5, 4, 3, 2, 1}) {
    const float scale = steps == 8 ? largest / kLeastFourBits : std::fabs(largest) / static_cast<float>(steps);
    if (fits(scale, kLeastFourBits, kMostFourBits, found)) return found;
  }
  for (int steps = 8; steps < kCodesOfFourBits; ++steps) {
    const float scale = std::fabs(largest) / static_cast<float>(steps);
    if (fits(scale, 1 - kCodesOfFourBits, kCodesOfFourBits - 1, found)) return found;
  }
  return {};
}

}  // namespace

absl::Status CheckFormat(const WeightFormat& format) {
  if (format.weights == QuantizeOptions::PER_CHANNEL_7_OR_8_BITS) {
    return absl::InvalidArgumentError(
        "weights are PER_CHANNEL_7_OR_8_BITS, which quantize with precision FASTEST decides by times, "
        "wanted PER_CHANNEL or PER_CHANNEL_7_BITS");
  }
  const int64_t size = format.group_size;
  if (!format.in_groups() || size == 32 || size == 64 || size == 128) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("group_size is ", size, ", wanted 32, 64 or 128"));
}

std::string Describe(const WeightFormat& format) {
  switch (format.weights) {
    case QuantizeOptions::PER_TENSOR: return "i8 per tensor";
    case QuantizeOptions::PER_CHANNEL_7_BITS: return "i8 of seven bits per channel";
    case QuantizeOptions::MXFP4: return "MXFP4";
    case QuantizeOptions::INT4: return absl::StrCat("INT4 in groups of ", format.group_size);
    case QuantizeOptions::INT8_GROUPS: return absl::StrCat("i8 in groups of ", format.group_size);
    default: return "i8 per channel";
  }
}

WeightGrid::WeightGrid(const Tensor& weight, const WeightFormat& format) : format_(format), rows_(weight.dim(0)) {
  columns_ = rows_ == 0 ? 0 : weight.num_elements() / rows_;
  group_size_ = format.in_groups() ? format.group_size : std::max<int64_t>(columns_, 1);
  groups_per_row_ = (columns_ + group_size_ - 1) / group_size_;
  std::vector<float> scales;
  if (!format.in_groups()) scales = WeightScales({&weight, nullptr, 0, format.weights});
  groups_.resize(format.in_groups() ? rows_ * groups_per_row_ : static_cast<int64_t>(scales.size()));
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; column += group_size_) {
      const int64_t index = groups_.size() == 1 ? 0 : row * groups_per_row_ + column / group_size_;
      const int64_t size = std::min(group_size_, columns_ - column);
      const absl::Span<const float> values = weight.values<float>().subspan(row * columns_ + column, size);
      Group& group = groups_[index];
      group.largest = std::max(group.largest, std::fabs(Largest(values)));  // Of all rows, where they share a group.
      FourBits stored;
      if (format.is_mxfp4()) {
        group.scale = static_cast<float>(mxfp4::FromE8M0(mxfp4::SharedScale(values)));
      } else if (format.in_groups()) {
        if (format.weights == QuantizeOptions::INT4) stored = FourBitsOf(values);
        group.scale = stored.scale;
        if (group.scale == 0) {
          group.scale = static_cast<float>(static_cast<double>(group.largest) / LargestCode(format.weights));
        }
        if (!std::isnormal(group.scale)) group.scale = 1;
      } else {
        group.scale = scales[index];
      }
      group.most = static_cast<float>(LargestCode(format.weights));
      group.least = -group.most;
      // What a group of four bits has at its largest element is its limit, or all that it has.
      const float steps = std::nearbyint(group.largest / std::fabs(group.scale));
      if (stored.least < kLeastFourBits || stored.most > kMostFourBits) {
        group.least = stored.least;
        group.most = stored.most;
      } else if (format.weights == QuantizeOptions::INT4 && steps >= 1) {
        group.least = -std::min(steps, -kLeastFourBits);
        group.most = std::min(steps, kMostFourBits);
      }
    }
  }
}

int WeightGrid::Code(int64_t row, int64_t column, float x) const {
  const Group& group = GroupOf(row, column);
  const float scaled = x / group.scale;
  if (format_.is_mxfp4()) return mxfp4::ToE2M1(scaled);
  return static_cast<int>(std::clamp(std::nearbyint(scaled), group.least, group.most));
}

float WeightGrid::Nearest(int64_t row, int64_t column, float x) const {
  const Group& group = GroupOf(row, column);
  const int code = Code(row, column, x), largest = LargestCode(format_.weights);
  if (format_.is_mxfp4()) return static_cast<float>(mxfp4::FromE2M1(static_cast<uint8_t>(code)) * group.scale);
  // To the last bit what gave the scale, which the largest code times the rounded scale need not be.
  const bool is_largest = std::abs(code) == largest && std::nearbyint(group.largest / group.scale) == largest;
  return is_largest ? std::copysign(group.largest, static_cast<float>(code)) : static_cast<float>(code) * group.scale;
}

bool WeightGrid::Decides(int64_t row, int64_t column, float x) const {
  return std::fabs(x) == GroupOf(row, column).largest;
}

Tensor Rounded(const Tensor& weight, const WeightFormat& format) {
  const WeightGrid grid(weight, format);
  Tensor rounded = weight;
  float* value = rounded.data<float>();
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (int64_t column = 0; column < grid.columns(); ++column, ++value) *value = grid.Nearest(row, column, *value);
  }
  return rounded;
}

GroupedWeight InGroups(const Tensor& weight, const WeightFormat& format) {
  const WeightGrid grid(weight, format);
  const int64_t groups = (grid.columns() + format.group_size - 1) / format.group_size;
  GroupedWeight grouped{Tensor(format.is_mxfp4() ? DType::kU8 : DType::kI8, weight.shape()),
                        Tensor(format.is_mxfp4() ? DType::kU8 : DType::kF32, {grid.rows(), groups})};
  uint8_t* const codes = static_cast<uint8_t*>(grouped.codes.raw_data());  // Of u8 or i8.
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (int64_t column = 0; column < grid.columns(); ++column) {
      const int64_t i = row * grid.columns() + column;
      codes[i] = static_cast<uint8_t>(grid.Code(row, column, weight.data<float>()[i]));
    }
    for (int64_t g = 0; g < groups; ++g) {
      const float scale = grid.Scale(row, g * format.group_size);
      // A power of two is stored as its biased exponent.
      grouped.scale.Set(row * groups + g, format.is_mxfp4() ? std::ilogb(scale) + mxfp4::kE8M0One : scale);
    }
  }
  return grouped;
}

std::optional<int64_t> FourBitGroups(const Tensor& weight) {
  if (weight.rank() != 2 || weight.dtype() != DType::kF32) return std::nullopt;
  const int64_t rows = weight.dim(0), columns = weight.dim(1);
  const auto used_in = [&](int64_t size) {  // None where a group is no such.
    uint32_t used = 0;
    for (int64_t i = 0; i < rows * columns; i += std::min(size, columns - i % columns)) {
      const absl::Span<const float> values = weight.values<float>().subspan(i, std::min(size, columns - i % columns));
      if (Largest(values) == 0) continue;
      const FourBits found = FourBitsOf(values);
      if (found.scale == 0) return uint32_t{0};
      used |= found.used;
    }
    return used;
  };
  for (const int64_t size : {128, 64, 32}) {
    if (columns >= size && absl::popcount(used_in(size)) > 8) return size;
  }
  return std::nullopt;
}

}  // namespace fuselage::quantize
