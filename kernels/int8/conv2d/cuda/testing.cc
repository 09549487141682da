#include "kernels/int8/conv2d/cuda/testing.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ir/base/check.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/pooled_conv.h"

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

// The largest code of each window, from convolved ones.
std::vector<uint8_t> Pooled(const Case& c, const uint8_t* codes, const kernels::PoolWindow& pool) {
  const auto &height = pool.axes[0], &width = pool.axes[1];
  const int lowest = c.output_type == DType::kU8 ? 0 : -128;
  std::vector<uint8_t> result;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t out_y = 0; out_y < height.out; ++out_y) {
      for (int64_t out_x = 0; out_x < width.out; ++out_x) {
        for (int64_t channel = 0; channel < c.out_channels; ++channel) {
          int largest = lowest;
          for (int64_t tap_y = 0; tap_y < height.kernel; ++tap_y) {
            for (int64_t tap_x = 0; tap_x < width.kernel; ++tap_x) {
              const int64_t y = out_y * height.stride - height.pad_begin + tap_y * height.dilation;
              const int64_t x = out_x * width.stride - width.pad_begin + tap_x * width.dilation;
              if (y < 0 || y >= height.in || x < 0 || x >= width.in) continue;
              const uint8_t code = codes[((n * height.in + y) * width.in + x) * c.out_channels + channel];
              largest = std::max<int>(largest, c.output_type == DType::kU8 ? code : static_cast<int8_t>(code));
            }
          }
          result.push_back(static_cast<uint8_t>(largest));
        }
      }
    }
  }
  return result;
}

}  // namespace

kernels::KernelDesc PooledDesc(const Instance& instance, const kernels::PoolWindow& pool) {
  kernels::KernelDesc desc = instance.Desc();
  desc.op = "int8.conv2d_max_pool2d";
  desc.inputs.resize(1);
  const auto &y = pool.axes[0], &x = pool.axes[1];
  desc.attributes.emplace("pool_kernel_size", std::vector<int64_t>{y.kernel, x.kernel});
  desc.attributes.emplace("pool_stride", std::vector<int64_t>{y.stride, x.stride});
  desc.attributes.emplace("pool_padding", std::vector<int64_t>{y.pad_begin, x.pad_begin, y.pad_end, x.pad_end});
  desc.attributes.emplace("pool_dilation", std::vector<int64_t>{y.dilation, x.dilation});
  desc.attributes.emplace("pool_ceil_mode", false);
  desc.outputs[0].shape[2] = y.out;
  desc.outputs[0].shape[3] = x.out;
  return desc;
}

absl::StatusOr<Plan> PlanOf(const kernels::KernelDesc& desc, const PlanOptions& options,
                            const ::fuselage::cuda::DeviceProperties& device) {
  PooledConv parts;
  parts.conv = desc;
  const bool pooled = desc.op != "int8.conv2d";
  if (pooled) {
    ASSIGN_OR_RETURN(parts, SplitPool(desc));
  }
  ASSIGN_OR_RETURN(const Problem problem, ProblemOf(parts.conv));
  return Plan::Make(problem, pooled ? &parts.pool : nullptr, device, options);
}

