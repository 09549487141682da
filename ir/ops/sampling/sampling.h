// Ops that read an image between its pixels, at computed places. Floats.
//
//   grid_sample(input, grid; mode, padding_mode, align_corners)
//       input [N, C, H, W] or [N, C, D, H, W], grid [N, out..., 2 or 3]: for each place of the result [N, C, out...],
//       where in the input it reads, x (along W) first. (torch.nn.functional.grid_sample; ONNX GridSample)
//         mode           "nearest" (ties to even), "bilinear", "bicubic", each on every axis
//         padding_mode   "zeros", "border" or "reflection": what lies beyond the input
//         align_corners  -1 and 1 are the centers of the outer pixels, not the edges of the input
//
//   roi_align(input, boxes, index; output_height, output_width, spatial_scale, sampling_ratio, aligned, mode)
//       input [N, C, H, W], boxes [K, 4] of x1, y1, x2, y2, index [K] of i32 or i64: the image of each box. The result
//       [K, C, output_height, output_width] cuts each box, scaled by spatial_scale, into bins, and reads each at
//       sampling_ratio^2 places, or where that is 0 at one for each pixel that a bin spans. (torchvision.ops.roi_align;
//       ONNX RoiAlign)
//         aligned  pixel centers are at 0.5, 1.5, ...; otherwise at 0, 1, ..., and no box is smaller than one pixel
//         mode     "avg": the mean of a bin's places; "max": the largest product of a pixel and its weight in any of
//                  them, as ONNX has it
#ifndef FUSELAGE_IR_OPS_SAMPLING_SAMPLING_H_
#define FUSELAGE_IR_OPS_SAMPLING_SAMPLING_H_

#include "ir/op.h"

namespace fuselage::ops::sampling {

void RegisterGridSample(ir::OpRegistry& registry);
void RegisterRoiAlign(ir::OpRegistry& registry);
void Register(ir::OpRegistry& registry);  // Both.

}  // namespace fuselage::ops::sampling

#endif  // FUSELAGE_IR_OPS_SAMPLING_SAMPLING_H_
