#include "kernels/int8/linear/cuda/linear_cuda.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/registry.h"
#include "kernels/cuda/int8_gemm.h"
#include "kernels/cuda/kernel.h"
#include "kernels/int8/linear/cuda/create.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::linear::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::DeviceProperties;
using ::fuselage::cuda::Int8Gemm;
using ::fuselage::cuda::RoundUp;
using ::fuselage::cuda::Spread;

constexpr int64_t kMostBlocks = 65535;  // In y, CUDA's limit.

class LinearCuda final : public kernels::Kernel {
 public:
  LinearCuda(const kernels::KernelDesc& desc, DeviceLayer layer, int64_t rows)
      : Kernel(desc), layer_(std::move(layer)) {
    params_.layer = layer_.layer;
    params_.rows = static_cast<int32_t>(rows);
    params_.x_is_signed = desc.input(0).dtype == DType::kI8;
    set_weight_bytes(layer_.memory.bytes());
  }

  void UseTiles(bool wide) {
    params_.wide = wide;
    set_variant(wide ? "cuda mma 64x32" : "cuda mma 16x8");
  }

  // The scratch memory has codes as i8, unless they are that, then sums, then cuBLASLt's workspace.
  absl::Status UseCublasLt(const DeviceProperties& device) {
    const Layer& layer = layer_.layer;
    ASSIGN_OR_RETURN(finish_.items, Spread(int64_t{params_.rows} * layer.channels, device, "linear"));
    ASSIGN_OR_RETURN(pack_.items, Spread(int64_t{params_.rows} * (layer.pitch / 16), device, "linear"));
    ASSIGN_OR_RETURN(gemm_, Int8Gemm::Create({params_.rows, layer.padded_channels, layer.pitch}));
    packs_ = !params_.x_is_signed || layer.depth != layer.pitch;
    pack_.depth = layer.depth;
    pack_.pitch = layer.pitch;
    pack_.flip = params_.x_is_signed ? 0 : 0x80;
    finish_.layer = layer;
    if (!params_.x_is_signed) finish_.layer.addend = layer_.moved_addend;
    const int64_t packed = packs_ ? int64_t{params_.rows} * layer.pitch : 0;
    const int64_t sums = int64_t{params_.rows} * layer.padded_channels * int64_t{sizeof(int32_t)};
    sums_offset_ = RoundUp(packed, Int8Gemm::kAlignment);
    workspace_offset_ = sums_offset_ + RoundUp(sums, Int8Gemm::kAlignment);
    set_scratch_bytes(workspace_offset_ + gemm_->workspace_bytes());
    set_variant("cuda cublasLt");
    return absl::OkStatus();
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    LaunchParams params = params_;
    params.x = static_cast<const uint8_t*>(inputs[0].data);
    params.y = outputs[0].data;
    if (inputs.size() > 1) params.layer.row_multiplier = static_cast<const float*>(inputs[1].data);
    if (gemm_ != nullptr && ComputeWithCublasLt(params.x, params.layer.row_multiplier, params.y, context).ok()) return;
    Launch(params, context.stream);
  }

  absl::Status ComputeWithCublasLt(const uint8_t* x, const float* row_multiplier, void* y,
                                   const kernels::RunContext& context) const {
    auto* scratch = static_cast<uint8_t*>(context.scratch.data);
    auto* sums = reinterpret_cast<int32_t*>(scratch + sums_offset_);
    if (packs_) {
      PackParams pack = pack_;
      pack.x = x;
      pack.y = scratch;
      LaunchPack(pack, context.stream);
    }
    RETURN_IF_ERROR(gemm_->Run(reinterpret_cast<const int8_t*>(packs_ ? scratch : x), layer_.layer.weight, sums,
                               scratch + workspace_offset_, context.stream));
    FinishParams finish = finish_;
    finish.layer.row_multiplier = row_multiplier;
    finish.sums = sums;
    finish.y = y;
    LaunchFinish(finish, context.stream);
    return absl::OkStatus();
  }

  const DeviceLayer layer_;
  LaunchParams params_;
  std::unique_ptr<Int8Gemm> gemm_;  // Null: our own product.
  bool packs_ = false;
  PackParams pack_;
  FinishParams finish_;
  int64_t sums_offset_ = 0, workspace_offset_ = 0;
};

// Arrays one after the other, each 256-byte aligned.
class Image {
 public:
  template <typename T>
  int64_t Add(const T* data, int64_t size) {
    const int64_t offset = static_cast<int64_t>(bytes_.size());
    bytes_.resize(RoundUp(offset + size * static_cast<int64_t>(sizeof(T)), 256));
    if (size > 0) std::memcpy(bytes_.data() + offset, data, size * sizeof(T));
    return offset;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(256);  // Never empty, which CUDA's allocator would not like.
};

}  // namespace

