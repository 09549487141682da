// int8.max_pool2d: the largest code of each window. Padding never wins; a window that holds nothing but padding gives
// the lowest code.
//
// Input and output share element type, scale and zero point: codes order as the values do.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/pool_window.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::max_pool2d {

struct Params {
  kernels::PoolWindow window;
  bool is_signed = false;
};

// Computes rows [row_begin, row_end) of the batch * output height rows; x and y are whole NHWC tensors.
using Function = void(const Params& params, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

// Runs of bytes, at least kLeastBytes each: the maxima of `count` runs `step` bytes apart, or of none the lowest code.
constexpr int64_t kLeastBytes = 8;
struct Maxima {
  const uint8_t* from;
  int64_t count, step;
  uint8_t* to;
  int64_t bytes;
  int64_t runs, from_step, to_step;
};
// Function's rows, by the maxima of an instruction set.
void MaxRows(const Params& params, void (*maximize)(const Maxima&), const uint8_t* x, uint8_t* y, int64_t row_begin,
             int64_t row_end);

}  // namespace fuselage::int8::max_pool2d

#endif  // FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_H_
