// normalize: one spelling for every operator, the one that the later passes match.
//
//   call_function or call_method op(x, weight, ...)  =>  call_module @path(x), for ops that have a module form
//   call_method op(x), call_function alias(x)        =>  call_function op(x), for the others
//   call_module of an op without module form         =>  call_function op(x)
//   a module without parameters called n times       =>  n modules, so that each call can change alone
//   gemm(a, constant b, constant c), addmm(c, a, b)  =>  linear(a), b transposed, alpha and beta folded in
//   matmul(x, constant [in, out])                    =>  linear(x)
//   matmul(a [..., m, 1], b [..., 1, n])             =>  mul(a, b)
//   linear(x, constant weight, computed bias)        =>  linear(x) + bias
//   add(linear(x), constant [out])                   =>  linear(x) with a bias; the weights and biases of norms too
//   instance_norm between reshapes to groups and back  =>  group_norm (groups.h)
//   mean over all spatial dimensions, avg_pool over the whole input  =>  global_avg_pool
//   view(linear(view(x)))                            =>  linear(x) of as many leading dimensions as x has
//   reshape that merges neighbouring dimensions      =>  flatten
//   getitem(split(x))                                =>  slice(x), but for a split of the batch
//   adaptive_avg_pool to 1; to sizes that divide     =>  global_avg_pool; avg_pool
//   clamp(x, 0, inf); relu6(x)                       =>  relu(x); clamp(x, 0, 6)
//   identity(x), dropout(x) in evaluation, x + 0, x * 1, where(true, x, y), a view of a view, or slice of a cat, that
//   gives x back                                     =>  x
//   permute(permute(x)), transposes too              =>  permute(x), or x
//   tokens of an image, an image of tokens (channels behind pixels, or in front, of several anchors too)
//                                                    =>  a permute of the image, and a view
//   conv1d(x), conv_transpose1d(x), and what is between them  =>  conv2d(x), ... of images of one row (one_row.h)
//   branches along an axis of their own, their products and their sum  =>  channels behind each other (branches.h)
//   linear(one_hot(i)), f(index_select(constant, i))  =>  index_select(constant, i)  (lookup.h)
//   conv2d(pad(x)), pools of pad(x)                  =>  conv2d(x) that pads itself (padding.h)
//   attention in products and a softmax, however scaled and masked  =>  scaled_dot_product_attention (attention.h,
//                                                    scores.h)
//   layer_norm, rms_norm, gelu, silu, hardswish, hardsigmoid, sigmoid, mish, softplus, softmax, leaky_relu and clamp,
//   written out in smaller ops                       =>  one op (patterns.h)
//   x * sigmoid(1.702 * x)                           =>  silu(x * 1.702) / 1.702
//   x / expand(y), x * expand(y)                     =>  x / y, x * y
//
// A constant is a get_attr, or quantize, dequantize and transpose over constants: dequantize(codes) becomes a parameter
// that keeps its codes, with the quantization parameters in its type, and u8 codes around 128 are i8 codes around 0.
// Tied weights stay tied: one parameter, several modules. A module's path is its weight's name without ".weight" where
// that is free, else the node's name.
//
// Declines: other computed weights and biases; adaptive pooling whose windows differ in size; gemm with a transposed
// `a` or with a bias that is not one value per column; arithmetic on integer tensors (shapes, indices), which is no
// layer; an in-place spelling ("relu_", "operator.iadd") where a later node reads what it overwrites; dropout in
// training mode; a pattern one of whose values is read elsewhere too, or whose constants are others.
//
// Numeric contract: 1e-5 of the largest output (folded alpha and beta round once more; a merged bias, and each value
// inside of a pattern, once less; the sum of -0 and 0 is -0).
#ifndef FUSELAGE_PASSES_NORMALIZE_NORMALIZE_H_
#define FUSELAGE_PASSES_NORMALIZE_NORMALIZE_H_

#include "absl/strings/string_view.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/normalize/normalize.pb.h"

namespace fuselage::normalize {

class Normalize : public passes::Pass {
 public:
  explicit Normalize(NormalizeOptions options) : options_(std::move(options)) {}

  absl::string_view name() const override { return "normalize"; }
  passes::NumericContract numeric_contract() const override { return {passes::NumericContract::kTolerance, 1e-5}; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
  // No function or method call remains whose op has a module form, but for those that this pass declines.
  absl::Status Ensures(const ir::Graph& graph) const override;

 private:
  NormalizeOptions options_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_NORMALIZE_H_
