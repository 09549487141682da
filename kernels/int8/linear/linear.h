// int8.linear: y[m, n] = act(sum_k x[m, k] * w[n, k] + bias[n]) on codes, to codes or to f32 (see requantize.h).
//
// x: u8 or i8 [..., K], leading dimensions flatten to M. w: i8 [N, K], symmetric, per tensor or per axis 0.
// Or x: plain i8, and a second input, input_scale: f32 [..., 1], a scale for each row; then y is f32.
// Declines: what MakeEpilogue cannot prove.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/multiply/pairs.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/core/variant.h"

namespace fuselage::int8::linear {

// How a variant wants its operands. Both x and w are padded with zeros along K to a multiple of `step`, w also along N
// to a multiple of `block`.
//   w: [N / block][K / group][block][group] i8
//   x: [M][K], each code as i16; or, where x_bytes is 1, as u8, an i8 code as code + 128
//      with `tile_rows`: [M / tile_rows][K / step][tile_rows][step], where rows that do not exist hold anything
//      with `in_place`: as it is, i8 codes too
//   with `group_steps`: w's blocks are panels, whose steps it groups (kernels/core/multiply/pairs.h)
struct Packing {
  int block = 1, group = 1, step = 1;
  int x_bytes = 2;
  int tile_rows = 0;
  void (*group_steps)(const kernels::PairPanel& panel, uint8_t* weights) = nullptr;
  bool in_place = false;
};

// Arrays have an entry per channel, padded to a multiple of the packing's block.
struct Params {
  kernels::Pairs pairs = kernels::Pairs::kExceed;
  int64_t rows = 0, channels = 0, depth = 0;  // M; N; K, padded to a multiple of the packing's step.
  int64_t pitch = 0;  // K of the packed x and w: `depth`, or more, where the rest of x is zeros.
  const int8_t* weight = nullptr;
  int parts_of_step = 1;                  // Of panels of pairs.
  int64_t block_bytes = 0;                // From one block of it to the next.
  const int64_t* step_offsets = nullptr;  // [pitch / step], bytes: where the steps of a packed x's row are.
  // What is added to the accumulator: b32, or -z_x * sum w for a float output; less 128 * sum w where x is code + 128.
  const int32_t* addend = nullptr;
  const int32_t* row_addend = nullptr;    // [rows], added too; null: zeros.
  const float* multiplier = nullptr;      // m, or s_x * s_w[c].
  const float* row_multiplier = nullptr;  // [rows], of a float output: times multiplier; null: ones.
  bool float_output = false;
  const float* float_bias = nullptr;  // Added to a float output.
  bool relu = false;                  // Applied to a float output; for codes it is in `lo`.
  uint8_t flip = 0;                   // The output's; zero point and clamp are its unsigned form's (see UnsignedForm).
  int32_t zero_point = 0, lo = 0, hi = 255;
  // In front of the clamp, null: none. Then codes are those of function(v) * function_multiplier.
  const ElementwiseInstruction* function = nullptr;
  float function_multiplier = 1;
};

// A part of the result. Channels begin at a multiple of the block and end at one or at the last channel.
struct Range {
  int64_t row_begin, row_end, channel_begin, channel_end;
};

constexpr int64_t kPairTaskRows = 48;  // Of a call of avx2::RunPairs, at most.

// x: packed. y: [M, N], u8 or f32.
using Function = void(const Params& params, const void* x, void* y, const Range& range);

struct Variant {
  const char* name;
  kernels::Isa isa;
  bool (*accepts)(const Params&);
  Packing packing;
  int64_t task_rows;  // At most so many rows in one call.
  Function* run;
};

absl::Span<const Variant> Variants();  // The table of variants.h.
// Its rows that may run desc with the sets that desc.isa allows, whatever this CPU has.
std::vector<int> RowsFor(const kernels::KernelDesc& desc);
// Those that take any weight, as a product of two computed operands must.
absl::Span<const Variant> VariantsOfAnyWeight();
const Variant& VariantFor(kernels::Isa isa, int64_t rows);  // Of these.

// What int8.linear shares with int8.matmul (kernels/int8/matmul).
// Left: x [rows, features], u8 or i8, as the packing wants it; and whether x is so already.
bool IsPacked(const Packing& packing, DType type, int64_t features);
int64_t PackedRowsBytes(const Packing& packing, int64_t rows, int64_t features);
void PackRows(const Packing& packing, DType type, int64_t features, const void* x, void* packed, int64_t begin,
              int64_t end);
std::vector<int64_t> StepOffsets(const Packing& packing, int64_t depth);

// Fills what follows from the result's type and its activation.
void SetOutput(const TensorType& y, const Activation& activation, Params* params);

// What every variant computes with. Checks the description; errors are those of Create.
absl::StatusOr<kernels::Epilogue> CheckedEpilogue(const kernels::KernelDesc& desc);
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// The variant() of what Create would make, or its error.
absl::StatusOr<std::string> VariantName(const kernels::KernelDesc& desc);
// With this variant, whatever desc.isa says. For tests and benchmarks.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const kernels::KernelDesc& desc, const Variant& variant);

// What Register registers, with a table of variants of the caller's, which must outlive it.
kernels::KernelEntry EntryOf(absl::Span<const Variant> variants);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)
FUSELAGE_VARIANTS(Function, RunFewRows)
FUSELAGE_VARIANTS(Function, RunPairs)

}  // namespace fuselage::int8::linear

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_LINEAR_H_
