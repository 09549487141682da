// Attributes that convolutions and pools share: kernel, strides, pads or auto_pad, dilations.
#ifndef FUSELAGE_FRONTEND_ONNX_SPATIAL_H_
#define FUSELAGE_FRONTEND_ONNX_SPATIAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/call.h"

namespace fuselage::onnx {

struct Spatial {
  int dims = 0;  // 1, 2 or 3.
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> padding;  // All begins, then all ends; resolved from auto_pad by ResolvePadding.
  std::string auto_pad;          // "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER".
};

// "conv2d" from "conv" and 2.
std::string SpatialTarget(absl::string_view target, int dims);

// Reads and checks the attributes of a node whose input has shape [N, C, spatial...]. `weight_kernel`: the kernel that
// the weight's shape states, which attribute kernel_shape must repeat; empty for a pool, which must have the attribute.
absl::StatusOr<Spatial> ReadSpatial(const Call& call, const Shape& input, std::vector<int64_t> weight_kernel);

// Padding for auto_pad: SAME gives ceil(input / stride) outputs, the odd cell at the end (UPPER) or the begin (LOWER).
void ResolvePadding(const Shape& input, Spatial* spatial);

// A call of a windowed op: conv1d, avg_pool2d, ...
struct WindowedCall {
  std::string target;
  AttributeMap attributes;
};

// The spatial dimensions of a weight [oc, ic, kernel...] that fits the input's rank.
absl::StatusOr<std::vector<int64_t>> KernelOf(const Shape& input, const Shape& weight);
// Conv of an input [N, C, spatial...] and such a weight.
absl::StatusOr<WindowedCall> ReadConv(const Call& call, const Shape& input, const Shape& weight);
// AveragePool of an input [N, C, spatial...].
absl::StatusOr<WindowedCall> ReadAveragePool(const Call& call, const Shape& input);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_SPATIAL_H_
