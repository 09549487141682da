#include "kernels/int8/conv2d/cuda/testing.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ir/base/check.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/cuda/kernels.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

// Aligned as device memory is, with bytes around it that nobody may touch.
class Memory {
 public:
  explicit Memory(int64_t bytes, uint8_t fill = 0xa5) : bytes_(bytes), storage_(bytes + 3 * kAround, fill) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kAround;
    data_ = storage_.data() + kAround + (kAround - address % kAround) % kAround;
  }
  Memory(const void* data, int64_t bytes) : Memory(bytes) {
    if (bytes > 0) std::memcpy(data_, data, bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint8_t* data() { return bytes_ == 0 ? nullptr : data_; }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr int64_t kAround = 256;
  int64_t bytes_;
  std::vector<uint8_t> storage_;
  uint8_t* data_;
};

int64_t OutputBytes(const Instance& instance) {
  const Case& c = instance.shape;
  return int64_t{c.batch} * c.out_height() * c.out_width() * c.out_channels * ByteSize(c.output_type);
}

}  // namespace

absl::StatusOr<Plan> PlanOf(const Instance& instance, const PlanOptions& options,
                            const ::fuselage::cuda::DeviceProperties& device) {
  absl::StatusOr<Plan> plan = absl::UnknownError("");
  const auto kernel =
      CreateWith(instance.Desc(), [&](const Problem& problem) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
        plan = Plan::Make(problem, device, options);
        return absl::CancelledError("the plan is all that is wanted");
      });
  if (kernel.status().code() != absl::StatusCode::kCancelled) return kernel.status();
  return plan;
}

absl::StatusOr<std::vector<uint8_t>> Emulate(const Plan& plan, const Instance& instance) {
  Memory input(instance.input.data(), instance.input.size());
  Memory residual(instance.residual.data(), instance.residual.size());
  Memory constants(plan.constants().data(), plan.constants().size());
  Memory output(OutputBytes(instance)), scratch(plan.scratch_bytes());
  ::fuselage::cuda::Emulator emulator;
  emulator.AllowReads("input", input.data(), input.bytes());
  emulator.AllowReads("residual", residual.data(), residual.bytes());
  emulator.AllowReads("constants", constants.data(), constants.bytes());
  emulator.AllowWrites("output", output.data(), output.bytes());
  emulator.AllowWrites("scratch", scratch.data(), scratch.bytes());
  Arguments arguments;
  arguments.input = input.data();
  arguments.residual = residual.data();
  arguments.output = output.data();
  for (const Launch& launch : plan.launches()) {
    const Launch bound = plan.Bind(launch, arguments, constants.data(), scratch.data());
    WithKernel(bound.id,
               [&](auto kernel) { emulator.Launch<decltype(kernel)>(bound.grid, bound.shared_bytes, bound.params); });
  }
  if (!emulator.error().empty()) return absl::InternalError(emulator.error());
  return std::vector<uint8_t>(output.data(), output.data() + output.bytes());
}

std::vector<uint8_t> OnCpu(const Instance& instance) {
  kernels::KernelDesc desc = instance.Desc();
  desc.isa = kernels::BestIsa();
  const auto kernel = conv2d::Create(desc);
  FUSELAGE_CHECK(kernel.ok());
  Memory input(instance.input.data(), instance.input.size());
  Memory residual(instance.residual.data(), instance.residual.size());
  Memory output(OutputBytes(instance)), scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  context.scratch = {scratch.data(), scratch.bytes()};
  const absl::Status status = (*kernel)->Run({{input.data(), input.bytes()}, {residual.data(), residual.bytes()}},
                                             {{output.data(), output.bytes()}}, context);
  FUSELAGE_CHECK(status.ok());
  return std::vector<uint8_t>(output.data(), output.data() + output.bytes());
}

