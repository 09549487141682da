#include "kernels/int8/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/attention_shape.h"
#include "kernels/core/requantize.h"
#include "kernels/core/tiles.h"
#include "kernels/int8/attention/loops.h"
#include "kernels/int8/matmul/operands.h"

namespace fuselage::int8::attention {
namespace {

using kernels::AttentionShape;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;
using kernels::RunContext;
using matmul::Operands;

constexpr Variant kVariants[] = {
    {"scalar", kernels::Isa::kScalar, scalar::Weights, scalar::Finish, scalar::Scores, scalar::Mix, nullptr},
    {"avx2", kernels::Isa::kAvx2, avx2::Weights, avx2::Finish, avx2::Scores, avx2::Mix, nullptr},
    // What a few queries would gain has not been measured.
    {"avx512_vnni", kernels::Isa::kAvx512Vnni, avx512_vnni::Weights, avx512_vnni::Finish, nullptr, nullptr, nullptr},
    {"amx", kernels::Isa::kAmx, avx512_vnni::Weights, avx512_vnni::Finish, nullptr, nullptr, amx::Multiply},
};

enum Input { kQuery, kKey, kValue, kMask };

// A block's scores: half of a small second-level cache. No fewer rows than a tile of AMX has.
constexpr int64_t kMostScores = 1 << 16, kFewestRows = kernels::kTileRows;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
int64_t Blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

// int8.linear's packing, or, of products by tiles, the same of rows that are read where they lie.
linear::Packing PackingOf(const linear::Variant& products, const Variant& rows) {
  linear::Packing packing = products.packing;
  if (rows.multiply == nullptr) return packing;
  packing.tile_rows = 0;
  packing.in_place = true;
  return packing;
}

// Rows of codes times a packed matrix, to floats: sum * multiplier. Or by tiles, to sums.
class Product {
 public:
  struct Sizes {
    int64_t rows, depth, columns, stride;  // At most so many rows; entries between rows of the result.
  };
  Product(const linear::Variant& variant, MultiplyFunction* tiles, const linear::Packing& packing, const TensorType& a,
          const TensorType& b, const Sizes& sizes, float multiplier)
      : run_(variant.run),
        tiles_(tiles),
        packing_(packing),
        is_signed_(a.dtype == DType::kI8),
        operands_(packing, a, b, sizes.depth),
        sizes_(sizes),
        padded_columns_(RoundUp(sizes.columns, packing.block)),
        multiplier_(padded_columns_, multiplier),
        bias_(padded_columns_, 0),
        step_offsets_(linear::StepOffsets(packing, operands_.packed_depth())) {}

  const Operands& operands() const { return operands_; }
  int64_t left_bytes() const { return linear::PackedRowsBytes(packing_, sizes_.rows, sizes_.depth); }
  int64_t right_bytes() const { return padded_columns_ * operands_.packed_depth(); }
  int64_t columns() const { return padded_columns_; }
  int64_t stride() const { return sizes_.stride; }

  // Packs a matrix: `pack` is one of the operands' functions for a panel.
  template <typename Pack>
  void PackRight(Pack pack, const uint8_t* b, int8_t* packed, int32_t* addends) const {
    for (int64_t first = 0; first < sizes_.columns; first += packing_.block) {
      (operands_.*pack)(b, sizes_.columns, first, packed + first * operands_.packed_depth(), addends + first);
    }
  }

  struct Packed {
    const uint8_t* left;
    const int32_t* row_addends;
    const int8_t* right;
    const int32_t* column_addends;
    int64_t row_bytes;  // Of `left`, where tiles read it.
  };
  // The first `columns` columns of `rows` rows, or some more: whole panels where the stride has room for them. What is
  // behind the first `depth` of each row is zeros up to the next step, and is not read from there on.
  void Multiply(const Packed& packed, int64_t rows, int64_t columns, int64_t depth, float* y) const {
    const int64_t panels = RoundUp(columns, packing_.block), pitch = operands_.packed_depth();
    if (tiles_ != nullptr) {
      return tiles_({packed.left, rows, packed.row_bytes, is_signed_, step_offsets_.data(),
                     Blocks(depth, packing_.step), packed.right, pitch * packing_.block, panels / packing_.block,
                     reinterpret_cast<int32_t*>(y), sizes_.stride});
    }
    linear::Params params;
    params.rows = rows;
    params.channels = sizes_.stride;
    params.depth = RoundUp(depth, packing_.step);
    params.pitch = pitch;
    params.weight = packed.right;
    params.step_offsets = step_offsets_.data();
    params.addend = packed.column_addends;
    params.row_addend = packed.row_addends;
    params.multiplier = multiplier_.data();
    params.float_output = true;
    params.float_bias = bias_.data();
    run_(params, packed.left, y, {0, rows, 0, std::min(sizes_.stride, panels)});
  }

