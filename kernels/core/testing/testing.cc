#include "kernels/core/testing/testing.h"

#include <cctype>
#include <cstring>
#include <thread>

#include "ir/base/check.h"

namespace fuselage::kernels {
namespace {

constexpr int kGuard = 128;
constexpr uint8_t kGuardByte = 0xa5;

}  // namespace

TensorType Codes(DType dtype, Shape shape, float scale, int32_t zero_point, Layout layout) {
  return {dtype, std::move(shape), PerTensor(scale, zero_point), layout};
}

TensorType Floats(Shape shape, Layout layout) { return {DType::kF32, std::move(shape), std::nullopt, layout}; }

GuardedMemory::GuardedMemory(int64_t bytes, int misalignment)
    : storage_(bytes + 2 * kGuard + 64 + misalignment, kGuardByte), bytes_(bytes) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
  data_ = storage_.data() + kGuard + (64 - start % 64) % 64 + misalignment;
}

void GuardedMemory::FillRandom(uint32_t seed) {
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < bytes_; ++i) {
    state = state * 1664525u + 1013904223u;
    data_[i] = static_cast<uint8_t>(state >> 24);
  }
}

bool GuardedMemory::guards_intact() const {
  for (const uint8_t* p = storage_.data(); p < data_; ++p) {
    if (*p != kGuardByte) return false;
  }
  for (const uint8_t* p = data_ + bytes_; p < storage_.data() + storage_.size(); ++p) {
    if (*p != kGuardByte) return false;
  }
  return true;
}

void TestThreads::For(int tasks, absl::FunctionRef<void(int task, int thread)> body) {
  const auto work = [&](int thread) {
    const int begin = static_cast<int>(int64_t{tasks} * thread / threads_);
    const int end = static_cast<int>(int64_t{tasks} * (thread + 1) / threads_);
    for (int task = begin; task < end; ++task) body(task, thread);
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread < threads_; ++thread) threads.emplace_back(work, thread);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<Tensor> RunKernel(const Kernel& kernel, absl::Span<const Tensor* const> inputs, Parallel* parallel) {
  Serial serial;
  std::vector<ConstBuffer> in;
  for (const Tensor* input : inputs) {
    in.push_back(input == nullptr ? ConstBuffer() : ConstBuffer{input->raw_data(), input->byte_size()});
  }
  Tensor result(kernel.outputs()[0]);
  GuardedMemory output(result.byte_size()), scratch(kernel.scratch_bytes());
  const RunContext context{parallel == nullptr ? &serial : parallel, {scratch.data(), scratch.size()}};
  RETURN_IF_ERROR(kernel.Run(in, {Buffer{output.data(), output.size()}}, context));
  if (!output.guards_intact()) return absl::InternalError("wrote beyond its output");
  if (!scratch.guards_intact()) return absl::InternalError("wrote beyond its scratch memory");
  if (output.size() > 0) std::memcpy(result.raw_data(), output.data(), output.size());
  return result;
}

int64_t Index(const TensorType& type, int64_t n, int64_t c, int64_t h, int64_t w) {
  const Shape& s = type.shape;
  FUSELAGE_CHECK(s.size() == 4);
  return type.layout == Layout::kNhwc ? ((n * s[2] + h) * s[3] + w) * s[1] + c : ((n * s[1] + c) * s[2] + h) * s[3] + w;
}

std::string TestName(absl::string_view text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  }
  return name;
}

}  // namespace fuselage::kernels
