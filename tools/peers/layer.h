// A lowered layer's parameters as other libraries take them: one factor and one addend for each output channel.
#ifndef FUSELAGE_TOOLS_PEERS_LAYER_H_
#define FUSELAGE_TOOLS_PEERS_LAYER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::peers {

// 1 and 0 where the type is no quantized one.
inline float ScaleOf(const TensorType& type) { return type.quant.has_value() ? type.quant->scale() : 1.0f; }
inline int32_t ZeroPointOf(const TensorType& type) { return type.quant.has_value() ? type.quant->zero_point() : 0; }

// What convolution and inner product share: codes * weights, scaled for each output channel.
struct Layer {
  const TensorType &input, &output;
  const Tensor* weight;
  const Tensor* bias;          // May be null.
  std::vector<float> scales;   // s_x*s_w[c]/s_y
  std::vector<float> addends;  // In steps of s_x*s_w[c], as oneDNN adds them before it scales.

  // Of an int8.conv2d or int8.linear. Unimplemented: its weight is computed.
  static absl::StatusOr<Layer> Of(const ir::Node& node);
};

}  // namespace fuselage::peers

#endif  // FUSELAGE_TOOLS_PEERS_LAYER_H_
