// The geometry and the multiply-accumulate loop of a convolution, which conv*d and int8.conv2d share.
#ifndef FUSELAGE_IR_OPS_CONV_CONVOLUTION_H_
#define FUSELAGE_IR_OPS_CONV_CONVOLUTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/op.h"
#include "ir/ops/core/window.h"

namespace fuselage::ops::conv {

enum Operand { kInput, kWeight, kBias, kResidual };

// input [batch, groups * in_channels, spatial...], weight [groups * out_channels, in_channels, kernel...]
// -> [batch, groups * out_channels, spatial'...].
struct Convolution {
  Window window;
  int64_t batch = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // One group's.

  // The result's shape, with n spatial axes.
  Shape ResultShape(int n) const;
};

// The schema of an n-dimensional convolution: operands, attributes, but no name and no functions.
ir::OpSchema ConvolutionSchema(int n);

// The schemas' cost: each element of the result is the sum of as many products as a channel's filter has weights.
ir::Cost CostOfConvolution(const ir::InferCall& call, const ir::Type& result);

// Ranks, channels, groups and the window, from input, weight and attributes.
absl::StatusOr<Convolution> CheckGeometry(const ir::InferCall& call, int n);
// These, and what else that schema has.
absl::StatusOr<Convolution> CheckConvolution(const ir::InferCall& call, int n);
// The same of a call that has passed inference.
Convolution ConvolutionOf(const ir::OpCall& call, const Shape& input, const Shape& weight);

// result += input * weight, all row-major; T is double, or int64_t (modulo 2^64). Each output sums its products in the
// order of the weight's elements.
template <typename T>
void Convolve(const Convolution& convolution, const T* input, const T* weight, T* result);

}  // namespace fuselage::ops::conv

#endif  // FUSELAGE_IR_OPS_CONV_CONVOLUTION_H_
