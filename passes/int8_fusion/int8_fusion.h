// int8_fusion: after lower, neighbours that one kernel runs become one node.
//
//   int8.max_pool2d(int8.conv2d(x))                 =>  int8.conv2d_max_pool2d(x)        CONV2D_MAX_POOL2D
//   int8.linear(flatten(int8.global_avg_pool(x)))   =>  int8.global_avg_pool_linear(x)   GLOBAL_AVG_POOL_LINEAR
//   int8.quantize(layer_norm(add(x, r)))            =>  int8.layer_norm(x, residual r)   NORM_QUANTIZE (norms.h)
//   int8.quantize(div(sub(to(x, f32), m), s))       =>  int8.lookup(x)                   LOOKUP (lookups.h)
//   int8.mul(x, int8.sigmoid(x))                    =>  int8.lookup(x)                   LOOKUP
//
// An int8.avg_pool2d whose window is the whole image is a global one; flatten is any view that gives [N, C]. The fused
// node keeps name and readers of the later of the two, and the module path of the layer.
//
// Declines: a value between that another node reads too or that is a graph output; a layer whose module has a second
// call site, or that is no call_module; a convolution with a residual, or with weights that make it lose (see the
// options); whatever the kernel refuses. No code of any result changes, except a layer_norm's: the float one is
// oneDNN's, whose last bits depend on the instruction set.
#ifndef FUSELAGE_PASSES_INT8_FUSION_INT8_FUSION_H_
#define FUSELAGE_PASSES_INT8_FUSION_INT8_FUSION_H_

#include "absl/strings/string_view.h"
#include "kernels/core/registry.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/int8_fusion/int8_fusion.pb.h"

namespace fuselage::int8_fusion {

class Int8Fusion : public passes::Pass {
 public:
  // `kernels` null: Run fails.
  Int8Fusion(Int8FusionOptions options, const kernels::KernelRegistry* kernels);

  absl::string_view name() const override { return "int8_fusion"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
  // No pair remains that could be one node.
  absl::Status Ensures(const ir::Graph& graph) const override;

 private:
  Int8FusionOptions options_;
  const kernels::KernelRegistry* kernels_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::int8_fusion

#endif  // FUSELAGE_PASSES_INT8_FUSION_INT8_FUSION_H_
