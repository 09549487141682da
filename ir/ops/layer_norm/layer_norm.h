// layer_norm: normalization over the trailing axes (torch.nn.functional.layer_norm, torch.nn.LayerNorm; ONNX
// LayerNormalization).
//
//   input [..., normalized_shape...]; weight, bias: [normalized_shape...], parameters, optional
//   result = (input - mean) / sqrt(var + eps) * weight + bias, of the input's shape
//
// Mean and biased variance are those of the trailing axes that normalized_shape names, one for each index of the
// others. Attributes: normalized_shape, eps. Floats only; computes in double.
#ifndef FUSELAGE_IR_OPS_LAYER_NORM_LAYER_NORM_H_
#define FUSELAGE_IR_OPS_LAYER_NORM_LAYER_NORM_H_

#include "ir/op.h"

namespace fuselage::ops::layer_norm {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::layer_norm

#endif  // FUSELAGE_IR_OPS_LAYER_NORM_LAYER_NORM_H_
