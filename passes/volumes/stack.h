// The same elements as volumes, as images and as sheets (volumes.h).
#ifndef FUSELAGE_PASSES_VOLUMES_STACK_H_
#define FUSELAGE_PASSES_VOLUMES_STACK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::volumes {

// A volume [N, C, D, H, W] as images [N*D, C, H, W].
struct Stack {
  ir::Node* images = nullptr;
  int64_t frames = 0;  // D.

  int64_t dim(int axis) const { return images->tensor_type().shape[axis]; }  // Of the images.
  bool one_pixel() const { return frames == 1 && dim(2) == 1 && dim(3) == 1; }
};

// Each adds nodes in front of `before`, with the sources of what they view.
absl::StatusOr<Stack> StackOf(ir::Node* volume, ir::Node* before);
absl::StatusOr<ir::Node*> VolumeOf(const Stack& stack, ir::Node* before);
absl::StatusOr<ir::Node*> SheetOf(const Stack& stack, ir::Node* before);
// A sheet [N, C, D, H*W] whose frames have this height.
absl::StatusOr<Stack> StackOfSheet(ir::Node* sheet, int64_t height, ir::Node* before);
// Images whose channels are those of `count` frames each, one behind the other.
absl::StatusOr<Stack> StackOfChannels(const Stack& stack, int64_t count, ir::Node* before);

}  // namespace fuselage::volumes

#endif  // FUSELAGE_PASSES_VOLUMES_STACK_H_
