#include "kernels/attention/attention.h"

#include <algorithm>
#include <utility>

#include "kernels/attention/loops.h"
#include "kernels/core/attention_shape.h"
#include "kernels/core/float_operands.h"
#include "kernels/core/variant.h"
#include "kernels/reproducible/panels.h"

namespace fuselage::attention {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;
using kernels::RunContext;
using reproducible::kDepth;
using reproducible::kRowStride;

constexpr Variant kVariants[] = {
    {"scalar", kernels::Isa::kScalar, reproducible::kScalarRows, reproducible::kScalarColumns,
     reproducible::scalar::Tile, scalar::Weights, scalar::Divide},
    {"avx2", kernels::Isa::kAvx2, reproducible::kAvx2Rows, reproducible::kAvx2Columns, reproducible::avx2::Tile,
     avx2::Weights, avx2::Divide},
    {"avx512_vnni", kernels::Isa::kAvx512Vnni, reproducible::kAvx512Rows, reproducible::kAvx512Columns,
     reproducible::avx512_vnni::Tile, avx512_vnni::Weights, avx512_vnni::Divide},
};

enum Input { kQuery, kKey, kValue, kMask };

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
int64_t Blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

class Attention final : public kernels::Kernel {
 public:
  Attention(const KernelDesc& desc, const kernels::AttentionShape& shape, const Variant& variant)
      : Kernel(desc),
        s_(shape),
        mask_(desc, shape),
        variant_(variant),
        scale_(static_cast<float>(desc.GetFloat("scale"))),
        softcap_(static_cast<float>(desc.GetFloat("softcap"))),
        block_rows_(RoundUp(std::min(s_.rows, kBlockRows), variant.rows)),
        width_(RoundUp(s_.width, variant.columns)) {
    // Several parts of a head where there are fewer heads than threads can share; each packs the keys for itself.
    const int64_t blocks = Blocks(s_.rows, kBlockRows);
    if (desc.threads > 1) parts_ = std::clamp<int64_t>(Blocks(4 * desc.threads, s_.groups), 1, blocks);
    thread_floats_ = Take(nullptr).floats;
    set_scratch_bytes(std::max(desc.threads, 1) * thread_floats_ * static_cast<int64_t>(sizeof(float)));
    set_variant(variant.name);
  }

 private:
  // A thread's share of the scratch memory.
  struct Scratch {
    float* keys;     // Panels [depth, columns].
    float* values;   // Panels [keys, columns].
    float* left;     // A block's queries, up to kDepth elements of each.
    float* scores;   // Of kDepth keys each: [rows, kRowStride].
    float* sums;     // [rows, width_]
    float* mask;     // A query's.
    int64_t floats;  // Of all.
  };
  Scratch Take(float* at) const {
    Scratch scratch{};
    const auto take = [&](int64_t floats) {
      float* taken = at == nullptr ? nullptr : at + scratch.floats;
      scratch.floats += RoundUp(floats, 16);
      return taken;
    };
    scratch.keys = take(RoundUp(s_.keys, variant_.columns) * s_.depth);
    scratch.values = take(s_.keys * width_);
    scratch.left = take(block_rows_ * kRowStride);
    scratch.scores = take(Blocks(s_.keys, kDepth) * ScoresStride());
    scratch.sums = take(block_rows_ * width_);
    scratch.mask = take(mask_.floats());
    return scratch;
  }
  int64_t ScoresStride() const { return block_rows_ * kRowStride; }

