// Int8Gemm: a matrix product of codes by cuBLASLt. The library, of 500 MB, is opened when the first one is made. In
// tests the emulation's takes its place (testing/emulated.cc).
#ifndef FUSELAGE_KERNELS_CUDA_INT8_GEMM_H_
#define FUSELAGE_KERNELS_CUDA_INT8_GEMM_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fuselage::cuda {

class Int8Gemm {
 public:
  // y[rows][columns] = x[rows][depth] * w[columns][depth]^T, i8 and i8 to i32.
  struct Size {
    int64_t rows, columns, depth;  // Columns and depth are multiples of 4, as cuBLASLt wants them.
  };
  static constexpr int kAlignment = 64;  // In bytes, for all pointers.

  // For the current device. Unavailable: no library, or one that does not start; NotFound: it has no algorithm.
  static absl::StatusOr<std::unique_ptr<Int8Gemm>> Create(const Size& size);
  virtual ~Int8Gemm() = default;

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // An error means that nothing was launched.
  virtual absl::Status Run(const int8_t* x, const int8_t* w, int32_t* y, void* workspace, void* stream) const = 0;

 protected:
  int64_t workspace_bytes_ = 0;
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_INT8_GEMM_H_
