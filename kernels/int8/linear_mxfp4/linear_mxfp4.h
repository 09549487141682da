// int8.linear_mxfp4: i8 codes with a scale for each row times weights in MXFP4, to the bits of its reference evaluation
// (ir/ops/int8/linear_mxfp4).
//
// Weights stay at 4.25 bits in memory. A byte shuffle turns an E2M1 code into 2 w + 12, an integer in [0, 24]:
// unsigned, as vpdpbusd and vpmaddubsw want one operand; 12 * sum x, known for each row and group, is taken off again.
// Nothing saturates: a group's sum is at most 32 * 24 * 128 = 98,304, and four steps of vpmaddubsw, whose pairs are at
// most 2 * 24 * 128 = 6,144, stay within 16 bits.
//
// Declines: E8M0 scales whose half is no normal float; a clamp other than ReLU.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "kernels/core/activate.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::linear_mxfp4 {

constexpr int64_t kGroup = 32;  // Features that share a scale.
constexpr int kOffset = 12;     // 2 w + kOffset is not negative.

// 2 w + kOffset of each E2M1 code.
constexpr int8_t kWeights[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

// K and N are padded with codes 0 to multiples of kGroup and of the variant's block.
struct Params {
  int64_t channels = 0, groups = 0;
  // [N / block][groups][4][block][4]: a byte holds the codes of features k and k + 4, of each eight.
  const uint8_t* weight = nullptr;
  const uint8_t* scale = nullptr;   // [N / block][groups][block], E8M0 of w.
  const float* bias = nullptr;      // [N]
  const int8_t* x = nullptr;        // [rows][groups * kGroup]
  const int32_t* x_sums = nullptr;  // [rows][groups], kOffset * sum x.
  const float* x_scale = nullptr;   // [rows]
  float* y = nullptr;               // [rows][channels], before the activation.
};

// A part of the result. Channels begin at a multiple of the block and end at one or at the last channel.
struct Range {
  int64_t row_begin, row_end, channel_begin, channel_end;
};

using Function = void(const Params& params, const Range& range);

struct Variant {
  const char* name;
  kernels::Isa isa;
  int64_t block;
  Function* run;
  kernels::ActivateFunction* activate;  // Null: a value at a time.
};

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// With this variant, whatever desc.isa says. For tests and benchmarks.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const kernels::KernelDesc& desc, const Variant& variant);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::linear_mxfp4

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_H_
