// int8.linear_groups: i8 codes with a scale for each row times weights in groups, to the bits of its reference
// evaluation (ir/ops/int8/linear_groups). Weights stay in memory as they are: MXFP4 at 4.25 bits; i8 codes with a float
// scale for each group at 8 bits, or at 4 where those of each group are among sixteen that follow each other, as those
// of another quantizer are whose groups have zero points.
//
// One operand of vpdpbusd and vpmaddubsw is unsigned, so a weight w is multiplied as w - least: a byte shuffle makes
// 2 w + 12, in [0, 24], of an E2M1 code; i8 codes are packed without the least of their group, or that of all. A
// group's sum begins with least * sum x, which one instruction makes. Nothing saturates: a group's sum is at most 128 *
// 255 * 128, and four steps of vpmaddubsw, whose pairs are at most 2 * 24 * 128 = 6,144, stay within 16 bits. Bytes are
// multiplied there half by half, w + 128 = 16 h + l.
//
// Declines: groups of other than 32, 64 or 128; E8M0 scales whose half is no normal float; other scales that are not
// finite; a clamp other than ReLU.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "kernels/core/activate.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::linear_groups {

enum class Format { kMxfp4, kInt4, kInt8 };

constexpr int64_t kUnit = 32;  // Features of one step; a group is one unit, two or four.

// kMxfp4 where the codes are u8; kInt4 where they are i8, those of each group among sixteen that follow each other.
Format FormatOf(const Tensor& weight, int64_t group);

// The weight that is packed as 0, of MXFP4 twice the number; of kInt4 where groups have none of their own.
constexpr int LeastOf(Format format) { return format == Format::kMxfp4 ? -12 : format == Format::kInt4 ? -8 : -128; }

// Of kInt4, for each group of a channel [N, ceil(K / group)]; none where all are LeastOf(kInt4).
std::vector<int8_t> LeastOfGroups(const Tensor& weight, int64_t group);

// What codes of MXFP4 are multiplied as.
constexpr int8_t kMxfp4Weights[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

// A task's weights stay in the first cache while its rows pass: unpacked, so many features of a block.
constexpr int64_t kTaskRows = 64, kTaskChannels = 64, kChunk = 512;

// K and N are padded to multiples of a group and of the variant's block.
struct Params {
  Format format = Format::kMxfp4;
  int64_t channels = 0, groups = 0;
  int64_t units = 1;       // Of a group.
  int64_t unit_bytes = 0;  // Of one channel.
  int64_t depth = 0;       // groups * units * kUnit
  // [N / block][groups][units] of [4][block][4] bytes with the codes of features k and k + 4 of each eight; kInt8: of
  // [8][block][4] bytes. Codes are E2M1's, or without the least.
  const uint8_t* weight = nullptr;
  const void* scale = nullptr;    // [N / block][groups][block]: uint8_t, E8M0 of w, or float.
  const int8_t* least = nullptr;  // The same of kInt4, or null: LeastOf(format).
  const float* bias = nullptr;    // [N]
  int64_t rows = 0;
  const int8_t* x = nullptr;        // [rows][depth], of several rows with the variant's flip.
  const int32_t* x_sums = nullptr;  // [rows][groups], sum x as 16 bits, above them zeros.
  const float* x_scale = nullptr;   // [rows]
  float* y = nullptr;               // [rows][channels], before the activation.
};

// A part of the result, of kTaskRows rows at most. Channels begin at a multiple of the block and end at one or at the
// last channel.
struct Range {
  int64_t row_begin, row_end, channel_begin, channel_end;
};

using Function = void(const Params& params, const Range& range);

struct Variant {
  const char* name;
  kernels::Isa isa;
  int64_t block;
  uint8_t flip;  // Of several rows: codes are packed as x ^ flip.
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
