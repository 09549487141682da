// int8.linear_groups: i8 codes with a scale for each row times weights in groups, to the bits of its reference
// evaluation (ir/ops/int8/linear_groups). Weights stay in memory as they are: MXFP4 at 4.25 bits; i8 codes with a float
// scale for each group at 8 bits, or at 4 where all of them are in [-8, 7].
//
// One operand of vpdpbusd and vpmaddubsw is unsigned, so a weight becomes w + offset: a byte shuffle makes 2 w + 12, in
// [0, 24], of an E2M1 code and w + 8 of a code of four bits; i8 codes are packed as w + 128. offset * sum x, known for
// each row and group, is taken off again.
// Nothing saturates: a group's sum is at most 128 * 255 * 128, and four steps of vpmaddubsw, whose pairs are at most
// 2 * 24 * 128 = 6,144, stay within 16 bits. Bytes are multiplied there half by half, w + 128 = 16 h + l.
//
// Declines: groups of other than 32, 64 or 128; E8M0 scales whose half is no normal float; other scales that are not
// finite; a clamp other than ReLU.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "kernels/core/activate.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::linear_groups {

enum class Format { kMxfp4, kInt4, kInt8 };

constexpr int64_t kUnit = 32;  // Features of one step; a group is one unit, two or four.

// kMxfp4 where the codes are u8; kInt4 where they are i8 and all fit in four bits.
Format FormatOf(const Tensor& weight);

// What is added to each weight, twice each E2M1 number, so that it is not negative.
constexpr int OffsetOf(Format format) { return format == Format::kMxfp4 ? 12 : format == Format::kInt4 ? 8 : 128; }

// The weights, with the offset, that codes of four bits mean: those of MXFP4 and those of INT4.
constexpr int8_t kWeights[2][16] = {{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},
                                    {8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7}};

// K and N are padded to multiples of a group and of the variant's block.
struct Params {
  Format format = Format::kMxfp4;
  int64_t channels = 0, groups = 0;
  int64_t units = 1;       // Of a group.
  int64_t unit_bytes = 0;  // Of one channel.
  int64_t depth = 0;       // groups * units * kUnit
  // [N / block][groups][units] of [4][block][4] bytes with the codes of features k and k + 4 of each eight; kInt8: of
  // [8][block][4] bytes, with the offset.
  const uint8_t* weight = nullptr;
  const void* scale = nullptr;      // [N / block][groups][block]: uint8_t, E8M0 of w, or float.
  const float* bias = nullptr;      // [N]
  const int8_t* x = nullptr;        // [rows][depth]
  const int32_t* x_sums = nullptr;  // [rows][groups], offset * sum x.
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

}  // namespace fuselage::int8::linear_groups

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_
