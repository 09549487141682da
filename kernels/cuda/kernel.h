// What the host's side of CUDA kernels shares.
#ifndef FUSELAGE_KERNELS_CUDA_KERNEL_H_
#define FUSELAGE_KERNELS_CUDA_KERNEL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/kernel.h"
#include "kernels/core/pool_window.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/device_properties.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/pool_window.h"

namespace fuselage::cuda {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t a, int64_t multiple) { return CeilDiv(a, multiple) * multiple; }

// One item a thread, and no more threads than the device holds at once. Unimplemented, with `what`: 2^31 items or more.
absl::StatusOr<Items> Spread(int64_t count, const DeviceProperties& device, absl::string_view what);

// Unimplemented: a window that counts to 2^30 or more.
absl::StatusOr<PoolWindow> NarrowWindow(const kernels::PoolWindow& window);

// Of floats, or of all codes of a type; without its data.
Output OutputOf(const TensorType& type);

// A kernel of one operand that is one call of `launch`. Params has members x and y, pointers to operand and result.
template <typename Params>
class UnaryLaunch final : public kernels::UnaryKernel {
 public:
  using Function = void(const Params& params, void* stream);

  UnaryLaunch(const kernels::KernelDesc& desc, const Params& params, Function* launch)
      : UnaryKernel(desc), params_(params), launch_(launch) {
    set_variant("cuda");
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    Params params = params_;
    params.x = static_cast<decltype(params.x)>(x);
    params.y = static_cast<decltype(params.y)>(y);
    launch_(params, context.stream);
  }

  const Params params_;
  Function* const launch_;
};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_KERNEL_H_
