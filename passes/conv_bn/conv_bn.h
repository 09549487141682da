// conv_bn: folds what is affine per channel into the weights beside it: batch norms in evaluation, and products and
// sums with a constant that is one number, or one for each channel (a layer scale, the gain of an activation, pixels in
// 255ths, a bias that stands by itself).
//
//   bn(conv(x))  =>  conv'(x)    W' = W * g,  b' = (b - mean) * g + beta,  g = gamma / sqrt(variance + eps)
//   conv(bn(x))  =>  conv'(x)    W' = W * g of the input channel,  b' = b + sum W * (beta - mean * g)
//   conv(x) * g, conv(x * g)     the same, with mean and beta 0; conv(x) / g too
//   conv(x) + b, conv(x + b)     with a gain of 1
//   relu(conv(x)) * g            =>  relu(conv'(x))   for g > 0
//   bn(view(layer(x)))  =>  view(layer'(x))   for permutes and reshapes that keep the channels together
//
//   bn(x)        =>  a depthwise convolution of one tap, where there is no layer to fold it into
//
//   a(x) + b(x)  =>  one convolution or linear with the weights of both (sums.h), with `keep_branches` two
//
// for conv1d/2d/3d (any stride, groups and dilation) and linear; the first form also for conv_transpose1d/2d/3d. Where
// weights are codes around 0, of a network that was trained so, their scales change: in the first form, and in the
// second for x * g and a depthwise convolution. An absent gamma is 1; an absent beta or bias is 0. Computed in double,
// stored as f32 in new parameters: a weight that other modules share stays as it is for them. A batch norm alone is for
// tensors of rank 4: pre-activation networks such as DenseNet have one behind each concat, which as a convolution can
// take a relu in
// (`fusion`) and compute on codes (`quantize`). With `keep_batch_norms` it stays, and computes on floats.
//
// Declines to fold: the value between the two has a second user or is a graph output; the convolution's module has a
// second call site (folding would change both); batch norm in training mode or without running statistics; a weight
// that is computed, or other codes; a constant along another axis than the channels'; variance + eps <= 0, or a result
// that is not finite; in the first form and in a sum a convolution with an activation or a residual; in the second one
// padding, unless beta - mean * g is 0, for padding is zero only behind the batch norm; a sum of which no convolution
// has room for the taps and channels of another one.
//
// Numeric contract: 1e-5 of the largest output.
#ifndef FUSELAGE_PASSES_CONV_BN_CONV_BN_H_
#define FUSELAGE_PASSES_CONV_BN_CONV_BN_H_

#include "absl/strings/string_view.h"
#include "passes/conv_bn/conv_bn.pb.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"

namespace fuselage::conv_bn {

class ConvBn : public passes::Pass {
 public:
  explicit ConvBn(ConvBnOptions options) : options_(std::move(options)) {}

  absl::string_view name() const override { return "conv_bn"; }
  passes::NumericContract numeric_contract() const override { return {passes::NumericContract::kTolerance, 1e-5}; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  ConvBnOptions options_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::conv_bn

#endif  // FUSELAGE_PASSES_CONV_BN_CONV_BN_H_
