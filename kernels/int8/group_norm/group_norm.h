// int8.group_norm and int8.instance_norm (ir/ops/int8/group_norm): codes normalized by the mean and the variance of
// their group. One pass adds up each channel's codes and their squares, which are exact whatever the order, and a
// second one multiplies, adds, activates and quantizes; both in parts, images' or pixels', for as many threads as there
// are.
//
// Declines (Unimplemented): what is not per-tensor codes, or has no elements; a weight or bias that a run computes.
#ifndef FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_H_
#define FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/group_norm/group_norm_params.h"

namespace fuselage::int8::group_norm {

// Codes of `channels` that lie one behind the other, pixel after pixel; i8 codes are u8 codes with `flip`.
struct Pixels {
  const uint8_t* x = nullptr;
  int64_t pixels = 0, channels = 1;
  uint8_t flip = 0;
  int32_t zero_point = 0;
};

// Adds to each channel's sums.
using AddFunction = void(const Pixels& pixels, Sums* sums);
// y[pixel][channel] = f(fma(q - z, gains[channel], offsets[channel])); f: null for none. y has room for whole vectors
// of kernels::kActivatedTogether.
using ScaleFunction = void(const Pixels& pixels, const float* gains, const float* offsets,
                           const ElementwiseInstruction* function, float* y);

struct Functions {
  AddFunction* add;
  ScaleFunction* scale;
};
struct Variant {
  const char* name;
  kernels::Isa isa;
  Functions functions;
};
absl::Span<const Variant> Variants();

// What a call is, whatever its layout: channels in groups of `group_channels`, of `pixels` each.
struct Form {
  int64_t images = 0, channels = 0, pixels = 1, group_channels = 1;
  bool channels_last = false;  // Otherwise each channel's pixels lie one behind the other.
  double eps = 0;
  std::vector<float> weight, bias;
  std::optional<ElementwiseInstruction> function;
};
absl::StatusOr<Form> FormOf(const kernels::KernelDesc& desc);

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(AddFunction, Add)
FUSELAGE_VARIANTS(ScaleFunction, Scale)

}  // namespace fuselage::int8::group_norm

#endif  // FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_H_
