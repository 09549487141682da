#include <cstring>

#include "kernels/cuda/device.h"
#include "kernels/cuda/testing/testing.h"

namespace fuselage::cuda {
namespace {

// Device memory between guard bytes.
class Guarded {
 public:
  // `fill`: its bytes, where `data` is null.
  static absl::StatusOr<Guarded> Make(const void* data, int64_t bytes, uint8_t fill) {
    std::vector<uint8_t> image(bytes + 2 * kGuard, kGuardByte);
    if (data == nullptr || bytes == 0) {
      std::memset(image.data() + kGuard, fill, bytes);
    } else {
      std::memcpy(image.data() + kGuard, data, bytes);
    }
    Guarded result;
    result.bytes_ = bytes;
    ASSIGN_OR_RETURN(result.memory_, DeviceBuffer::Allocate(image.size(), "a test"));
    RETURN_IF_ERROR(result.memory_.Write(image.data(), "a test"));
    return result;
  }
  uint8_t* data() const { return static_cast<uint8_t*>(memory_.data()) + kGuard; }
  int64_t bytes() const { return bytes_; }

  // What is there now; Internal: the guards have changed.
  absl::StatusOr<Bytes> Download() const {
    std::vector<uint8_t> image(memory_.bytes());
    RETURN_IF_ERROR(
        ToStatus(cudaMemcpy(image.data(), memory_.data(), image.size(), cudaMemcpyDeviceToHost), "a test's download"));
    for (int i = 0; i < kGuard; ++i) {
      if (image[i] != kGuardByte || image[image.size() - 1 - i] != kGuardByte) {
        return absl::InternalError("wrote beyond its memory");
      }
    }
    return Bytes(image.begin() + kGuard, image.end() - kGuard);
  }

 private:
  static constexpr int kGuard = 256;  // A multiple of what kernels may take their operands to be aligned to.
  static constexpr uint8_t kGuardByte = 0xa5;

  DeviceBuffer memory_;
  int64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Bytes>> RunCudaKernel(const kernels::Kernel& kernel, const kernels::KernelDesc& desc,
                                                 absl::Span<const Tensor* const> inputs) {
  std::vector<Guarded> in_memory, out_memory;
  std::vector<kernels::ConstBuffer> in;
  for (const Tensor* input : inputs) {
    in.emplace_back();
    if (input == nullptr) continue;
    ASSIGN_OR_RETURN(Guarded copy, Guarded::Make(input->raw_data(), input->byte_size(), 0));
    in.back() = {copy.data(), copy.bytes()};
    in_memory.push_back(std::move(copy));
  }
  std::vector<kernels::Buffer> out;
  for (const TensorType& type : desc.outputs) {
    const int64_t bytes = kernels::PlacedBytes(type, out.empty() ? desc.output_placement : kernels::Placement());
    ASSIGN_OR_RETURN(Guarded output, Guarded::Make(nullptr, bytes, 0x3c));
    out.push_back({output.data(), output.bytes()});
    out_memory.push_back(std::move(output));
  }
  ASSIGN_OR_RETURN(const Guarded scratch, Guarded::Make(nullptr, kernel.scratch_bytes(), 0xc3));
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  context.scratch = {scratch.data(), scratch.bytes()};
  RETURN_IF_ERROR(kernel.Run(in, out, context));
  RETURN_IF_ERROR(ToStatus(cudaGetLastError(), kernel.variant()));
  RETURN_IF_ERROR(ToStatus(cudaDeviceSynchronize(), kernel.variant()));
  RETURN_IF_ERROR(scratch.Download().status());
  std::vector<Bytes> results;
  for (const Guarded& output : out_memory) {
    ASSIGN_OR_RETURN(Bytes bytes, output.Download());
    results.push_back(std::move(bytes));
  }
  return results;
}

}  // namespace fuselage::cuda
