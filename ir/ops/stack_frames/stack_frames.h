// stack_frames: the channels of neighbouring frames behind each other. A convolution over volumes, which are sequences of
// frames, is one over images of these.
//
//   input  [N*frames, C, H, W]           sequence n's frame f is image n*frames + f
//   result [N*frames', kernel*C, H, W]
//
// frames' = floor((frames + begin + end - dilation*(kernel - 1) - 1) / stride) + 1
// Attributes: frames, kernel_size, stride, dilation (one value), padding (begin, end), groups. Result n*frames' + f has,
// for each group of C/groups channels, those of the frames f*stride - begin + k*dilation of sequence n, for k from 0 to
// kernel - 1: 0 for frames outside. Any element type; codes with one scale keep their parameters, and their zero point
// stands for 0.
#ifndef FUSELAGE_IR_OPS_STACK_FRAMES_STACK_FRAMES_H_
#define FUSELAGE_IR_OPS_STACK_FRAMES_STACK_FRAMES_H_

#include "ir/op.h"

namespace fuselage::ops::stack_frames {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::stack_frames

#endif  // FUSELAGE_IR_OPS_STACK_FRAMES_STACK_FRAMES_H_
