// The emulation's device: host memory, and kernels on it.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "ir/base/check.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/int8_gemm.h"
#include "kernels/cuda/testing/emulated.h"
#include "kernels/cuda/testing/testing.h"

namespace fuselage::cuda {
namespace {

// What DeviceBuffers have, of all threads.
struct Blocks {
  std::mutex mutex;
  std::map<void*, int64_t> bytes;
};

Blocks& AllBlocks() {
  static auto* const blocks = new Blocks();
  return *blocks;
}

void FreeBlock(void* data) {
  const std::lock_guard<std::mutex> lock(AllBlocks().mutex);
  AllBlocks().bytes.erase(data);
  std::free(data);
}

class EmulatedGemm final : public Int8Gemm {
 public:
  explicit EmulatedGemm(const Size& size) : size_(size) { workspace_bytes_ = 1000; }
  absl::Status Run(const int8_t* x, const int8_t* w, int32_t* y, void* workspace, void*) const override {
    for (const void* pointer : std::initializer_list<const void*>{x, w, y, workspace}) {
      FUSELAGE_CHECK(reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0);
    }
    std::memset(workspace, 0xcd, workspace_bytes_);
    for (int64_t row = 0; row < size_.rows; ++row) {
      for (int64_t n = 0; n < size_.columns; ++n) {
        int32_t sum = 0;
        for (int64_t k = 0; k < size_.depth; ++k) sum += x[row * size_.depth + k] * w[n * size_.depth + k];
        y[row * size_.columns + n] = sum;
      }
    }
    return absl::OkStatus();
  }

 private:
  const Size size_;
};

}  // namespace

void AllowUploads(Emulator* emulator) {
  const std::lock_guard<std::mutex> lock(AllBlocks().mutex);
  for (const auto& [data, bytes] : AllBlocks().bytes) emulator->AllowConstants("uploaded memory", data, bytes);
}

int64_t DeviceBytes() {
  const std::lock_guard<std::mutex> lock(AllBlocks().mutex);
  int64_t sum = 0;
  for (const auto& [data, bytes] : AllBlocks().bytes) sum += bytes;
  return sum;
}

// One small multiprocessor, so that threads have several items.
absl::StatusOr<DeviceProperties> CurrentDevice() {
  DeviceProperties device = kH100;
  device.multiprocessors = 1;
  device.threads_per_multiprocessor = 512;
  return device;
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(int64_t bytes, absl::string_view) {
  DeviceBuffer buffer;
  buffer.data_.reset(std::aligned_alloc(256, (bytes + 255) / 256 * 256), FreeBlock);
  buffer.bytes_ = bytes;
  const std::lock_guard<std::mutex> lock(AllBlocks().mutex);
  AllBlocks().bytes[buffer.data_.get()] = bytes;
  return buffer;
}

absl::Status DeviceBuffer::Write(const void* data, absl::string_view) const {
  std::memcpy(data_.get(), data, bytes_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Int8Gemm>> Int8Gemm::Create(const Size& size) {
  FUSELAGE_CHECK(size.columns % 4 == 0 && size.depth % 4 == 0);
  return std::make_unique<EmulatedGemm>(size);
}

absl::StatusOr<std::vector<Bytes>> RunCudaKernel(const kernels::Kernel& kernel, const kernels::KernelDesc& desc,
                                                 absl::Span<const Tensor* const> inputs) {
  Emulator emulator;
  std::vector<std::unique_ptr<kernels::GuardedMemory>> memory;
  const auto make = [&memory](int64_t bytes) {
    memory.push_back(std::make_unique<kernels::GuardedMemory>(bytes));
    memory.back()->FillRandom(static_cast<uint32_t>(memory.size()));
    return memory.back().get();
  };
  std::vector<kernels::ConstBuffer> in;
  for (const Tensor* input : inputs) {
    in.emplace_back();
    if (input == nullptr) continue;
    kernels::GuardedMemory* copy = make(input->byte_size());
    if (copy->size() > 0) std::memcpy(copy->data(), input->raw_data(), copy->size());
    emulator.AllowReads("an input", copy->data(), copy->size());
    in.back() = {copy->data(), copy->size()};
  }
  std::vector<kernels::Buffer> out;
  for (const TensorType& type : desc.outputs) {
    kernels::GuardedMemory* output =
        make(kernels::PlacedBytes(type, out.empty() ? desc.output_placement : kernels::Placement()));
    emulator.AllowWrites("an output", output->data(), output->size());
    out.push_back({output->data(), output->size()});
  }
  kernels::GuardedMemory* scratch = make(kernel.scratch_bytes());
  emulator.AllowWrites("scratch memory", scratch->data(), scratch->size());
  AllowUploads(&emulator);
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  context.scratch = {scratch->data(), scratch->size()};
  context.stream = &emulator;
  RETURN_IF_ERROR(kernel.Run(in, out, context));
  if (!emulator.error().empty()) return absl::InternalError(emulator.error());
  if (emulator.matrix_conflicts() > 0) return absl::InternalError("ldmatrix meets a bank twice");
  for (const auto& part : memory) {
    if (!part->guards_intact()) return absl::InternalError("wrote beyond its memory");
  }
  std::vector<Bytes> results;
  for (const kernels::Buffer& buffer : out) {
    const auto* bytes = static_cast<const uint8_t*>(buffer.data);
    results.emplace_back(bytes, bytes + buffer.bytes);
  }
  return results;
}

}  // namespace fuselage::cuda
