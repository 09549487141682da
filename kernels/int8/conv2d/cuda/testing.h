// Plans of random convolutions, run on the host by the emulation of kernels/cuda.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TESTING_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TESTING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/int8/conv2d/cuda/plan.h"
#include "kernels/int8/conv2d/testing.h"

namespace fuselage::int8::conv2d::cuda {

absl::StatusOr<Plan> PlanOf(const Instance& instance, const PlanOptions& options,
                            const ::fuselage::cuda::DeviceProperties& device = ::fuselage::cuda::kH100);

// The output's bytes; Internal with what the emulation found.
absl::StatusOr<std::vector<uint8_t>> Emulate(const Plan& plan, const Instance& instance);

// By the CPU's kernel.
std::vector<uint8_t> OnCpu(const Instance& instance);

// Convolutions whose sizes, types and options all vary. `in_channels` 0: any.
Case RandomCase(uint64_t seed, int in_channels_multiple, bool groups);

// The layers of ResNet18 on 224x224 images, in order, without repetitions.
std::vector<Case> ResNet18(int batch);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TESTING_H_
