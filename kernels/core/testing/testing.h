// What the tests and benchmarks of all kernels share.
#ifndef FUSELAGE_KERNELS_CORE_TESTING_TESTING_H_
#define FUSELAGE_KERNELS_CORE_TESTING_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/base/tensor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/parallel.h"

namespace fuselage::kernels {

// A type with per-tensor parameters.
TensorType Codes(DType dtype, Shape shape, float scale, int32_t zero_point, Layout layout = Layout::kRowMajor);
TensorType Floats(Shape shape, Layout layout = Layout::kRowMajor);

// Memory between guard bytes, at `misalignment` bytes after a 64-byte boundary.
class GuardedMemory {
 public:
  explicit GuardedMemory(int64_t bytes, int misalignment = 0);

  uint8_t* data() { return data_; }
  int64_t size() const { return bytes_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  void FillRandom(uint32_t seed);
  bool guards_intact() const;

 private:
  std::vector<uint8_t> storage_;
  uint8_t* data_;
  int64_t bytes_;
};

// A copy of an operand whose last cache line is the last of a readable page: whoever reads beyond it crashes. It lies as
// memory of a program does, at a 64-byte boundary.
class EdgeMemory {
 public:
  explicit EdgeMemory(ConstBuffer from);
  ~EdgeMemory();
  EdgeMemory(const EdgeMemory&) = delete;
  EdgeMemory& operator=(const EdgeMemory&) = delete;

  ConstBuffer buffer() const { return {data_, bytes_}; }

 private:
  uint8_t *pages_, *data_;
  int64_t bytes_, page_bytes_;
};

// Starts its threads anew in each For: slow, and visible to the thread sanitizer. Deals tasks out in turn, in each For
// beginning with another thread.
class TestThreads : public Parallel {
 public:
  explicit TestThreads(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override;

 private:
  int threads_, first_ = 0;
};

// Runs the kernel on the bytes of `inputs`, each in the layout of its type, and returns output 0 as bytes in its
// layout. Fails where the kernel writes beyond its output or its scratch memory, crashes where it reads beyond an input.
absl::StatusOr<Tensor> RunKernel(const Kernel& kernel, absl::Span<const Tensor* const> inputs,
                                 Parallel* parallel = nullptr);

// The same for operands that lie as `desc` says; `inputs` and the result are dense. What lies between the pixels of the
// inputs is random, around them it is their zero point. Also fails where the output's halo is not its zero point, or
// where the kernel writes between the pixels of an even() output.
absl::StatusOr<Tensor> RunPlacedKernel(const Kernel& kernel, const KernelDesc& desc,
                                       absl::Span<const Tensor* const> inputs, Parallel* parallel = nullptr);

// The index of logical element (n, c, h, w) in the memory of `type`.
int64_t Index(const TensorType& type, int64_t n, int64_t c, int64_t h, int64_t w);

// "u8 zp 3 -> i8": a name for parameterized tests keeps letters and digits only.
std::string TestName(absl::string_view text);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TESTING_TESTING_H_
