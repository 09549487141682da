#include "kernels/movement/cuda/movement_cuda.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/kernel.h"
#include "kernels/movement/movement.h"

namespace fuselage::movement::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::Spread;

// A launch from and to offsets, in bytes, of an input and an output; the fill is no input.
struct BoundLaunch {
  LaunchParams params;
  int64_t from_offset = 0, to_offset = 0;
  int input = 0, output = 0;
};

// May the copy move `words` elements at once? Memory itself is 64-byte aligned.
bool Allows(const StridedCopy& copy, int64_t words) {
  const StridedCopy::Axis& row = copy.axes.back();
  bool allows = row.from == 1 && row.to == 1 && row.size % words == 0 && copy.from_offset % words == 0 &&
                copy.to_offset % words == 0;
  for (size_t i = 0; i + 1 < copy.axes.size(); ++i) {
    allows = allows && copy.axes[i].from % words == 0 && copy.axes[i].to % words == 0;
  }
  return allows;
}

absl::StatusOr<BoundLaunch> MakeLaunch(const StridedCopy& copy, int64_t element_bytes, const DeviceProperties& device) {
  if (copy.axes.size() > kMostAxes) {
    return absl::UnimplementedError(absl::StrCat(copy.axes.size(), " axes, wanted ", kMostAxes, " at most on CUDA"));
  }
  int64_t wide = 16 / element_bytes;  // Elements of a word.
  while (wide > 1 && !Allows(copy, wide)) wide /= 2;
  BoundLaunch launch;
  launch.from_offset = copy.from_offset * element_bytes;
  launch.to_offset = copy.to_offset * element_bytes;
  launch.input = copy.input;
  launch.output = copy.output;
  LaunchParams& params = launch.params;
  params.word_bytes = static_cast<int>(wide * element_bytes);
  params.axes = static_cast<int>(copy.axes.size());
  int64_t words = 1;
  for (int i = 0; i < params.axes; ++i) {
    const StridedCopy::Axis& axis = copy.axes[params.axes - 1 - i];
    const int64_t size = i == 0 ? axis.size / wide : axis.size;
    params.axis[i] = {static_cast<uint32_t>(size), i == 0 ? axis.from : axis.from / wide,
                      i == 0 ? axis.to : axis.to / wide};
    words *= size;
  }
  ASSIGN_OR_RETURN(params.items, Spread(words, device, "a copy"));
  return launch;
}

class MovementCuda final : public kernels::Kernel {
 public:
  MovementCuda(const kernels::KernelDesc& desc, DeviceBuffer fill, std::optional<BoundLaunch> fill_launch,
               std::vector<BoundLaunch> launches)
      : Kernel(desc), fill_(std::move(fill)), fill_launch_(std::move(fill_launch)), launches_(std::move(launches)) {
    set_variant("cuda copy");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    if (fill_launch_) Run(*fill_launch_, fill_.data(), outputs, context.stream);
    for (const BoundLaunch& launch : launches_) Run(launch, inputs[launch.input].data, outputs, context.stream);
  }

  static void Run(const BoundLaunch& launch, const void* from, absl::Span<const kernels::Buffer> outputs,
                  void* stream) {
    LaunchParams params = launch.params;
    params.from = static_cast<const uint8_t*>(from) + launch.from_offset;
    params.to = static_cast<uint8_t*>(outputs[launch.output].data) + launch.to_offset;
    Launch(params, stream);
  }

  const DeviceBuffer fill_;
  const std::optional<BoundLaunch> fill_launch_;
  const std::vector<BoundLaunch> launches_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(desc));
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  const int64_t element_bytes = ByteSize(desc.output().dtype);
  DeviceBuffer fill;
  std::optional<BoundLaunch> fill_launch;
  if (plan.fill) {
    ASSIGN_OR_RETURN(fill, DeviceBuffer::Upload(plan.fill->raw_data(), element_bytes, "the value of pad"));
    const StridedCopy everything{{{desc.output().num_elements(), 0, 1}}, 0, 0, 0, 0};
    ASSIGN_OR_RETURN(fill_launch, MakeLaunch(everything, element_bytes, device));
  }
  std::vector<BoundLaunch> launches;
  for (const StridedCopy& copy : plan.copies) {
    ASSIGN_OR_RETURN(BoundLaunch launch, MakeLaunch(copy, element_bytes, device));
    launches.push_back(launch);
  }
  return std::make_unique<MovementCuda>(desc, std::move(fill), std::move(fill_launch), std::move(launches));
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  kernels::KernelRegistry on_cpu;
  movement::Register(on_cpu);
  for (const kernels::KernelEntry* entry : on_cpu.Sorted()) {
    kernels::KernelEntry on_cuda = *entry;
    on_cuda.create = Create;
    registry.Register(std::move(on_cuda));
  }
}

}  // namespace fuselage::movement::cuda
