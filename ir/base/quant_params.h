// The affine map between codes q and real values x:  x = scale * (q - zero_point).
#ifndef FUSELAGE_IR_BASE_QUANT_PARAMS_H_
#define FUSELAGE_IR_BASE_QUANT_PARAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/base/dtype.h"

namespace fuselage {

// Per tensor: axis == kPerTensor and one scale. Per axis: one scale for each index along `axis`.
// `zero_points` has as many entries as `scales`.
struct QuantParams {
  static constexpr int kPerTensor = -1;

  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  int axis = kPerTensor;

  bool per_tensor() const { return axis == kPerTensor; }
  // Only of per-tensor parameters.
  float scale() const { return scales[0]; }
  int32_t zero_point() const { return zero_points[0]; }

  friend bool operator==(const QuantParams& a, const QuantParams& b) {
    return a.scales == b.scales && a.zero_points == b.zero_points && a.axis == b.axis;
  }
  friend bool operator!=(const QuantParams& a, const QuantParams& b) { return !(a == b); }
};

QuantParams PerTensor(float scale, int32_t zero_point = 0);
QuantParams PerAxis(int axis, std::vector<float> scales);  // Zero points 0.

// Scales are normal floats > 0 and zero points lie in the range of `dtype`; sizes agree with `shape`.
absl::Status CheckQuantParams(const QuantParams& params, DType dtype, const std::vector<int64_t>& shape);

// "<scale=0.05, zp=-3>" or "<axis=0, scale=[0.1, 0.2], zp=[0, 0]>"; zp is left out where all are 0.
std::string ToString(const QuantParams& params);

// The shortest decimal text that reads back as the same float (or double).
std::string ShortestText(float value);
std::string ShortestText(double value);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_QUANT_PARAMS_H_
