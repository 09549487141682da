// cuDNN, opened at run time: a program without it starts. The functions that are used, with handles and descriptors as
// void* and enumerations as int; fp32_cudnn_test.cc holds them to the header's declarations.
#ifndef FUSELAGE_KERNELS_FP32_CUDNN_LIBRARY_H_
#define FUSELAGE_KERNELS_FP32_CUDNN_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage::fp32::cudnn {

// X(name, result, parameters)
#define FUSELAGE_CUDNN_FUNCTIONS(X)                                                                              \
  X(GetVersion, size_t, ())                                                                                      \
  X(GetErrorString, const char*, (int))                                                                          \
  X(Create, int, (void**))                                                                                       \
  X(SetStream, int, (void*, void*))                                                                              \
  X(CreateTensorDescriptor, int, (void**))                                                                       \
  X(SetTensor4dDescriptor, int, (void*, int, int, int, int, int, int))                                           \
  X(DestroyTensorDescriptor, int, (void*))                                                                       \
  X(CreateFilterDescriptor, int, (void**))                                                                       \
  X(SetFilter4dDescriptor, int, (void*, int, int, int, int, int, int))                                           \
  X(DestroyFilterDescriptor, int, (void*))                                                                       \
  X(CreateConvolutionDescriptor, int, (void**))                                                                  \
  X(SetConvolution2dDescriptor, int, (void*, int, int, int, int, int, int, int, int))                            \
  X(SetConvolutionGroupCount, int, (void*, int))                                                                 \
  X(SetConvolutionMathType, int, (void*, int))                                                                   \
  X(GetConvolution2dForwardOutputDim, int, (void*, void*, void*, int*, int*, int*, int*))                        \
  X(GetConvolutionForwardWorkspaceSize, int, (void*, void*, void*, void*, void*, int, size_t*))                  \
  X(ConvolutionBiasActivationForward, int,                                                                       \
    (void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t, const void*, void*,  \
     const void*, void*, const void*, void*, void*, void*))                                                      \
  X(DestroyConvolutionDescriptor, int, (void*))                                                                  \
  X(CreateActivationDescriptor, int, (void**))                                                                   \
  X(SetActivationDescriptor, int, (void*, int, int, double))                                                     \
  X(ActivationForward, int, (void*, void*, const void*, void*, const void*, const void*, void*, void*))          \
  X(DestroyActivationDescriptor, int, (void*))                                                                   \
  X(CreatePoolingDescriptor, int, (void**))                                                                      \
  X(SetPooling2dDescriptor, int, (void*, int, int, int, int, int, int, int, int))                                \
  X(GetPooling2dForwardOutputDim, int, (void*, void*, int*, int*, int*, int*))                                   \
  X(PoolingForward, int, (void*, void*, const void*, void*, const void*, const void*, void*, void*))             \
  X(DestroyPoolingDescriptor, int, (void*))                                                                      \
  X(CreateOpTensorDescriptor, int, (void**))                                                                     \
  X(SetOpTensorDescriptor, int, (void*, int, int, int))                                                          \
  X(OpTensor, int,                                                                                               \
    (void*, void*, const void*, void*, const void*, const void*, void*, const void*, const void*, void*, void*)) \
  X(DestroyOpTensorDescriptor, int, (void*))                                                                     \
  X(BackendCreateDescriptor, int, (int, void**))                                                                 \
  X(BackendDestroyDescriptor, int, (void*))                                                                      \
  X(BackendFinalize, int, (void*))                                                                               \
  X(BackendSetAttribute, int, (void*, int, int, int64_t, const void*))                                           \
  X(BackendGetAttribute, int, (void*, int, int, int64_t, int64_t*, void*))                                       \
  X(BackendExecute, int, (void*, void*, void*))

struct Library {
#define FUSELAGE_CUDNN_POINTER(name, result, parameters) result(*name) parameters = nullptr;
  FUSELAGE_CUDNN_FUNCTIONS(FUSELAGE_CUDNN_POINTER)
#undef FUSELAGE_CUDNN_POINTER

  // Once for the process, and never closed. Unimplemented: it is not installed, or lacks a function.
  static absl::StatusOr<const Library*> Open();

  // "cuDNN: <what>: CUDNN_STATUS_NOT_SUPPORTED", as Unimplemented: what cuDNN refuses has no kernel here.
  absl::Status Check(int status, absl::string_view what) const;
};

// Values of cuDNN's enumerations.
constexpr int kNhwc = 1, kFloat = 0, kHalf = 2, kCrossCorrelation = 1, kImplicitPrecompGemm = 1;
constexpr int kTensorOpMath = 1, kFmaMath = 3;
constexpr int kRelu = 1, kIdentity = 5, kPropagateNan = 1, kOpTensorAdd = 0;
constexpr int kPoolingMax = 0, kPoolingAverageExcludePadding = 2;

}  // namespace fuselage::fp32::cudnn

#endif  // FUSELAGE_KERNELS_FP32_CUDNN_LIBRARY_H_
