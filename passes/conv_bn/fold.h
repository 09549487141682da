// The arithmetic of folding: plain tensors, no graph.
#ifndef FUSELAGE_PASSES_CONV_BN_FOLD_H_
#define FUSELAGE_PASSES_CONV_BN_FOLD_H_

#include <vector>

#include "ir/base/tensor.h"

namespace fuselage::conv_bn {

// y = scale[c] * x + shift[c].
struct Affine {
  std::vector<double> scale, shift;
};

struct BatchNormStatistics {
  const Tensor* weight = nullptr;  // Null: 1.
  const Tensor* bias = nullptr;    // Null: 0.
  const Tensor* mean = nullptr;
  const Tensor* variance = nullptr;
  double eps = 0;
};
// Batch norm in evaluation. A variance + eps <= 0 gives a scale that is not finite.
Affine AffineOf(const BatchNormStatistics& statistics);

// A convolution or linear: weight [oc, ic/groups, kernel...], or of a transposed one [ic, oc/groups, kernel...].
struct Layer {
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;  // Null: 0.
  int64_t groups = 1;
  bool transposed = false;
};
struct Folded {
  Tensor weight, bias;  // f32; bias [oc].
};

// affine(layer(x)): `affine` is over the output channels. The weights of a layer that is not transposed may be i8 codes
// around 0, with one scale or one for each output channel: then the scales change, one for each channel, and the codes'
// signs where a factor is negative.
Folded FoldAfter(const Layer& layer, const Affine& affine);
// A channel with a negative factor and the code -128, which has no negative; -1 where there is none.
int64_t ChannelThatNegates(const Layer& layer, const Affine& affine);
// layer(affine(x)), where padding does not matter: `affine` is over the input channels; the layer is not transposed.
// Where each output channel has one input, weights may be such codes, too, if factors are positive and nothing is
// shifted.
Folded FoldBefore(const Layer& layer, const Affine& affine);
// a(x) + factor * b(x) as one layer with a's kernel and groups, of which b has a multiple: b's first tap is a's
// `first_tap`.
Folded Sum(const Layer& a, const Layer& b, const std::vector<int64_t>& first_tap, double factor);
// The map itself as a depthwise convolution of one tap.
Folded Depthwise(const Affine& affine);

// Floats are finite, scales of codes are such as a type can have.
bool IsValid(const Folded& folded);

}  // namespace fuselage::conv_bn

#endif  // FUSELAGE_PASSES_CONV_BN_FOLD_H_