Case RandomCase(uint64_t seed, int in_channels_multiple, bool groups) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x1234567;
  const auto pick = [&](int count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % count);
  };
  const DType codes[] = {DType::kU8, DType::kI8};
  const auto zero_point = [&](DType dtype) {
    const int lo = dtype == DType::kU8 ? 0 : -128;
    const int choices[] = {lo, lo + 255, lo + 128, lo + 3};
    return choices[pick(4)];
  };
  Case c;
  c.batch = 1 + pick(3);
  c.groups = groups ? 2 + pick(3) : 1;
  c.in_channels = c.groups * in_channels_multiple * (1 + pick(in_channels_multiple >= 16 ? 6 : 20));
  const int channels[] = {1 + pick(150), 16 * (1 + pick(12)), 4 * (1 + pick(40)), 64 << pick(2)};
  c.out_channels = c.groups * (groups ? 1 + pick(20) : channels[pick(4)]);
  c.height = 1 + pick(14);
  c.width = 1 + pick(20);
  const int kernel_sizes[] = {1, 1, 2, 3, 3, 3, 5, 7};
  c.kernel_height = kernel_sizes[pick(8)];
  c.kernel_width = pick(3) == 0 ? kernel_sizes[pick(8)] : c.kernel_height;
  c.stride_y = 1 + pick(5) / 2;
  c.stride_x = pick(4) == 0 ? 1 + pick(3) : c.stride_y;
  c.dilation_y = 1 + pick(6) / 4;
  c.dilation_x = 1 + pick(6) / 4;
  c.height = std::max(c.height, c.dilation_y * (c.kernel_height - 1) + 1 - c.kernel_height);
  c.width = std::max(c.width, c.dilation_x * (c.kernel_width - 1) + 1 - c.kernel_width);
  c.top = pick(c.kernel_height + 1);
  c.left = pick(c.kernel_width + 1);
  c.bottom = std::max(pick(c.kernel_height + 1), c.dilation_y * (c.kernel_height - 1) + 1 - c.height - c.top);
  c.right = std::max(pick(c.kernel_width + 1), c.dilation_x * (c.kernel_width - 1) + 1 - c.width - c.left);
  c.relu = pick(2) == 0;
  c.per_channel = pick(4) != 0;
  const DType biases[] = {DType::kF32, DType::kI32, DType::kBool};
  c.bias = biases[pick(3)];
  c.input_type = codes[pick(2)];
  c.input_zero_point = zero_point(c.input_type);
  c.output_type = pick(6) == 0 ? DType::kF32 : codes[pick(2)];
  if (c.output_type != DType::kF32) {
    c.output_zero_point = zero_point(c.output_type);
    if (pick(3) == 0) {
      c.residual_type = codes[pick(2)];
      c.residual_zero_point = zero_point(*c.residual_type);
    }
  }
  const Fill fills[] = {Fill::kRandom, Fill::kRandom, Fill::kRandom, Fill::kSaturated, Fill::kAlternating};
  c.fill = fills[pick(5)];
  FUSELAGE_CHECK(c.valid());
  return c;
}

std::vector<Case> ResNet18(int batch) {
  std::vector<Case> result;
  const auto add = [&](int in, int size, int out, int kernel, int stride, bool relu, bool residual) {
    Case c;
    c.batch = batch;
    c.in_channels = in, c.height = c.width = size, c.out_channels = out;
    c.kernel_height = c.kernel_width = kernel;
    c.stride_y = c.stride_x = stride;
    c.top = c.left = c.bottom = c.right = kernel / 2;
    c.relu = relu;
    if (in == 3) c.input_zero_point = 114;
    if (residual) c.residual_type = DType::kU8;
    result.push_back(c);
  };
  add(3, 224, 64, 7, 2, true, false);
  int in = 64, size = 56;
  for (int out : {64, 128, 256, 512}) {
    if (in != out) {
      add(in, size, out, 3, 2, true, false);
      add(in, size, out, 1, 2, false, false);
      size /= 2;
    } else {
      add(in, size, out, 3, 1, true, false);
    }
    add(out, size, out, 3, 1, true, true);
    in = out;
  }
  return result;
}

}  // namespace fuselage::int8::conv2d::cuda
