// Ops that work line by line along an axis, in row-major tensors, lines beside one another in vectors: the bits of
// their reference evaluation, or for exponentials and logarithms those of ir/base/wide_math.h in a stated order
// (loops.h); the same on every machine and number of threads.
//
//   argmax argmin cumsum          of i32, i64 and f32, cumsum in double
//   log_softmax hardmax logsumexp of f32, logsumexp along one axis or neighbouring ones
//
// Declines (Unimplemented): other element types, tensors without elements, logsumexp along axes that are no neighbours,
// lines of more than kMostElements.
#ifndef FUSELAGE_KERNELS_ALONG_AXIS_ALONG_AXIS_H_
#define FUSELAGE_KERNELS_ALONG_AXIS_ALONG_AXIS_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::along_axis {

constexpr int64_t kMostLines = 128;            // Of one call.
constexpr int64_t kLanes = 16;                 // Of one line of neighbouring elements.
constexpr int64_t kMostElements = 0x7fffffff;  // Of a line: indices in a vector have 32 bits.

// Lines beside one another, of elements x[k * stride] for k in [0, length). A result is such a line too, or one
// element.
struct Lines {
  int64_t length, stride, count;            // One where the stride is 1.
  bool exclusive = false, reverse = false;  // cumsum
  bool last = false;                        // argmax, argmin: of equal ones
};
using Function = void(const Lines& lines, const void* x, void* y);

// An op. Null: not of this element type.
struct Row {
  const char* op;
  bool to_one;  // Each line gives one element.
  Function *f32, *i32, *i64;
};
using RowFunction = const Row*(absl::string_view op);  // Null for other ops.
struct NoParams {};
using Variant = kernels::Variant<NoParams, RowFunction>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(RowFunction, RowOrNull)

}  // namespace fuselage::along_axis

#endif  // FUSELAGE_KERNELS_ALONG_AXIS_ALONG_AXIS_H_
