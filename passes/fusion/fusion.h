// fusion: an op and what follows it become one node, so that the value between them never reaches memory.
//
//   relu(conv(x))      =>  conv(x; activation="relu")       CONV_RELU; every activation of activation.h likewise
//   add(conv(x), r)    =>  conv(x, residual r)              CONV_ADD, and then a relu behind it by CONV_RELU
//   relu(linear(x))    =>  linear(x; activation="relu")     LINEAR_RELU
//   relu(add(a, b))    =>  add(a, b; activation="relu")     ADD_RELU
//   add(matmul(a, b), c)  =>  gemm(a, b, c)                 MATMUL_ADD, c one value per column; then MATMUL_RELU
//   conv_transpose(x)  =>  depth_to_space(conv(x))                SUBPIXEL      (subpixel.h)
//   a chain of elementwise ops          =>  fused_elementwise       ELEMENTWISE   (elementwise.h)
//   a linear whose parts are read apart =>  a linear for each part  SPLIT_LINEAR  (split_linear.h)
//   linears or 1x1 convs of one input   =>  one, and a split        HORIZONTAL    (horizontal.h)
//
// Any op whose schema says `fusable_activation` takes a relu, also one behind views of its result. One that is not
// elementwise takes a clamp too, also behind the activation that it has, and, in f32, every other activation. The fused
// conv stands where the add stood and keeps the conv's name. Where both operands of the add are convolutions that could
// take it (the downsampling block of a ResNet), the one with the larger reduction (kernel area times input channels per
// group) takes it, for it costs more by itself; of equal ones the later in order.
//
// Declines: the value between is also read by another node or is a graph output; the module has a second call site; a
// quantize stands between the two; the residual would have to be broadcast; alpha is not 1; the conv has an activation
// already, and the next is no clamp, or a residual; an activation that is no clamp and that products or sums with
// numbers follow, with which it is a chain of elementwise ops, and on codes a table: unless nothing but such stands
// behind a conv2d's. All rules but the last two save memory traffic and cost nothing, so they pay on any machine.
// SPLIT_LINEAR and HORIZONTAL decline where they would not pay by the roofline of the machine's peaks; they change no
// code of an INT8 result.
//
// Numeric contract: 1e-6 of the largest output, for a residual is added before the convolution's sum is rounded to f32.
#ifndef FUSELAGE_PASSES_FUSION_FUSION_H_
#define FUSELAGE_PASSES_FUSION_FUSION_H_

#include "absl/strings/string_view.h"
#include "ir/base/activation.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/fusion/fusion.pb.h"

namespace fuselage::fusion {

// What `node` is as the last step of another op; none where it is no such step.
Activation ActivationOf(const ir::Node& node);

class Fusion : public passes::Pass {
 public:
  // `peaks` null: those of a typical machine.
  explicit Fusion(FusionOptions options, const passes::MachinePeaks* peaks = nullptr);

  absl::string_view name() const override { return "fusion"; }
  passes::NumericContract numeric_contract() const override { return {passes::NumericContract::kTolerance, 1e-6}; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
  // No relu remains behind an op that could take it in.
  absl::Status Ensures(const ir::Graph& graph) const override;

 private:
  FusionOptions options_;
  passes::MachinePeaks peaks_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::fusion

#endif  // FUSELAGE_PASSES_FUSION_FUSION_H_
