#include "kernels/fp32/cudnn/descriptors.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"

namespace fuselage::fp32::cudnn {
namespace {

absl::StatusOr<Descriptor> Made(const Library& library, int (*create)(void**), int (*destroy)(void*)) {
  void* descriptor = nullptr;
  RETURN_IF_ERROR(library.Check(create(&descriptor), "descriptor"));
  return Descriptor(descriptor, destroy);
}

absl::Status CheckDims(const Dims4& found, const Dims4& wanted) {
  if (found == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cuDNN: the result is [", absl::StrJoin(found, ","), "], wanted [",
                                                 absl::StrJoin(wanted, ","), "]"));
}

int DataType(DType dtype) { return dtype == DType::kF16 ? kHalf : kFloat; }

}  // namespace

absl::StatusOr<Dims4> DimsOf(const TensorType& type, DType dtype) {
  if (type.dtype != dtype || (type.rank() != 2 && type.rank() != 4)) {
    return absl::UnimplementedError(absl::StrCat(ToString(type), ", wanted ", DTypeName(dtype), " of rank 2 or 4"));
  }
  if (type.num_elements() < 1 || type.num_elements() > std::numeric_limits<int32_t>::max()) {
    return absl::UnimplementedError(absl::StrCat(ToString(type), " has ", type.num_elements(), " elements"));
  }
  Dims4 dims = {1, 1, 1, 1};
  for (int i = 0; i < type.rank(); ++i) dims[i] = static_cast<int>(type.shape[i]);
  return dims;
}

absl::StatusOr<Descriptor> TensorOf(const Library& library, DType dtype, const Dims4& d) {
  ASSIGN_OR_RETURN(Descriptor made, Made(library, library.CreateTensorDescriptor, library.DestroyTensorDescriptor));
  RETURN_IF_ERROR(library.Check(
      library.SetTensor4dDescriptor(made.get(), kNhwc, DataType(dtype), d[0], d[1], d[2], d[3]), "tensor"));
  return made;
}

absl::StatusOr<Descriptor> FilterOf(const Library& library, DType dtype, const Dims4& d) {
  ASSIGN_OR_RETURN(Descriptor made, Made(library, library.CreateFilterDescriptor, library.DestroyFilterDescriptor));
  RETURN_IF_ERROR(library.Check(
      library.SetFilter4dDescriptor(made.get(), DataType(dtype), kNhwc, d[0], d[1], d[2], d[3]), "filter"));
  return made;
}

absl::StatusOr<Descriptor> ConvolutionOf(const Library& library, DType dtype, const Convolution& c) {
  ASSIGN_OR_RETURN(Descriptor made,
                   Made(library, library.CreateConvolutionDescriptor, library.DestroyConvolutionDescriptor));
  RETURN_IF_ERROR(
      library.Check(library.SetConvolution2dDescriptor(made.get(), c.pad_y, c.pad_x, c.stride_y, c.stride_x,
                                                       c.dilation_y, c.dilation_x, kCrossCorrelation, kFloat),
                    "convolution"));
  RETURN_IF_ERROR(library.Check(library.SetConvolutionGroupCount(made.get(), c.groups), "groups"));
  const int math = dtype == DType::kF16 ? kTensorOpMath : kFmaMath;
  RETURN_IF_ERROR(library.Check(library.SetConvolutionMathType(made.get(), math), "math type"));
  return made;
}

absl::StatusOr<Descriptor> ActivationOf(const Library& library, int mode) {
  ASSIGN_OR_RETURN(Descriptor made,
                   Made(library, library.CreateActivationDescriptor, library.DestroyActivationDescriptor));
  RETURN_IF_ERROR(library.Check(library.SetActivationDescriptor(made.get(), mode, kPropagateNan, 0.0), "activation"));
  return made;
}

absl::StatusOr<Descriptor> PoolingOf(const Library& library, const Pooling& p) {
  ASSIGN_OR_RETURN(Descriptor made, Made(library, library.CreatePoolingDescriptor, library.DestroyPoolingDescriptor));
  RETURN_IF_ERROR(library.Check(library.SetPooling2dDescriptor(made.get(), p.mode, kPropagateNan, p.height, p.width,
                                                               p.pad_y, p.pad_x, p.stride_y, p.stride_x),
                                "pooling"));
  return made;
}

absl::Status CheckConvolution(const Library& library, void* convolution, void* input, void* filter,
                              const Dims4& output) {
  Dims4 found = {};
  RETURN_IF_ERROR(library.Check(
      library.GetConvolution2dForwardOutputDim(convolution, input, filter, &found[0], &found[1], &found[2], &found[3]),
      "the convolution's output"));
  return CheckDims(found, output);
}

absl::Status CheckPooling(const Library& library, void* pooling, void* input, const Dims4& output) {
  Dims4 found = {};
  RETURN_IF_ERROR(
      library.Check(library.GetPooling2dForwardOutputDim(pooling, input, &found[0], &found[1], &found[2], &found[3]),
                    "the pool's output"));
  return CheckDims(found, output);
}

}  // namespace fuselage::fp32::cudnn
