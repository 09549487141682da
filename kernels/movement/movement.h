// Operators that move elements and compute nothing: permute, transpose, slice, split, cat, expand, pad, stack_frames.
// Each is a list of strided copies, for elements of any type; codes keep their parameters.
//
// cat, slice, split, pad and stack_frames take tensors of rank 4 in either layout, cat, slice and stack_frames also
// channels of wider ones; permute, transpose and expand row-major ones, though a permute's result may be taken for
// images in NHWC, and for channels of wider ones. Declines (Unimplemented) a pad that takes thousands of copies (by
// wrapping a short axis many times).
#ifndef FUSELAGE_KERNELS_MOVEMENT_MOVEMENT_H_
#define FUSELAGE_KERNELS_MOVEMENT_MOVEMENT_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::movement {

// One element each for every index of `shape`, from `from` to `to`, both in elements.
struct StridedCopy {
  struct Axis {
    int64_t size, from, to;  // Strides may be 0 (from) or negative (from).
  };
  std::vector<Axis> axes;
  int64_t from_offset = 0, to_offset = 0;
  int input = 0, output = 0;  // The kernel's input and output with these indices.

  static constexpr int kFill = -1;  // As the input: the plan's one element, for all indices.
};

// The axes without those of size 1, by falling stride of `to`, neighbours merged where both sides allow it.
std::vector<StridedCopy::Axis> Simplified(std::vector<StridedCopy::Axis> axes);

// What a kernel does, on any device.
struct Plan {
  std::optional<Tensor> fill;
  std::vector<StridedCopy> copies;  // One after the other.
};
absl::StatusOr<Plan> MakePlan(const kernels::KernelDesc& desc);

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::movement

#endif  // FUSELAGE_KERNELS_MOVEMENT_MOVEMENT_H_