  struct Operands {
    const float *q, *k, *v;
    const void* mask;
    float* y;
  };

  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const RunContext& context) const override {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i].data : nullptr; };
    const Operands operands = {static_cast<const float*>(input(kQuery)), static_cast<const float*>(input(kKey)),
                               static_cast<const float*>(input(kValue)), input(kMask),
                               static_cast<float*>(outputs[0].data)};
    context.parallel->For(static_cast<int>(s_.groups * parts_), [&](int task, int thread) {
      const Scratch scratch = Take(static_cast<float*>(context.scratch.data) + thread * thread_floats_);
      const int64_t group = task / parts_, part = task % parts_, blocks = Blocks(s_.rows, kBlockRows);
      reproducible::PackPanels({operands.k + group * s_.keys * s_.depth, s_.depth, 0, 1, s_.depth},
                               {0, s_.keys, 0, s_.depth}, variant_.columns, scratch.keys);
      reproducible::PackPanels({operands.v + group * s_.keys * s_.width, s_.keys, 0, s_.width, 1},
                               {0, s_.width, 0, s_.keys}, variant_.columns, scratch.values);
      for (int64_t block = blocks * part / parts_; block < blocks * (part + 1) / parts_; ++block) {
        const int64_t row = block * kBlockRows;
        ComputeBlock(operands, group * s_.rows + row, std::min(kBlockRows, s_.rows - row), scratch);
      }
    });
  }

  // Rows [row, row + rows) of all groups' side by side.
  void ComputeBlock(const Operands& operands, int64_t row, int64_t rows, const Scratch& scratch) const {
    const int64_t keys = s_.MostKeys(row, rows);
    MultiplyKeys(operands.q, row, rows, keys, scratch);
    float sums[kBlockRows];
    for (int64_t i = 0; i < rows; ++i) {
      float* scores = scratch.scores + i * kRowStride;
      const int64_t own = s_.KeysOf(row + i);
      const float* mask;
      mask_.Rows(operands.mask, row + i, 1, scratch.mask, &mask);
      sums[i] = variant_.weights({scores, ScoresStride(), own, mask, scale_, softcap_});
      for (int64_t j = own; j < keys; ++j) scores[j / kDepth * ScoresStride() + j % kDepth] = 0;
    }
    MultiplyValues(rows, keys, scratch);
    for (int64_t i = 0; i < rows; ++i) {
      variant_.divide(scratch.sums + i * width_, sums[i], s_.width, operands.y + (row + i) * s_.width);
    }
  }

  // scores = queries * keys, in the tiles that hold a score which somebody looks at.
  void MultiplyKeys(const float* queries, int64_t row, int64_t rows, int64_t keys, const Scratch& scratch) const {
    const int64_t tiled_rows = RoundUp(rows, variant_.rows);
    for (int64_t begin = 0; begin < keys; begin += kDepth) {
      float* scores = scratch.scores + begin / kDepth * ScoresStride();
      const int64_t columns = RoundUp(std::min(kDepth, keys - begin), variant_.columns);
      for (int64_t i = 0; i < tiled_rows; ++i) std::fill_n(scores + i * kRowStride, columns, 0.0f);
    }
    for (int64_t begin = 0; begin < s_.depth; begin += kDepth) {
      const int64_t depth = std::min(kDepth, s_.depth - begin);
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(queries + (row + i) * s_.depth + begin, depth, scratch.left + i * kRowStride);
      }
      for (int64_t i = rows; i < tiled_rows; ++i) std::fill_n(scratch.left + i * kRowStride, depth, 0.0f);
      for (int64_t j = 0; j < keys; j += variant_.columns) {
        const float* panel = scratch.keys + j * s_.depth + begin * variant_.columns;
        float* scores = scratch.scores + j / kDepth * ScoresStride() + j % kDepth;
        for (int64_t i = 0; i < rows; i += variant_.rows) {
          if (s_.is_causal && j >= s_.MostKeys(row + i, std::min(variant_.rows, rows - i))) continue;
          variant_.tile(scratch.left + i * kRowStride, panel, depth, scores + i * kRowStride, kRowStride);
        }
      }
    }
  }

  // sums = weights * values
  void MultiplyValues(int64_t rows, int64_t keys, const Scratch& scratch) const {
    std::fill_n(scratch.sums, RoundUp(rows, variant_.rows) * width_, 0.0f);
    for (int64_t begin = 0; begin < keys; begin += kDepth) {
      const float* weights = scratch.scores + begin / kDepth * ScoresStride();
      for (int64_t e = 0; e < width_; e += variant_.columns) {
        const float* panel = scratch.values + e * s_.keys + begin * variant_.columns;
        for (int64_t i = 0; i < rows; i += variant_.rows) {
          variant_.tile(weights + i * kRowStride, panel, std::min(kDepth, keys - begin), scratch.sums + i * width_ + e,
                        width_);
        }
      }
    }
  }

  const kernels::AttentionShape s_;
  const kernels::AttentionMask mask_;
  const Variant& variant_;
  const float scale_, softcap_;
  const int64_t block_rows_, width_;  // In whole tiles.
  int64_t parts_ = 1;                 // Tasks for each group.
  int64_t thread_floats_ = 0;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateWith(absl::Span<const Variant> table, const KernelDesc& desc) {
  KernelDesc floats = desc;
  if (desc.has_input(kMask) && desc.input(kMask).dtype == DType::kBool) floats.inputs[kMask].reset();
  RETURN_IF_ERROR(kernels::CheckFloats(floats));
  ASSIGN_OR_RETURN(const kernels::AttentionShape shape, kernels::AttentionShapeOf(desc));
  return std::make_unique<Attention>(desc, shape, kernels::BestVariant(table, desc.isa));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"scaled_dot_product_attention", kernels::LayoutRule::kRowMajor,
                     [](const KernelDesc& desc) { return CreateWith(kVariants, desc); }});
}

float scalar::Weights(const ScoreRow& row) { return WeightsLoop(row); }

void scalar::Divide(const float* sums, float weight, int64_t n, float* y) { DivideLoop(sums, weight, n, y); }

}  // namespace fuselage::attention
