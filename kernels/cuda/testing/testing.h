// Tests of CUDA kernels against the CPU's. The same test runs on a device or in the emulation, whichever is linked: see
// cuda_kernel in kernels/cuda/cuda_kernel.bzl.
#ifndef FUSELAGE_KERNELS_CUDA_TESTING_TESTING_H_
#define FUSELAGE_KERNELS_CUDA_TESTING_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/testing/reference.h"

namespace fuselage::cuda {

// Without a device: FUSELAGE_NO_GPU.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

// Runs a kernel on copies of `inputs`; null is an operand that is absent. Returns its outputs, the first as
// desc.output_placement says. Internal: what the emulation found, or guard bytes that changed.
using Bytes = std::vector<uint8_t>;
absl::StatusOr<std::vector<Bytes>> RunCudaKernel(const kernels::Kernel& kernel, const kernels::KernelDesc& desc,
                                                 absl::Span<const Tensor* const> inputs);

using RegisterFunction = void(kernels::KernelRegistry&);
using CreateFunction = absl::StatusOr<std::unique_ptr<kernels::Kernel>>(const kernels::KernelDesc&);

// The kernel that `f` registers for desc.op.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateRegistered(RegisterFunction* f, const kernels::KernelDesc& desc);

// `cuda`'s bytes are those of the CPU's scalar kernel.
void ExpectBytesOf(const std::function<CreateFunction>& cpu,
                   const absl::StatusOr<std::unique_ptr<kernels::Kernel>>& cuda, const kernels::KernelDesc& desc,
                   absl::Span<const Tensor* const> inputs);
// On seeded inputs, by the kernel that `cuda` registers.
void ExpectBytesOf(CreateFunction* cpu, RegisterFunction* cuda, const kernels::KernelDesc& desc, uint64_t seed = 1);

// For a call, by the kernels that are registered for its op.
void ExpectBytesOf(RegisterFunction* cpu, RegisterFunction* cuda, const kernels::OpCall& call);

// The lists of both devices agree in everything that lowering asks for.
void ExpectSameEntries(RegisterFunction* cpu, RegisterFunction* cuda);

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_TESTING_TESTING_H_