absl::StatusOr<DeviceLayer> DeviceLayer::Upload(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(kernels::Epilogue epilogue, CheckedEpilogue(desc));
  const Tensor& weight = *desc.ParameterOrNull("weight");
  const int64_t channels = weight.dim(0), depth = weight.dim(1);
  const int64_t padded_channels = RoundUp(channels, kChannelPadding), pitch = RoundUp(depth, kChunk);
  if (std::max(padded_channels, pitch) > std::numeric_limits<int32_t>::max()) {
    return absl::UnimplementedError(
        absl::StrCat("linear: weight ", ToString(weight.shape()), ", wanted sizes below 2^31 on CUDA"));
  }
  DeviceLayer result;
  Layer& layer = result.layer;
  layer.channels = static_cast<int32_t>(channels);
  layer.depth = static_cast<int32_t>(depth);
  layer.padded_channels = static_cast<int32_t>(padded_channels);
  layer.pitch = static_cast<int32_t>(pitch);
  layer.float_output = desc.output().dtype == DType::kF32;
  layer.relu = desc.GetString("activation") == "relu";
  layer.activated = epilogue.function.has_value();
  if (layer.activated) layer.function = *epilogue.function;
  layer.function_multiplier = epilogue.function_multiplier;
  layer.zero_point = epilogue.zero_point;
  layer.lo = epilogue.range.lo;
  layer.hi = epilogue.range.hi;

  std::vector<int8_t> rows(padded_channels * pitch);
  std::vector<int32_t>& addend = layer.float_output ? epilogue.offset : epilogue.bias;
  std::vector<float>& multiplier = layer.float_output ? epilogue.float_scale : epilogue.multiplier;
  addend.resize(padded_channels);
  multiplier.resize(padded_channels);
  epilogue.float_bias.resize(padded_channels);
  std::vector<int32_t> moved_addend = addend;
  for (int64_t n = 0; n < channels; ++n) {
    uint32_t sum = 0;  // Modulo 2^32, as the sums that it corrects.
    for (int64_t k = 0; k < depth; ++k) {
      const int8_t w = weight.data<int8_t>()[n * depth + k];
      rows[n * pitch + k] = w;
      sum += static_cast<uint32_t>(int32_t{w});
    }
    moved_addend[n] = static_cast<int32_t>(static_cast<uint32_t>(addend[n]) + 128u * sum);
  }
  Image image;
  const int64_t weight_at = image.Add(rows.data(), padded_channels * pitch);
  const int64_t addend_at = image.Add(addend.data(), padded_channels);
  const int64_t moved_addend_at = image.Add(moved_addend.data(), padded_channels);
  const int64_t multiplier_at = image.Add(multiplier.data(), padded_channels);
  const int64_t float_bias_at = image.Add(epilogue.float_bias.data(), padded_channels);
  ASSIGN_OR_RETURN(result.memory, DeviceBuffer::Upload(image.bytes().data(), image.bytes().size(),
                                                       absl::StrCat("the weights of ", desc.op)));
  const auto* memory = static_cast<const uint8_t*>(result.memory.data());
  layer.weight = reinterpret_cast<const int8_t*>(memory + weight_at);
  layer.addend = reinterpret_cast<const int32_t*>(memory + addend_at);
  layer.multiplier = reinterpret_cast<const float*>(memory + multiplier_at);
  layer.float_bias = reinterpret_cast<const float*>(memory + float_bias_at);
  result.moved_addend = reinterpret_cast<const int32_t*>(memory + moved_addend_at);
  return result;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc, const Options& options) {
  ASSIGN_OR_RETURN(const DeviceProperties device, CurrentDevice());
  ASSIGN_OR_RETURN(DeviceLayer layer, DeviceLayer::Upload(desc));
  const int64_t channels = layer.layer.channels, depth = layer.layer.depth;
  const int64_t rows = channels == 0 ? 0 : desc.output().num_elements() / channels;
  const bool fills = int64_t{RowBlocks(true, rows)} * ChannelBlocks(true, channels) >= int64_t{device.multiprocessors};
  const bool wide = options.wide.value_or(fills);
  if (rows > std::numeric_limits<int32_t>::max() || ChannelBlocks(wide, channels) > kMostBlocks) {
    return absl::UnimplementedError(absl::StrCat("linear: ", rows, " rows and ", channels,
                                                 " channels, wanted fewer than 2^31 and, on CUDA, 524280"));
  }
  auto kernel = std::make_unique<LinearCuda>(desc, std::move(layer), rows);
  kernel->UseTiles(wide);
  // Without the library, or where it has no algorithm, the tiles remain.
  if (rows * channels * depth >= options.cublaslt_macs) kernel->UseCublasLt(device).IgnoreError();
  return kernel;
}

void RegisterCuda(kernels::KernelRegistry& registry) {
  registry.Register(
      {"int8.linear", kernels::LayoutRule::kRowMajor, [](const kernels::KernelDesc& desc) { return Create(desc); }});
}

}  // namespace fuselage::int8::linear::cuda
