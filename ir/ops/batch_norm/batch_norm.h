// batch_norm: normalization of each channel (ONNX BatchNormalization; torch.nn.BatchNorm1d, 2d, 3d).
//
//   input [N, C, ...]; weight, bias, running_mean, running_var: [C], parameters, optional
//   result = (input - mean) / sqrt(var + eps) * weight + bias, of the input's shape
//
// Without weight the factor is 1, without bias the addend 0. Mean and variance are the running ones, or, if `training`
// or without them, those of the batch (the biased variance). Running statistics are never updated.
// Attributes: eps, training. Floats only; computes in double.
#ifndef FUSELAGE_IR_OPS_BATCH_NORM_BATCH_NORM_H_
#define FUSELAGE_IR_OPS_BATCH_NORM_BATCH_NORM_H_

#include "ir/op.h"

namespace fuselage::ops::batch_norm {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::batch_norm

#endif  // FUSELAGE_IR_OPS_BATCH_NORM_BATCH_NORM_H_
