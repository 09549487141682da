// Normalization by statistics of the input itself (torch.nn.functional and torch.nn of the same names; ONNX
// LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization):
//
//   result = (input - mean) / sqrt(var + eps) * weight + bias, of the input's shape
//
//   layer_norm(normalized_shape, eps)   over the trailing axes, of these sizes; weight, bias: [normalized_shape...]
//   rms_norm(normalized_shape, eps)     the same with mean = 0, var the mean square, and no bias
//   group_norm(num_groups, eps)         [N, C, spatial...], over each group of C / num_groups channels; parameters: [C]
//   instance_norm(eps)                  the same over each channel
//
// The last two end in an activation, as a convolution does.
//
// Mean and biased variance are those of the axes named, one for each index of the others. weight and bias are
// parameters, optional. Floats only; sums in double, then in the type of the input (docs/arithmetic.md).
#ifndef FUSELAGE_IR_OPS_LAYER_NORM_LAYER_NORM_H_
#define FUSELAGE_IR_OPS_LAYER_NORM_LAYER_NORM_H_

#include "ir/op.h"

namespace fuselage::ops::layer_norm {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::layer_norm

#endif  // FUSELAGE_IR_OPS_LAYER_NORM_LAYER_NORM_H_