 private:
  linear::Function* const run_;
  MultiplyFunction* const tiles_;
  const linear::Packing packing_;
  const bool is_signed_;
  const Operands operands_;
  const Sizes sizes_;
  const int64_t padded_columns_;
  const std::vector<float> multiplier_, bias_;
  const std::vector<int64_t> step_offsets_;
};

class Attention final : public kernels::Kernel {
 public:
  Attention(const KernelDesc& desc, const AttentionShape& shape, const Multipliers& multipliers,
            const linear::Variant& products, const Variant& rows)
      : Kernel(desc),
        s_(shape),
        mask_(desc, shape),
        packing_(PackingOf(products, rows)),
        rows_(rows),
        by_tiles_(rows.multiply != nullptr),
        is_few_(rows.scores != nullptr && shape.rows <= kFewRows),
        query_type_(desc.input(kQuery)),
        key_type_(desc.input(kKey)),
        value_type_(desc.input(kValue)),
        score_multiplier_(multipliers.scores),
        softcap_(static_cast<float>(desc.GetFloat("softcap"))),
        value_multiplier_(multipliers.values),
        block_rows_(std::min(
            {s_.rows, products.task_rows, std::max(kFewestRows, kMostScores / s_.keys / kFewestRows * kFewestRows)})),
        memory_rows_(by_tiles_ ? RoundUp(block_rows_, kFewestRows) : block_rows_),
        stride_(RoundUp(s_.keys, kLanes)),
        weight_stride_(RoundUp(s_.keys, packing_.step)),
        scores_(products, rows.multiply, packing_, desc.input(kQuery), desc.input(kKey),
                {memory_rows_, s_.depth, s_.keys, stride_}, multipliers.scores),
        mixtures_(products, rows.multiply, packing_, {DType::kU8, {}, PerTensor(1), Layout::kRowMajor},
                  desc.input(kValue),
                  {memory_rows_, s_.keys, s_.width, by_tiles_ ? RoundUp(s_.width, kLanes) : s_.width}, 1) {
    const TensorType& y = desc.output();
    mixture_.width = s_.width;
    mixture_.stride = mixtures_.stride();
    mixture_.is_float = y.dtype == DType::kF32;
    if (!mixture_.is_float) {
      const kernels::UnsignedForm form = kernels::UnsignedFormOf(y);
      mixture_.zero_point = form.zero_point;
      mixture_.flip = form.flip;
    }
    row_bytes_ = s_.width * ByteSize(y.dtype);
    // Several parts of a head where there are fewer heads than threads can share; each packs the keys for itself.
    const int64_t blocks = Blocks(s_.rows, block_rows_);
    if (desc.threads > 1) parts_ = std::clamp<int64_t>(Blocks(4 * desc.threads, s_.groups), 1, blocks);
    thread_bytes_ = Take(nullptr).bytes;
    set_scratch_bytes(std::max(desc.threads, 1) * thread_bytes_);
    set_variant(is_few_ ? absl::StrCat(rows.name, " few") : products.name);
  }

