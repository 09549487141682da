// For tests: kernels that launch an op's reference evaluation on the fake device, and a backend of them.
#ifndef FUSELAGE_RUNTIME_CUDA_FAKE_KERNELS_H_
#define FUSELAGE_RUNTIME_CUDA_FAKE_KERNELS_H_

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "ir/op.h"
#include "kernels/core/registry.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/fake_api.h"

namespace fuselage::runtime::cuda {

// For all int8 ops, clamp, and in f16 alone to, conv2d, linear and pools. They count their launches, those that are
// captured included. `ops` and `launches` must outlive the kernels.
void RegisterFakeKernels(const ir::OpRegistry& ops, std::atomic<int>* launches, kernels::KernelRegistry& registry);

class FakeBackend final : public Backend {
 public:
  // `api` must outlive the backend.
  static absl::StatusOr<std::unique_ptr<FakeBackend>> Open(FakeApi* api);

  Device& device() override { return *device_; }
  const kernels::KernelRegistry& kernels() const override { return kernels_; }

 private:
  FakeBackend();

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  std::atomic<int> launches_ = 0;
  std::unique_ptr<Device> device_;
};

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_FAKE_KERNELS_H_
