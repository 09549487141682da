// int8.conv2d_max_pool2d: int8.max_pool2d of int8.conv2d, to the bit.
//
//   input, weight, bias  as int8.conv2d has them; there is no residual
//   result               codes with the convolution's parameters, which a max pool keeps
//
// Attributes: those of int8.conv2d (out_dtype u8 or i8), and those of int8.max_pool2d with the prefix "pool_":
// pool_kernel_size, pool_stride, pool_padding, pool_dilation, pool_ceil_mode.
#ifndef FUSELAGE_IR_OPS_INT8_CONV2D_MAX_POOL2D_CONV2D_MAX_POOL2D_H_
#define FUSELAGE_IR_OPS_INT8_CONV2D_MAX_POOL2D_CONV2D_MAX_POOL2D_H_

#include "ir/op.h"

namespace fuselage::ops::int8::conv2d_max_pool2d {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::conv2d_max_pool2d

#endif  // FUSELAGE_IR_OPS_INT8_CONV2D_MAX_POOL2D_CONV2D_MAX_POOL2D_H_