 private:
  // A thread's share of the scratch memory.
  struct Scratch {
    int8_t *keys, *values;
    int32_t *key_addends, *value_addends;
    uint8_t* left;  // Queries, and later weights, packed; a few queries less their zero point.
    int32_t* row_addends;
    float* scores;     // [rows, stride_]
    uint8_t* weights;  // [rows, weight_stride_], and room for a last row's kLanes.
    int32_t* weight_sums;
    float *sums, *multipliers;  // [rows, width], [rows]
    float* masks;               // [rows, keys], where they are not floats.
    const float** row_masks;
    int64_t* keys_of;  // [rows]
    int64_t bytes;
  };
  Scratch Take(uint8_t* at) const {
    Scratch scratch{};
    const auto take = [&](auto*& area, int64_t count) {
      if (at != nullptr) area = reinterpret_cast<std::remove_reference_t<decltype(area)>>(at + scratch.bytes);
      scratch.bytes += RoundUp(count * static_cast<int64_t>(sizeof(*area)), 64);
    };
    if (is_few_) {
      take(scratch.left, s_.rows * s_.depth * static_cast<int64_t>(sizeof(int16_t)));
    } else {
      take(scratch.keys, scores_.right_bytes());
      take(scratch.values, mixtures_.right_bytes());
      take(scratch.key_addends, scores_.columns());
      take(scratch.value_addends, mixtures_.columns());
      take(scratch.left, std::max(scores_.left_bytes(), mixtures_.left_bytes()));
    }
    take(scratch.row_addends, block_rows_);
    take(scratch.scores, memory_rows_ * stride_);
    take(scratch.weights, memory_rows_ * weight_stride_ + kLanes);
    take(scratch.weight_sums, block_rows_);
    take(scratch.sums, memory_rows_ * mixtures_.stride());
    take(scratch.multipliers, block_rows_);
    take(scratch.masks, block_rows_ * mask_.floats());
    take(scratch.row_masks, block_rows_);
    take(scratch.keys_of, block_rows_);
    return scratch;
  }

  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const RunContext& context) const override {
    const auto input = [&](size_t i) {
      return static_cast<const uint8_t*>(i < inputs.size() ? inputs[i].data : nullptr);
    };
    uint8_t* y = static_cast<uint8_t*>(outputs[0].data);
    context.parallel->For(static_cast<int>(s_.groups * parts_), [&](int task, int thread) {
      const Scratch scratch = Take(static_cast<uint8_t*>(context.scratch.data) + thread * thread_bytes_);
      const int64_t group = task / parts_, part = task % parts_, blocks = Blocks(s_.rows, block_rows_);
      const Head head = {input(kKey) + group * s_.keys * s_.depth, input(kValue) + group * s_.keys * s_.width};
      if (!is_few_) {
        scores_.PackRight(&Operands::PackTransposed, head.keys, scratch.keys, scratch.key_addends);
        mixtures_.PackRight(&Operands::PackRight, head.values, scratch.values, scratch.value_addends);
      }
      for (int64_t block = blocks * part / parts_; block < blocks * (part + 1) / parts_; ++block) {
        const int64_t first = block * block_rows_, row = group * s_.rows + first;
        ComputeBlock(head, input(kQuery) + row * s_.depth, input(kMask), row, std::min(block_rows_, s_.rows - first),
                     scratch, y + row * row_bytes_);
      }
    });
  }

  // The codes of one head's keys and values.
  struct Head {
    const uint8_t *keys, *values;
  };

  // Of a few queries, from keys as they lie.
  void FewRowScores(const Head& head, const uint8_t* queries, int64_t rows, int64_t keys,
                    const Scratch& scratch) const {
    int16_t* const centered = reinterpret_cast<int16_t*>(scratch.left);
    const int32_t zero_point = query_type_.quant->zero_point();
    const bool is_signed = query_type_.dtype == DType::kI8;
    for (int64_t row = 0; row < rows; ++row) {
      int32_t sum = 0;
      for (int64_t i = row * s_.depth; i < (row + 1) * s_.depth; ++i) {
        const int32_t code = is_signed ? static_cast<int8_t>(queries[i]) : queries[i];
        centered[i] = static_cast<int16_t>(code - zero_point);
        sum += centered[i];
      }
      scratch.row_addends[row] = -key_type_.quant->zero_point() * sum;
    }
    rows_.scores({rows, keys, s_.depth, centered, scratch.row_addends, head.keys, key_type_.dtype == DType::kI8,
                  score_multiplier_, scratch.scores, stride_});
  }

  // Of a few queries, from values as they lie.
  void FewRowMixtures(const Head& head, int64_t rows, int64_t keys, const Scratch& scratch) const {
    for (int64_t row = 0; row < rows; ++row) {
      scratch.row_addends[row] = -value_type_.quant->zero_point() * scratch.weight_sums[row];
    }
    rows_.mix({rows, keys, s_.width, scratch.weights, weight_stride_, scratch.row_addends, head.values,
               value_type_.dtype == DType::kI8, scratch.sums});
  }

  void PackedMixtures(int64_t rows, int64_t keys, const Scratch& scratch) const {
    for (int64_t i = 0; i < rows; ++i) scratch.row_addends[i] = mixtures_.operands().RowAddend(scratch.weight_sums[i]);
    const uint8_t* left = scratch.weights;
    if (!linear::IsPacked(packing_, DType::kU8, weight_stride_)) {
      linear::PackRows(packing_, DType::kU8, weight_stride_, scratch.weights, scratch.left, 0, rows);
      left = scratch.left;
    }
    mixtures_.Multiply({left, scratch.row_addends, scratch.values, scratch.value_addends, weight_stride_}, rows,
                       s_.width, keys, scratch.sums);
  }

