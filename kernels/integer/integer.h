// matmul_integer and conv_integer2d: exact products of codes less their zero points, in i32 modulo 2^32.
//
// The weights are packed once, when the kernel is made (product.h), the other side row by row: pixels of NHWC images
// through im2col. Codes less a zero point fit 16 bits, two of which are multiplied at a time (tile.h). AVX-512 VNNI
// multiplies four codes as they are, and takes the zero points off by the sums of columns and rows. A channel that is a
// group of its own has no product of matrices: its window goes by pairs of taps, with channels as the lanes (pixel.h).
// `b` of a product may also arrive at run time; then it is packed in each run.
//
// Declines (Unimplemented): operands of rank other than 2 (`b`) and 4 (images); a zero point of `a` or of the images
// with several elements; one of `b` or of the weight that is neither one element nor one per result column (channel).
#ifndef FUSELAGE_KERNELS_INTEGER_INTEGER_H_
#define FUSELAGE_KERNELS_INTEGER_INTEGER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::integer {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateMatmul(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateConv(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::integer

#endif  // FUSELAGE_KERNELS_INTEGER_INTEGER_H_
