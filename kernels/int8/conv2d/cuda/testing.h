// Plans of random convolutions, run on the host by the emulation of kernels/cuda.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TESTING_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TESTING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/pool_window.h"
#include "kernels/int8/conv2d/cuda/plan.h"
#include "kernels/int8/conv2d/testing/testing.h"

namespace fuselage::int8::conv2d::cuda {

// int8.conv2d_max_pool2d of the instance. Sizes of `pool` that the convolution implies need not be there.
kernels::KernelDesc PooledDesc(const Instance& instance, const kernels::PoolWindow& pool);

// Of either op.
absl::StatusOr<Plan> PlanOf(const kernels::KernelDesc& desc, const PlanOptions& options,
                            const ::fuselage::cuda::DeviceProperties& device = ::fuselage::cuda::kH100);

// The output's bytes, of which there are `bytes`; Internal with what the emulation found, bank conflicts too.
// `copied_bytes`, unless null: what cp.async copied.
absl::StatusOr<std::vector<uint8_t>> Emulate(const Plan& plan, const Instance& instance, int64_t bytes,
                                             int64_t* copied_bytes = nullptr);

// By the CPU's kernel, and pooled by the definition unless `pool` is null.
std::vector<uint8_t> OnCpu(const Instance& instance, const kernels::PoolWindow* pool = nullptr);

// Convolutions whose sizes, types and options all vary.
Case RandomCase(uint64_t seed, int in_channels_multiple, bool groups);

// With so many splits, or as many as the tile wants.
Tiling TilingFor(const Case& c, int tile, int splits);

// One that a halo runs: stride 1, the output as large as the input.
Case RandomHaloCase(uint64_t seed);

Case WithGroups(Case c, int groups, int inputs, int outputs);  // Of each group.
// ResNeXt's and RegNet's groups, and others: whole ones in 32 channels, in a tile, in no tile; more inputs than
// outputs, and fewer; in pieces of 16, 8 and 1 bytes.
Case RandomGroupedCase(uint64_t seed);
// As many groups as channels, a multiple of 4.
Case RandomDepthwiseCase(uint64_t seed);

// Pools of the case's output.
kernels::PoolWindow SquarePool(const Case& c, int kernel, int stride, int padding);
kernels::PoolWindow RandomPool(uint64_t seed, const Case& c);

// A stem with its pool, for the kernel of so many rows of taps.
struct PooledStemCase {
  Case conv;
  kernels::PoolWindow pool;
};
PooledStemCase RandomPooledStem(uint64_t seed, int tap_rows);

// The layers of ResNet18 on 224x224 images, in order, without repetitions.
std::vector<Case> ResNet18(int batch);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TESTING_H_
