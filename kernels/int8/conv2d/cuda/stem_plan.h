// What plan.cc needs of stems: how they cut a convolution, and their weights.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_PLAN_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cuda/device_properties.h"
#include "kernels/int8/conv2d/core/problem.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/stem_layout.h"

namespace fuselage::int8::conv2d::cuda {

StemLayout StemLayoutOf(const Problem& problem);
std::vector<int8_t> StemWeight(const Problem& problem);

// Of the kernel that has as many rows of taps; 0: none has.
int TapRowsOf(const Geometry& g);

// With the max pool of `params`. Of segments of `rows` pooled rows, or of as many as the device is best used with; null
// where no PooledStem runs it.
std::optional<PooledStemLayout> PooledStemLayoutOf(const Problem& problem, const Params& params,
                                                   const ::fuselage::cuda::DeviceProperties& device,
                                                   std::optional<int> rows);
std::vector<int8_t> PooledStemWeight(const Problem& problem, const PooledStemLayout& layout);
// Less what the flip of the input adds.
std::vector<int32_t> PooledStemBias(const Problem& problem, const PooledStemLayout& layout);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_PLAN_H_
