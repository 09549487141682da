// int8.conv2d_max_pool2d: max pooling of a convolution a band of rows at a time, so that what lies between the two
// stays in a core's cache.
//
// Composed of the kernels of int8.conv2d and int8.max_pool2d, with their bits. For each band of pooled rows the first
// computes, into scratch memory, the rows that the band needs from the rows of the input that these see: an image of
// its own, since rows of NHWC lie next to each other, with the image's padding above and below it at most in the first
// and the last band. Rows that one band has in common with the next are kept. A thread takes whole images, or, where
// there are fewer of them than threads, sections of an image, which compute the rows that they have in common twice.
//
// An input with a halo is read in place: rows around a band, and around the image its halo, stand for the padding. A
// convolution that can then pools along its rows, whose sums it compares: fewer of them become codes.
//
// Operands and attributes: those of int8.conv2d without a residual, and pool_kernel_size, pool_stride, pool_padding,
// pool_dilation, pool_ceil_mode. Output: u8 or i8.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_MAX_POOL2D_CONV2D_MAX_POOL2D_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_MAX_POOL2D_CONV2D_MAX_POOL2D_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/int8/conv2d/conv2d.h"

namespace fuselage::int8::conv2d_max_pool2d {

// Errors are those of the two kernels.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// With at most this many pooled rows a band, and the convolution's variants given. For tests and benchmarks.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateWithBands(absl::Span<const conv2d::Variant> variants,
                                                                 const kernels::KernelDesc& desc, int64_t band_rows);

// What Register registers, with a table of variants of the caller's, which must outlive it.
kernels::KernelEntry EntryWith(absl::Span<const conv2d::Variant> variants);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::conv2d_max_pool2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_MAX_POOL2D_CONV2D_MAX_POOL2D_H_