  // Rows [row, row + rows) of all groups' side by side.
  void ComputeBlock(const Head& head, const uint8_t* queries, const void* mask, int64_t row, int64_t rows,
                    const Scratch& scratch, uint8_t* y) const {
    const int64_t keys = s_.MostKeys(row, rows);
    if (is_few_) {
      FewRowScores(head, queries, rows, keys, scratch);
    } else {
      const uint8_t* left = scores_.operands().PackLeft(queries, rows, scratch.left, scratch.row_addends);
      // Tiles read beyond the rows, and beyond the last ones in a copy.
      const int64_t read = RoundUp(rows, kFewestRows) * s_.depth + scores_.operands().packed_depth() - s_.depth;
      if (by_tiles_ && read > (s_.groups * s_.rows - row) * s_.depth) {
        std::memcpy(scratch.left, left, rows * s_.depth);
        left = scratch.left;
      }
      scores_.Multiply({left, scratch.row_addends, scratch.keys, scratch.key_addends, s_.depth}, rows, keys,
                       s_.depth, scratch.scores);
    }
    for (int64_t i = 0; i < rows; ++i) scratch.keys_of[i] = s_.KeysOf(row + i);
    mask_.Rows(mask, row, rows, scratch.masks, scratch.row_masks);
    rows_.weights({rows, scratch.scores, stride_, by_tiles_ ? scratch.key_addends : nullptr, scratch.row_addends,
                   score_multiplier_, scratch.keys_of, scratch.row_masks, softcap_, scratch.weights, weight_stride_,
                   scratch.weight_sums});
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t sum = scratch.weight_sums[i];
      scratch.multipliers[i] = sum == 0 ? 0.0f : value_multiplier_ / static_cast<float>(sum);
    }
    is_few_ ? FewRowMixtures(head, rows, keys, scratch) : PackedMixtures(rows, keys, scratch);
    Mixtures mixtures = mixture_;
    mixtures.rows = rows;
    mixtures.sums = scratch.sums;
    if (by_tiles_) mixtures.row_addends = scratch.row_addends;
    mixtures.multipliers = scratch.multipliers;
    mixtures.y = y;
    rows_.finish(mixtures);
  }

  const AttentionShape s_;
  const kernels::AttentionMask mask_;
  const linear::Packing packing_;
  const Variant rows_;
  const bool by_tiles_, is_few_;
  const TensorType query_type_, key_type_, value_type_;
  const float score_multiplier_, softcap_, value_multiplier_;
  const int64_t block_rows_, memory_rows_;  // Of a block; and so many up to whole tiles.
  const int64_t stride_, weight_stride_;
  const Product scores_, mixtures_;
  Mixtures mixture_ = {};  // What all blocks' have in common.
  int64_t row_bytes_ = 0;  // Of the result.
  int64_t parts_ = 1;      // Tasks for each group.
  int64_t thread_bytes_ = 0;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Multipliers> MultipliersOf(const KernelDesc& desc) {
  const TensorType& y = desc.output();
  const auto scale = [&](int i) { return desc.input(i).quant->scale(); };
  Multipliers multipliers;
  multipliers.scores = scale(kQuery) * scale(kKey) * static_cast<float>(desc.GetFloat("scale"));
  multipliers.values = y.dtype == DType::kF32 ? scale(kValue) : scale(kValue) / y.quant->scale();
  for (const float multiplier : {multipliers.scores, multipliers.values}) {
    if (std::isnormal(multiplier)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("attention: a multiplier is ", ShortestText(multiplier), ", wanted a normal float"));
  }
  return multipliers;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const linear::Variant& products,
                                                               const Variant& rows) {
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(kQuery), "query"));
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(kKey), "key"));
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(kValue), "value"));
  if (desc.output().dtype != DType::kF32) RETURN_IF_ERROR(kernels::CheckCodes(desc.output(), "output"));
  ASSIGN_OR_RETURN(const AttentionShape shape, kernels::AttentionShapeOf(desc));
  if (shape.depth == 0 || shape.width == 0) return absl::UnimplementedError("attention: no elements");
  if (std::max(shape.depth, shape.keys) > matmul::kMostDepth) {
    return absl::FailedPreconditionError(absl::StrCat("attention: sums of ", std::max(shape.depth, shape.keys),
                                                      " products may overflow 32 bits, wanted at most ",
                                                      matmul::kMostDepth));
  }
  ASSIGN_OR_RETURN(const Multipliers multipliers, MultipliersOf(desc));
  return std::make_unique<Attention>(desc, shape, multipliers, products, rows);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const AttentionShape shape, kernels::AttentionShapeOf(desc));
  const linear::Variant& products = linear::VariantFor(desc.isa, shape.rows);
  return attention::CreateVariant(desc, products, kernels::BestVariant(Variants(), products.isa));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.attention", kernels::LayoutRule::kRowMajor, Create});
}

void scalar::Weights(const Softmax& softmax) { WeightsLoop(softmax); }

void scalar::Finish(const Mixtures& mixtures) { FinishLoop(mixtures); }

void scalar::Scores(const FewScores& few) { ScoresLoop(few); }

void scalar::Mix(const FewMixtures& few) { MixLoop(few); }

}  // namespace fuselage::int8::attention