absl::StatusOr<std::vector<uint8_t>> Emulate(const Plan& plan, const Instance& instance, int64_t bytes,
                                             int64_t* copied_bytes) {
  Memory input(instance.input.data(), instance.input.size());
  Memory residual(instance.residual.data(), instance.residual.size());
  Memory constants(plan.constants().data(), plan.constants().size());
  Memory output(bytes), scratch(plan.scratch_bytes());
  std::vector<uint32_t> tickets(plan.tickets());
  ::fuselage::cuda::Emulator emulator;
  emulator.AllowReads("input", input.data(), input.bytes());
  emulator.AllowReads("residual", residual.data(), residual.bytes());
  emulator.AllowConstants("constants", constants.data(), constants.bytes());
  emulator.AllowWrites("output", output.data(), output.bytes());
  emulator.AllowWrites("scratch", scratch.data(), scratch.bytes());
  emulator.AllowTickets("tickets", tickets.data(), plan.tickets());
  Arguments arguments;
  arguments.input = input.data();
  arguments.residual = residual.data();
  arguments.output = output.data();
  for (const Launch& launch : plan.launches()) {
    const Launch bound = plan.Bind(launch, arguments, {constants.data(), scratch.data(), tickets.data()});
    WithKernel(bound.id, [&](auto kernel) {
      emulator.Launch<decltype(kernel)>(bound.grid, bound.shared_bytes, bound.params, bound.clusters());
    });
  }
  if (!emulator.error().empty()) return absl::InternalError(emulator.error());
  if (emulator.matrix_conflicts() > 0) return absl::InternalError("ldmatrix meets a bank twice");
  // Pieces of eight bytes cannot be copied without conflicts, and a stem takes its pixels at any stride.
  const KernelId& id = plan.launches()[0].id;
  const bool free = id.family == Family::kPooledStem || (id.family == Family::kGemm && id.piece == 16);
  if (free && emulator.shared_conflicts() > 0) {
    return absl::InternalError("threads of a warp meet a bank twice");
  }
  if (copied_bytes != nullptr) *copied_bytes = emulator.copied_bytes();
  return std::vector<uint8_t>(output.data(), output.data() + output.bytes());
}

std::vector<uint8_t> OnCpu(const Instance& instance, const kernels::PoolWindow* pool) {
  kernels::KernelDesc desc = instance.Desc();
  desc.isa = kernels::BestIsa();
  const auto kernel = conv2d::Create(desc);
  FUSELAGE_CHECK(kernel.ok());
  Memory input(instance.input.data(), instance.input.size());
  Memory residual(instance.residual.data(), instance.residual.size());
  Memory output((*kernel)->outputs()[0].byte_size()), scratch((*kernel)->scratch_bytes());
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  context.scratch = {scratch.data(), scratch.bytes()};
  const absl::Status status = (*kernel)->Run({{input.data(), input.bytes()}, {residual.data(), residual.bytes()}},
                                             {{output.data(), output.bytes()}}, context);
  FUSELAGE_CHECK(status.ok());
  if (pool != nullptr) return Pooled(instance.shape, output.data(), *pool);
  return std::vector<uint8_t>(output.data(), output.data() + output.bytes());
}

Case RandomCase(uint64_t seed, int in_channels_multiple, bool groups) {
  Picker pick(seed);
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
  PickOperands(pick, &c);
  c.post = false;  // CUDA declines it.
  FUSELAGE_CHECK(c.valid());
  return c;
}

Tiling TilingFor(const Case& c, int tile, int splits) {
  if (kTiles[tile].halo) return {tile, 1};
  if (kTiles[tile].teams == 1) return {tile, splits};
  const int steps = GemmSizeOf(ProblemOf(Instance(c, 1).Desc())->geometry).steps;
  return {tile, NonEmptySplits(steps, std::max(splits, (steps + kMostShortSteps - 1) / kMostShortSteps))};
}

Case RandomHaloCase(uint64_t seed) {
  Case c = RandomCase(seed, 16, /*groups=*/false);
  Picker pick(seed);
  c.kernel_height = std::min(c.kernel_height, 5);
  c.kernel_width = std::max(std::min(c.kernel_width, 5), c.kernel_height == 1 ? 3 : 2);
  c.stride_y = c.stride_x = 1;
  const int around_y = (c.kernel_height - 1) * c.dilation_y, around_x = (c.kernel_width - 1) * c.dilation_x;
  c.top = pick(around_y + 1), c.bottom = around_y - c.top;
  c.left = pick(around_x + 1), c.right = around_x - c.left;
  FUSELAGE_CHECK(c.valid());
  return c;
}

Case WithGroups(Case c, int groups, int inputs, int outputs) {
  c.groups = groups;
  c.in_channels = groups * inputs;
  c.out_channels = groups * outputs;
  return c;
}

Case RandomGroupedCase(uint64_t seed) {
  constexpr int kShapes[][3] = {{32, 4, 4},    {16, 8, 8},  {11, 16, 16}, {4, 32, 32}, {3, 64, 64}, {4, 24, 24},
                                {2, 112, 112}, {5, 48, 48}, {7, 56, 56},  {16, 1, 1},  {80, 1, 2},  {16, 5, 3},
                                {8, 16, 4},    {6, 8, 40},  {13, 3, 3},   {9, 8, 8},   {2, 96, 17}, {16, 6, 6}};
  const int* s = kShapes[seed % (sizeof(kShapes) / sizeof(kShapes[0]))];
  return WithGroups(RandomCase(seed, 16, /*groups=*/false), s[0], s[1], s[2]);
}

