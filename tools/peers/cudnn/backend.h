// Descriptors of cuDNN's graph API, which its documentation calls the backend API: attributes are set one by one, then
// the descriptor is finalized. The functions are those of kernels/fp32/cudnn/library.h; cudnn_test.cc holds the values
// here to the header's.
#ifndef FUSELAGE_TOOLS_PEERS_CUDNN_BACKEND_H_
#define FUSELAGE_TOOLS_PEERS_CUDNN_BACKEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/fp32/cudnn/descriptors.h"
#include "kernels/fp32/cudnn/library.h"

namespace fuselage::peers::cudnn {

using fp32::cudnn::Descriptor;
using fp32::cudnn::Library;

// X(our name, cuDNN's name, value)
#define FUSELAGE_CUDNN_VALUES(X)                                                     \
  X(kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                               \
  X(kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                           \
  X(kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                     \
  X(kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                            \
  X(kHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                             \
  X(kPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                               \
  X(kConvolutionForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10) \
  X(kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)           \
  X(kOperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                    \
  X(kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                         \
  X(kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                    \
  X(kDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)                      \
  X(kDataTypeValue, CUDNN_TYPE_DATA_TYPE, 1)                                         \
  X(kBooleanValue, CUDNN_TYPE_BOOLEAN, 2)                                            \
  X(kInt64Value, CUDNN_TYPE_INT64, 3)                                                \
  X(kFloatValue, CUDNN_TYPE_FLOAT, 4)                                                \
  X(kPointerValue, CUDNN_TYPE_VOID_PTR, 6)                                           \
  X(kConvolutionModeValue, CUDNN_TYPE_CONVOLUTION_MODE, 7)                           \
  X(kHeuristicModeValue, CUDNN_TYPE_HEUR_MODE, 8)                                    \
  X(kPointwiseModeValue, CUDNN_TYPE_POINTWISE_MODE, 14)                              \
  X(kDescriptorValue, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                             \
  X(kInt32Value, CUDNN_TYPE_INT32, 23)                                               \
  X(kCharValue, CUDNN_TYPE_CHAR, 24)                                                 \
  X(kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE, 0)                                    \
  X(kPointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                          \
  X(kConvolutionPrecision, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                    \
  X(kConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                         \
  X(kConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                    \
  X(kConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                 \
  X(kConvolutionPaddingsAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)            \
  X(kConvolutionPaddingsBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)            \
  X(kConvolutionRank, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                      \
  X(kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                \
  X(kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                    \
  X(kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                          \
  X(kHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                        \
  X(kConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                 \
  X(kPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                       \
  X(kPlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)              \
  X(kPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                          \
  X(kForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)              \
  X(kForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                \
  X(kForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)    \
  X(kForwardWeight, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                 \
  X(kForwardInput, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                  \
  X(kForwardOutput, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                 \
  X(kOperationPointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)          \
  X(kOperationInput, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                      \
  X(kOperationOther, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                      \
  X(kOperationOutput, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                     \
  X(kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                            \
  X(kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                         \
  X(kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                               \
  X(kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                            \
  X(kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES, 903)                                  \
  X(kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                     \
  X(kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                             \
  X(kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                              \
  X(kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                      \
  X(kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                         \
  X(kEngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                              \
  X(kDeviceId, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, 2700)                                \
  X(kDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)                    \
  X(kFloat, CUDNN_DATA_FLOAT, 0)                                                     \
  X(kHalf, CUDNN_DATA_HALF, 2)                                                       \
  X(kInt8, CUDNN_DATA_INT8, 3)                                                       \
  X(kInt32, CUDNN_DATA_INT32, 4)                                                     \
  X(kAdd, CUDNN_POINTWISE_ADD, 0)                                                    \
  X(kMultiply, CUDNN_POINTWISE_MUL, 1)                                               \
  X(kRelu, CUDNN_POINTWISE_RELU_FWD, 100)                                            \
  X(kCrossCorrelation, CUDNN_CROSS_CORRELATION, 1)                                   \
  X(kFallback, CUDNN_HEUR_MODE_FALLBACK, 2)                                          \
  X(kByHeuristics, CUDNN_HEUR_MODE_A, 3)
#define FUSELAGE_CUDNN_CONSTANT(name, theirs, value) constexpr int name = value;
FUSELAGE_CUDNN_VALUES(FUSELAGE_CUDNN_CONSTANT)
#undef FUSELAGE_CUDNN_CONSTANT

// Sets attributes until Finish, which returns the first error: "cuDNN: <what>: CUDNN_STATUS_BAD_PARAM".
class Builder {
 public:
  Builder(const Library& library, int type, std::string what);

  Builder& Set(int attribute, int type, int64_t count, const void* values);
  Builder& Enum(int attribute, int type, int value) { return Set(attribute, type, 1, &value); }
  Builder& Ints(int attribute, const std::vector<int64_t>& values) {
    return Set(attribute, kInt64Value, static_cast<int64_t>(values.size()), values.data());
  }
  Builder& Float(int attribute, float value) { return Set(attribute, kFloatValue, 1, &value); }
  Builder& Refer(int attribute, void* descriptor) { return Set(attribute, kDescriptorValue, 1, &descriptor); }

  absl::StatusOr<Descriptor> Finish();

 private:
  const Library& library_;
  const std::string what_;
  Descriptor descriptor_;
  absl::Status status_;
};

// An empty one of a type, for GetAttribute to fill.
absl::StatusOr<Descriptor> Empty(const Library& library, int type, absl::string_view what);

}  // namespace fuselage::peers::cudnn

#endif  // FUSELAGE_TOOLS_PEERS_CUDNN_BACKEND_H_
