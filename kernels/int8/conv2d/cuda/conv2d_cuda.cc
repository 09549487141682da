#include "kernels/int8/conv2d/cuda/conv2d_cuda.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/cuda/launch.h"
#include "kernels/int8/conv2d/cuda/pooled_conv.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::ToStatus;

constexpr char kPooledOp[] = "int8.conv2d_max_pool2d";

class Conv2dCuda : public kernels::Kernel {
 public:
  Conv2dCuda(const kernels::KernelDesc& desc, Plan plan, DeviceBuffer constants, DeviceBuffer tickets)
      : Kernel(desc), plan_(std::move(plan)), constants_(std::move(constants)), tickets_(std::move(tickets)) {
    set_variant(plan_.name());
    set_scratch_bytes(plan_.scratch_bytes());
    set_weight_bytes(constants_.bytes() + tickets_.bytes());
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    Arguments arguments;
    arguments.input = inputs[0].data;
    arguments.residual = inputs.size() > 1 ? inputs[1].data : nullptr;
    arguments.output = outputs[0].data;
    const Plan::Memory memory = {constants_.data(), context.scratch.data, static_cast<uint32_t*>(tickets_.data())};
    for (const Launch& launch : plan_.launches()) {
      LaunchKernel(plan_.Bind(launch, arguments, memory), static_cast<cudaStream_t>(context.stream));
    }
  }

  Plan plan_;
  DeviceBuffer constants_, tickets_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, const PlanOptions& options) {
  PooledConv parts;
  const bool pooled = desc.op == kPooledOp;
  if (pooled) {
    ASSIGN_OR_RETURN(parts, SplitPool(desc));
  }
  ASSIGN_OR_RETURN(const Problem problem, ProblemOf(pooled ? parts.conv : desc));
  if (!problem.epilogue.post.empty()) {
    return absl::UnimplementedError("post_scale behind an activation, on CUDA");
  }
  ASSIGN_OR_RETURN(const auto device, CurrentDevice());
  ASSIGN_OR_RETURN(Plan plan, Plan::Make(problem, pooled ? &parts.pool : nullptr, device, options));
  for (const Launch& launch : plan.launches()) {
    RETURN_IF_ERROR(ToStatus(PrepareKernel(launch.id, device.shared_bytes_per_block), plan.name()));
  }
  ASSIGN_OR_RETURN(DeviceBuffer constants, DeviceBuffer::Upload(plan.constants().data(), plan.constants().size(),
                                                                absl::StrCat("the weights of ", desc.op)));
  DeviceBuffer tickets;
  if (plan.tickets() > 0) {
    const std::vector<uint32_t> zeros(plan.tickets());
    const std::string what = absl::StrCat("the tickets of ", desc.op);
    ASSIGN_OR_RETURN(tickets, DeviceBuffer::Allocate(zeros.size() * sizeof(uint32_t), what));
    RETURN_IF_ERROR(tickets.Write(zeros.data(), what));
  }
  return std::make_unique<Conv2dCuda>(desc, std::move(plan), std::move(constants), std::move(tickets));
}

void RegisterCuda(kernels::KernelRegistry& registry) {
  kernels::KernelEntry entry;
  entry.op = "int8.conv2d";
  entry.layout = kernels::LayoutRule::kNhwc;
  entry.create = [](const kernels::KernelDesc& desc) { return Create(desc); };
  registry.Register(entry);
  entry.op = kPooledOp;
  registry.Register(std::move(entry));
}

}  // namespace fuselage::int8::conv2d::cuda
