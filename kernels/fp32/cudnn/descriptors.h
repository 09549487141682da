// cuDNN's descriptors of tensors and operators; `dtype` is f32 or f16.
#ifndef FUSELAGE_KERNELS_FP32_CUDNN_DESCRIPTORS_H_
#define FUSELAGE_KERNELS_FP32_CUDNN_DESCRIPTORS_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/fp32/cudnn/library.h"

namespace fuselage::fp32::cudnn {

using Descriptor = std::unique_ptr<void, int (*)(void*)>;

// [n, c, h, w] in NHWC.
using Dims4 = std::array<int, 4>;
// For a tensor of rank 4, or of rank 2 as [n, c, 1, 1]. Unimplemented: other ranks and types, no elements, 2^31 or
// more.
absl::StatusOr<Dims4> DimsOf(const TensorType& type, DType dtype);
absl::StatusOr<Descriptor> TensorOf(const Library& library, DType dtype, const Dims4& dims);
absl::StatusOr<Descriptor> FilterOf(const Library& library, DType dtype, const Dims4& dims);

struct Convolution {
  int pad_y = 0, pad_x = 0, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1, groups = 1;
};
// Sums are float; of f16 by tensor cores.
absl::StatusOr<Descriptor> ConvolutionOf(const Library& library, DType dtype, const Convolution& convolution);
absl::StatusOr<Descriptor> ActivationOf(const Library& library, int mode);

struct Pooling {
  int mode = kPoolingMax;
  int height = 1, width = 1, pad_y = 0, pad_x = 0, stride_y = 1, stride_x = 1;
};
absl::StatusOr<Descriptor> PoolingOf(const Library& library, const Pooling& pooling);

// What cuDNN gives the result; InvalidArgument where it is not `output`.
absl::Status CheckConvolution(const Library& library, void* convolution, void* input, void* filter,
                              const Dims4& output);
absl::Status CheckPooling(const Library& library, void* pooling, void* input, const Dims4& output);

}  // namespace fuselage::fp32::cudnn

#endif  // FUSELAGE_KERNELS_FP32_CUDNN_DESCRIPTORS_H_
