// resize(input; dims, sizes, scales, roi, mode, coordinates, ...): resamples the axes `dims` to `sizes`, one after the
// other (torch.nn.functional.interpolate; ONNX Resize, Upsample).
//
//   scales   what coordinates are computed with, one for each axis; none: sizes over the input's. sizes must be what
//            they give, to about a factor of two
//   roi      starts, then ends, of coordinates="tf_crop_and_resize", 0 and 1 being the first and last element of the
//            axis; none: all of it
//   mode, coordinates, nearest_mode, cubic_coeff_a, antialias, exclude_outside
//            see ir/base/resize_axis.h; the names are ONNX's. torch's interpolate is coordinates="half_pixel", or
//            "align_corners"; mode "nearest" is "asymmetric" with nearest_mode="floor", "nearest-exact" is "half_pixel"
//            with "round_prefer_ceil"
//   extrapolation_value   of elements that tf_crop_and_resize reads beyond the input
//
// nearest takes any element type, and codes, whose per-tensor quantization parameters the result keeps (but for
// tf_crop_and_resize, whose extrapolation_value is no code); linear and cubic take floats.
#ifndef FUSELAGE_IR_OPS_RESIZE_RESIZE_H_
#define FUSELAGE_IR_OPS_RESIZE_RESIZE_H_

#include "ir/op.h"

namespace fuselage::ops::resize {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::resize

#endif  // FUSELAGE_IR_OPS_RESIZE_RESIZE_H_
