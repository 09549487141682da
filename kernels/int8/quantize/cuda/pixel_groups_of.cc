#include "kernels/int8/quantize/cuda/pixel_groups_of.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/kernel.h"

namespace fuselage::int8::quantize::cuda {

using ::fuselage::cuda::CeilDiv;
using ::fuselage::cuda::MakeDivider;

absl::Status CheckPixelPlacement(const kernels::KernelDesc& desc) {
  const kernels::Placement& placement = desc.output_placement;
  const TensorType& y = desc.output();
  if (placement.dense()) return absl::OkStatus();
  if (y.rank() == 4 && placement.blocking == kernels::Blocking::kNone && placement.halo == 0 &&
      placement.pixel_bytes >= y.shape[1]) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(desc.op, " on CUDA: ", ToString(desc.input(0)), " to ", ToString(y),
                                               " with ", kernels::PlacementText(placement)));
}

absl::StatusOr<PixelGroups> PixelGroupsOf(const kernels::KernelDesc& desc, int64_t images, int64_t channels,
                                          int64_t pixels, const fuselage::cuda::DeviceProperties& device) {
  PixelGroups groups;
  groups.channels = channels;
  groups.pixels = pixels;
  groups.pixel_bytes =
      static_cast<int32_t>(desc.output_placement.dense() ? channels : desc.output_placement.pixel_bytes);
  const int64_t code_groups = CeilDiv(groups.pixel_bytes, 4), pixel_groups = CeilDiv(pixels, 4);
  ASSIGN_OR_RETURN(groups.items, fuselage::cuda::Spread(images * code_groups * pixel_groups, device, desc.op));
  if (groups.items.count == 0) return groups;
  groups.pixel_groups = static_cast<uint32_t>(pixel_groups);
  groups.code_groups = static_cast<uint32_t>(code_groups);
  groups.by_pixel_groups = MakeDivider(groups.pixel_groups);
  groups.by_code_groups = MakeDivider(groups.code_groups);
  return groups;
}

}  // namespace fuselage::int8::quantize::cuda
