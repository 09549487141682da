// Ops that select as many elements as their data says. Types are static, so a result has room for all that there can
// be, and a second one, i64[1], says how many there are: rows from there on are 0.
//
//   nonzero(input)  the positions of the elements that are not 0, in row-major order: i64[elements, rank]
//                   (torch.nonzero; ONNX NonZero, transposed)
//   nms(boxes, scores; max_output_boxes_per_class, iou_threshold, score_threshold, center_point_box)
//                   rows of (image, class, box): of each image's and class's boxes whose score is more than
//                   score_threshold the best first, of equal ones the first, but those that overlap one before them by
//                   more than iou_threshold (ONNX NonMaxSuppression). boxes: f32[images, n, 4], corners or, with
//                   center_point_box, centers and sizes; scores: f32[images, classes, n]; the result:
//                   i64[images * classes * min(n, max_output_boxes_per_class), 3]
#ifndef FUSELAGE_IR_OPS_SELECTION_SELECTION_H_
#define FUSELAGE_IR_OPS_SELECTION_SELECTION_H_

#include "ir/op.h"

namespace fuselage::ops::selection {

void RegisterNms(ir::OpRegistry& registry);
void RegisterNonzero(ir::OpRegistry& registry);
void Register(ir::OpRegistry& registry);  // All of the above.

}  // namespace fuselage::ops::selection

#endif  // FUSELAGE_IR_OPS_SELECTION_SELECTION_H_
