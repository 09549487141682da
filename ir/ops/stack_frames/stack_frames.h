// stack_frames: neighbouring frames as one image. A convolution over volumes, which are sequences of frames, is one
// over images of these.
//
//   input  [N*frames, C, H, W]           sequence n's frame f is image n*frames + f
//   result [N*frames', kernel*C, H, W]   channel k*C + c is channel c of tap k; with as_rows
//          [N*frames', C, H*kernel, W]   row h*kernel + k is row h of tap k
//
// frames' = floor((frames + begin + end - dilation*(kernel - 1) - 1) / stride) + 1
// Attributes: frames, kernel_size, stride, dilation (one value), padding (begin, end), as_rows. Of result n*frames' + f
// tap k is the frame f*stride - begin + k*dilation of sequence n, 0 where that is outside. Any element type; codes with
// one scale keep their parameters, and their zero point stands for 0.
#ifndef FUSELAGE_IR_OPS_STACK_FRAMES_STACK_FRAMES_H_
#define FUSELAGE_IR_OPS_STACK_FRAMES_STACK_FRAMES_H_

#include "ir/op.h"

namespace fuselage::ops::stack_frames {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::stack_frames

#endif  // FUSELAGE_IR_OPS_STACK_FRAMES_STACK_FRAMES_H_
