// What kernels are tuned for. Needs no toolkit: plans are made, and tested, for devices that are not there.
#ifndef FUSELAGE_KERNELS_CUDA_DEVICE_PROPERTIES_H_
#define FUSELAGE_KERNELS_CUDA_DEVICE_PROPERTIES_H_

namespace fuselage::cuda {

struct DeviceProperties {
  int sm = 80;  // Compute capability times ten: 90 is sm_90.
  int multiprocessors = 1;
  int shared_bytes_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;  // The most that a kernel may opt in to.
  int threads_per_multiprocessor = 0;
};

// Published sizes of an NVIDIA H100 SXM and of an A100, for tests and for plans without a device.
constexpr DeviceProperties kH100 = {90, 132, 233472, 232448, 2048};
constexpr DeviceProperties kA100 = {80, 108, 167936, 166912, 2048};

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_DEVICE_PROPERTIES_H_
