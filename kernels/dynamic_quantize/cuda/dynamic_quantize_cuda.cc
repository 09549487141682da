#include "kernels/dynamic_quantize/cuda/dynamic_quantize_cuda.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/dynamic_quantize/dynamic_quantize.h"

namespace fuselage::dynamic_quantize::cuda {
namespace {

using ::fuselage::cuda::DeviceBuffer;

class DynamicQuantize final : public kernels::Kernel {
 public:
  DynamicQuantize(const kernels::KernelDesc& desc, DeviceBuffer places, const LaunchParams& params)
      : Kernel(desc), places_(std::move(places)), params_(params) {
    params_.offsets = static_cast<const int64_t*>(places_.data());
    params_.starts = params_.offsets + params_.groups;
    set_variant("cuda");
    set_weight_bytes(places_.bytes());
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const float*>(inputs[0].data);
    params.codes = static_cast<uint8_t*>(outputs[0].data);
    params.scales = static_cast<float*>(outputs[1].data);
    Launch(params, context.stream);
  }

  const DeviceBuffer places_;
  LaunchParams params_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  RETURN_IF_ERROR(dynamic_quantize::Create(desc).status());
  const Groups groups = GroupsOf(desc.input(0), desc.outputs[1]);
  if (groups.size() > std::numeric_limits<int32_t>::max()) {
    return absl::UnimplementedError(absl::StrCat(desc.op, ": ", groups.size(), " groups, wanted fewer than 2^31"));
  }
  LaunchParams params;
  params.groups = static_cast<int32_t>(groups.size());
  params.segments = static_cast<int32_t>(groups.segments.size());
  params.length = groups.length;
  std::vector<int64_t> places = groups.offsets;
  places.insert(places.end(), groups.segments.begin(), groups.segments.end());
  places.push_back(0);  // CUDA's allocator does not like nothing.
  ASSIGN_OR_RETURN(DeviceBuffer memory,
                   DeviceBuffer::Upload(places.data(), static_cast<int64_t>(places.size() * sizeof(int64_t)),
                                        absl::StrCat("the groups of ", desc.op)));
  return std::make_unique<DynamicQuantize>(desc, std::move(memory), params);
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register({"dynamic_quantize_symmetric", kernels::LayoutRule::kSame, Create});
}

}  // namespace fuselage::dynamic_quantize::cuda
