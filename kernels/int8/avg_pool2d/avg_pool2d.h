// int8.avg_pool2d and int8.global_avg_pool: the mean of each window.
//
//   v = float(sum (x - z_x)) * (s_x / (s_y * n));  q = clamp(rne(v) + z_y, lo, hi)
//
// n: the taps inside the image; with count_include_pad the taps inside the padded image. A window without any gives
// z_y. Declines: windows so large that the int32 sum may overflow.
#ifndef FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_H_
#define FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/pool_window.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::avg_pool2d {

// Zero points and clamp are those of the unsigned form (see UnsignedForm).
struct Params {
  kernels::PoolWindow window;
  bool count_include_pad = false;
  uint8_t flip_x = 0, flip_y = 0;
  int32_t zero_point_x = 0, zero_point_y = 0;
  float scale_x = 1, scale_y = 1;
  int32_t lo = 0, hi = 255;
};

// Computes rows [row_begin, row_end) of the batch * output height rows; x and y are whole NHWC tensors.
using Function = void(const Params& params, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);  // For either op.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::avg_pool2d

#endif  // FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_H_
