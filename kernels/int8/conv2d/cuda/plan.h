// Which kernels run a convolution, with what: everything about it but the device's memory. Plain C++, so that the tests
// run a plan on the host.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_PLAN_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/pool_window.h"
#include "kernels/cuda/device_properties.h"
#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/cuda/kernel_id.h"
#include "kernels/int8/conv2d/cuda/tiling.h"

namespace fuselage::int8::conv2d::cuda {

// What to use instead of the plan's own choice.
struct PlanOptions {
  std::optional<Family> family;  // kGemm, kStem, kPooledStem, kDepthwise or kDirect.
  std::optional<Tiling> tiling;  // Of a Gemm whose input is aligned.
  std::optional<int> segment;    // Of a PooledStem: pooled rows.
};

// As a Gemm.
GemmSize GemmSizeOf(const Geometry& g);

class Plan {
 public:
  // With the max pool `pool` of the result, unless that is null; the problem then has neither a residual nor a float
  // output. Unimplemented: too large; FailedPrecondition: options.family does not run it.
  static absl::StatusOr<Plan> Make(const Problem& problem, const kernels::PoolWindow* pool,
                                   const ::fuselage::cuda::DeviceProperties& device, const PlanOptions& options = {});

  // "cuda gemm 64x64 split 4"
  std::string name() const;
  // To be in device memory, at a multiple of kAlignment.
  absl::Span<const uint8_t> constants() const { return constants_; }
  int64_t scratch_bytes() const { return codes_bytes_ + sums_bytes_ + partial_bytes_; }
  // Tickets (see block.h) that its runs use, one after the other.
  int tickets() const { return tickets_; }

  struct Memory {
    const void* constants;  // The copy of constants().
    void* scratch;          // Of scratch_bytes().
    uint32_t* tickets;      // As many as tickets(), 0 before the first run.
  };
  // In order; operands and memory are missing.
  absl::Span<const Launch> launches() const { return launches_; }
  // With them.
  Launch Bind(const Launch& launch, const Arguments& arguments, const Memory& memory) const;

  static constexpr int64_t kAlignment = 256;

 private:
  // Offsets in constants_.
  struct Constants {
    int64_t weight = 0, pieces = 0, taps_inside = 0, bias = 0, multiplier = 0, float_bias = -1;
  };

  template <typename T>
  int64_t Append(const std::vector<T>& values);
  void AddConstants(const Problem& problem, const std::vector<int8_t>& weight);
  void AddConstants(const Problem& problem, const std::vector<int8_t>& weight, const std::vector<int32_t>& bias);
  // As Steps has it.
  std::vector<int8_t> GemmWeight(const Problem& problem, const TileSize& tile) const;
  void PlanGemm(const Problem& problem, const ::fuselage::cuda::DeviceProperties& device, const PlanOptions& options);
  void PlanStem(const Problem& problem);
  void PlanPooledStem(const Problem& problem, const PooledStemLayout& layout);
  void PlanDepthwise(const Problem& problem);
  void PlanDirect(const Problem& problem);
  void PlanPool();

  Params params_ = {};
  Constants offsets_;
  std::vector<uint8_t> constants_;
  // Scratch memory: the codes that a Pool takes, the sums that Finish takes, and those of splits.
  int64_t codes_bytes_ = 0, sums_bytes_ = 0, partial_bytes_ = 0;
  int tickets_ = 0;
  std::vector<Launch> launches_;
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_PLAN_H_
