#include "kernels/cuda/error_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace fuselage::cuda {

// The values of driver_types.h, which are part of CUDA's binary interface.
absl::Status ErrorStatus(int error, absl::string_view call, absl::string_view text) {
  const std::string message = absl::StrCat(call, ": ", text, " (", error, ")");
  switch (error) {
    case 2:  // cudaErrorMemoryAllocation
      return absl::ResourceExhaustedError(message);
    case 35:   // cudaErrorInsufficientDriver
    case 100:  // cudaErrorNoDevice
      return absl::UnavailableError(message);
    case 209:  // cudaErrorNoKernelImageForDevice
      return absl::UnimplementedError(message);
    case 4:    // cudaErrorCudartUnloading
    case 46:   // cudaErrorDevicesUnavailable
    case 214:  // cudaErrorECCUncorrectable
    case 220:  // cudaErrorNvlinkUncorrectable
    case 226:  // cudaErrorContained
    case 700:  // cudaErrorIllegalAddress
    case 702:  // cudaErrorLaunchTimeout
    case 709:  // cudaErrorContextIsDestroyed
    case 710:  // cudaErrorAssert
    case 714:  // cudaErrorHardwareStackError
    case 715:  // cudaErrorIllegalInstruction
    case 716:  // cudaErrorMisalignedAddress
    case 717:  // cudaErrorInvalidAddressSpace
    case 718:  // cudaErrorInvalidPc
    case 719:  // cudaErrorLaunchFailure
    case 911:  // cudaErrorExternalDevice
    case 999:  // cudaErrorUnknown
      return absl::DataLossError(absl::StrCat(message, "; the device is lost to this process"));
    default: return absl::InternalError(message);
  }
}

}  // namespace fuselage::cuda
