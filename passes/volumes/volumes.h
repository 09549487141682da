// volumes: a volume is a sequence of frames, and these are images: what convolves volumes becomes what convolves
// images, on whose kernels there is INT8, and all the rest.
//
//   conv3d(x)                  =>  volume(conv2d(stack_frames(images(x))))
//                                  volume(conv2d(sheet(x))), where its window is along the depth alone
//   conv_transpose3d(x)        =>  volume(conv_transpose2d(stack_frames(images(x)))), a frame's channels for each phase
//                                  along the depth (passes/fusion/subpixel.h)
//   max_pool3d(x), avg_pool3d  =>  volume(a pool of each image, then one along the depth)
//   global_avg_pool(x), group_norm, instance_norm  =>  the same of sheet(x)
//   f(volume(x))               =>  volume(f(x))      elementwise ops, batch norms, cat of channels, quantizes
//
//   images  [N, C, D, H, W] as [N*D, C, H, W]; stack_frames gives each of them its neighbours' channels or rows too
//   volume  back again
//   sheet   [N, C, D, H*W]; in NHWC its bytes are those of the images
//
// Between two convolutions nothing is left of the views. Begins at convolutions: where a network has none over volumes,
// nothing changes. It belongs behind fusion, so that FP32 keeps its convolutions over volumes, and before quantize.
//
// Declines: computed weights; weights with a scale for each tap; values without elements; groups with dilated rows;
// transposed convolutions with groups, or that subpixel.h declines. Whatever else reads a volume gets one.
//
// Numeric contract: 1e-5 of the largest output (a mean over windows is one of means).
#ifndef FUSELAGE_PASSES_VOLUMES_VOLUMES_H_
#define FUSELAGE_PASSES_VOLUMES_VOLUMES_H_

#include "absl/strings/string_view.h"
#include "passes/core/pass.h"
#include "passes/core/registry.h"

namespace fuselage::volumes {

class Volumes : public passes::Pass {
 public:
  absl::string_view name() const override { return "volumes"; }
  passes::NumericContract numeric_contract() const override { return {passes::NumericContract::kTolerance, 1e-5}; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::volumes

#endif  // FUSELAGE_PASSES_VOLUMES_VOLUMES_H_