Case RandomDepthwiseCase(uint64_t seed) {
  Case c = RandomCase(seed, 4, /*groups=*/false);
  c.groups = c.out_channels = c.in_channels;
  return c;
}

namespace {

// `kernel`, `stride`, `dilation` and the padding of the axis are there: what they make of the case's output.
void SetSizes(const Case& c, kernels::PoolWindow* window) {
  window->batch = c.batch;
  window->channels = c.out_channels;
  for (int i = 0; i < 2; ++i) {
    auto& axis = window->axes[i];
    axis.in = i == 0 ? c.out_height() : c.out_width();
    axis.pad_end = std::max<int64_t>(axis.pad_end, (axis.kernel - 1) * axis.dilation + 1 - axis.in - axis.pad_begin);
    axis.out = (axis.in + axis.pad_begin + axis.pad_end - (axis.kernel - 1) * axis.dilation - 1) / axis.stride + 1;
  }
}

}  // namespace

kernels::PoolWindow SquarePool(const Case& c, int kernel, int stride, int padding) {
  kernels::PoolWindow window;
  for (auto& axis : window.axes) axis = {0, 0, kernel, stride, /*dilation=*/1, padding, padding};
  SetSizes(c, &window);
  return window;
}

kernels::PoolWindow RandomPool(uint64_t seed, const Case& c) {
  Picker pick(seed);
  kernels::PoolWindow window;
  for (auto& axis : window.axes) {
    axis.kernel = 1 + pick(4);
    axis.stride = 1 + pick(3);
    axis.dilation = 1 + pick(5) / 4;
    axis.pad_begin = pick(static_cast<int>(axis.kernel));
    axis.pad_end = pick(static_cast<int>(axis.kernel));
  }
  SetSizes(c, &window);
  return window;
}

PooledStemCase RandomPooledStem(uint64_t seed, int tap_rows) {
  Picker pick(seed);
  PooledStemCase stem;
  Case& c = stem.conv;
  c = RandomCase(seed, 1, /*groups=*/false);
  c.residual_type.reset();
  c.activation = pick(2) == 0 ? Activation::Relu() : Activation();
  if (c.output_type == DType::kF32) c.output_type = DType::kU8;
  c.batch = 1 + pick(2);
  c.in_channels = 1 + pick(4);
  const int widths[] = {8 * (1 + pick(8)), 4 * (1 + pick(40)), 1 + pick(100)};
  c.width = widths[pick(3)];
  c.height = 1 + pick(40);
  c.kernel_height = tap_rows <= kFewTapRows ? 1 + pick(tap_rows) : kFewTapRows + 1 + pick(tap_rows - kFewTapRows);
  c.kernel_width = 1 + pick(8);
  c.stride_y = c.stride_x = 1 + pick(2);
  c.dilation_y = c.dilation_x = 1;
  c.top = pick(c.kernel_height), c.left = pick(c.kernel_width);
  c.bottom = std::max(pick(c.kernel_height), c.kernel_height - c.height - c.top);
  c.right = std::max(pick(c.kernel_width), c.kernel_width - c.width - c.left);
  FUSELAGE_CHECK(c.valid());
  for (auto& axis : stem.pool.axes) {
    axis.kernel = 2 + pick(2);
    axis.stride = 2;
    axis.dilation = 1;
    axis.pad_begin = pick(static_cast<int>(axis.kernel));
    axis.pad_end = pick(2);
  }
  SetSizes(c, &stem.pool);
  return stem;
}

std::vector<Case> ResNet18(int batch) {
  std::vector<Case> result;
  const auto add = [&](int in, int size, int out, int kernel, int stride, bool relu, bool residual) {
    Case c = SquareCase(in, size, out, kernel, stride);
    c.batch = batch;
    if (relu) c.activation = Activation::Relu();
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
