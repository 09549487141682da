#include <cstdlib>
#include <utility>

#include "absl/strings/string_view.h"
#include "ir/base/status.h"
#include "kernels/register_all_cuda.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/cudart.h"

namespace fuselage::runtime::cuda {
namespace {

class CudartBackend final : public Backend {
 public:
  CudartBackend(std::unique_ptr<Api> api, std::unique_ptr<Device> device)
      : api_(std::move(api)), device_(std::move(device)) {
    kernels::RegisterAllCuda(kernels_);
  }
  Device& device() override { return *device_; }
  const kernels::KernelRegistry& kernels() const override { return kernels_; }

 private:
  const std::unique_ptr<Api> api_;
  const std::unique_ptr<Device> device_;
  kernels::KernelRegistry kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend() {
  std::unique_ptr<Api> api = MakeCudart();
  DeviceOptions options;
  const char* overlap = std::getenv("FUSELAGE_CUDA_OVERLAP");
  options.overlap_kernels = overlap == nullptr || absl::string_view(overlap) != "0";
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Device::Open(api.get(), options));
  return std::make_unique<CudartBackend>(std::move(api), std::move(device));
}

}  // namespace fuselage::runtime::cuda
