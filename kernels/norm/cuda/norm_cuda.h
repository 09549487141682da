// Norms on CUDA devices: layer_norm, rms_norm, group_norm and instance_norm of floats, int8.layer_norm and
// int8.rms_norm (kernels/norm, kernels/int8/norm). Sixteen threads share a row, each with one of the sixteen sums that
// the arithmetic states; a row is loaded three times, by a cache but for the first.
//
// Declines what the CPU's kernels decline, and 2^31 elements or more. A row that is not finite has that as its scale,
// where the CPU's run is an error.
#ifndef FUSELAGE_KERNELS_NORM_CUDA_NORM_CUDA_H_
#define FUSELAGE_KERNELS_NORM_CUDA_NORM_CUDA_H_

#include <cstdint>
#include <limits>

#include "ir/base/elementwise_math.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::norm::cuda {

struct LaunchParams {
  int32_t rows = 0, columns = 1;
  bool centered = true;
  double eps = 0;
  int32_t inner = 1, parameters = 1;  // Element i of all has parameters at i / inner, modulo their number.
  const float *weight = nullptr, *bias = nullptr;
  bool activated = false;  // By a function, or else a clamp.
  ElementwiseInstruction function = {};
  float min = -std::numeric_limits<float>::infinity(), max = std::numeric_limits<float>::infinity();

  // Floats, to which `residual` is added and which `sum` keeps, where these are; or codes.
  const float *x = nullptr, *residual = nullptr;
  float* sum = nullptr;
  const uint8_t* codes = nullptr;
  uint8_t x_flip = 0;
  int32_t x_zero_point = 0;  // Of the unsigned form, as the result's.
  float x_scale = 1;

  // Floats; or codes, by a scale that is known, or by one for each row.
  float* y = nullptr;
  uint8_t* y_codes = nullptr;
  float* y_scales = nullptr;
  float y_scale = 1;
  uint8_t y_flip = 0;
  int32_t y_zero_point = 0, y_lo = 0, y_hi = 255;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::norm::cuda

#endif  // FUSELAGE_KERNELS_NORM_CUDA_NORM_CUDA_H_
