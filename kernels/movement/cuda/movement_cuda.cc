#include "kernels/movement/cuda/movement_cuda.h"

#include <array>
#include <cstring>
#include <memory>
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

constexpr int kWordBytes = 16;  // At most.

// A launch from and to offsets, in bytes, of an input (or the fill) and an output.
struct BoundLaunch {
  LaunchParams params;
  int64_t from_offset = 0, to_offset = 0;
  int input = 0, output = 0;
};

// May the copy move `words` elements at once? Memory itself is 64-byte aligned.
bool Allows(const StridedCopy& copy, int64_t words) {
  const StridedCopy::Axis& row = copy.axes.back();
  bool allows = row.from == (copy.input == StridedCopy::kFill ? 0 : 1) && row.to == 1 && row.size % words == 0 &&
                copy.from_offset % words == 0 && copy.to_offset % words == 0;
  for (size_t i = 0; i + 1 < copy.axes.size(); ++i) {
    allows = allows && copy.axes[i].from % words == 0 && copy.axes[i].to % words == 0;
  }
  return allows;
}

absl::StatusOr<BoundLaunch> MakeLaunch(const StridedCopy& copy, int64_t element_bytes, const DeviceProperties& device) {
  if (copy.axes.size() > kMostAxes) {
    return absl::UnimplementedError(absl::StrCat(copy.axes.size(), " axes, wanted ", kMostAxes, " at most on CUDA"));
  }
  int64_t wide = kWordBytes / element_bytes;  // Elements of a word.
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
  MovementCuda(const kernels::KernelDesc& desc, DeviceBuffer fill, std::vector<BoundLaunch> launches)
      : Kernel(desc), fill_(std::move(fill)), launches_(std::move(launches)) {
    set_variant("cuda copy");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    for (const BoundLaunch& launch : launches_) {
      const void* from = launch.input == StridedCopy::kFill ? fill_.data() : inputs[launch.input].data;
      Run(launch, from, outputs, context.stream);
    }
  }

  static void Run(const BoundLaunch& launch, const void* from, absl::Span<const kernels::Buffer> outputs,
                  void* stream) {
    LaunchParams params = launch.params;
    params.from = static_cast<const uint8_t*>(from) + launch.from_offset;
    params.to = static_cast<uint8_t*>(outputs[launch.output].data) + launch.to_offset;
    Launch(params, stream);
  }

  const DeviceBuffer fill_;  // A word of equal elements.
  const std::vector<BoundLaunch> launches_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(desc));
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  const int64_t element_bytes = ByteSize(desc.output().dtype);
  DeviceBuffer fill;
  if (plan.fill) {
    std::array<uint8_t, kWordBytes> word;
    for (size_t i = 0; i < word.size(); i += element_bytes) {
      std::memcpy(word.data() + i, plan.fill->raw_data(), element_bytes);
    }
    ASSIGN_OR_RETURN(fill, DeviceBuffer::Upload(word.data(), word.size(), "the value of the padding"));
  }
  std::vector<BoundLaunch> launches;
  for (const StridedCopy& copy : plan.copies) {
    ASSIGN_OR_RETURN(BoundLaunch launch, MakeLaunch(copy, element_bytes, device));
    launches.push_back(launch);
  }
  return std::make_unique<MovementCuda>(desc, std::move(fill), std::move(launches));
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
