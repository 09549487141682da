#include "kernels/int8/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/dynamic_quantize/dynamic_quantize.h"
#include "kernels/int8/dequantize/dequantize.h"
#include "kernels/int8/quantize/quantize.h"
#include "kernels/norm/norm.h"

namespace fuselage::int8::norm {
namespace {

using fuselage::norm::Block;
using fuselage::norm::Rows;
using kernels::Kernel;
using kernels::KernelDesc;

enum Input { kInput, kResidual };

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

// The kernels of other ops, made for a row; `from` and `to` are those of the op.
absl::StatusOr<dequantize::Params> DequantizeRow(const TensorType& from, int64_t columns) {
  KernelDesc desc;
  desc.inputs = {TensorType{from.dtype, {columns}, from.quant, Layout::kRowMajor}};
  desc.outputs = {TensorType{DType::kF32, {columns}, std::nullopt, Layout::kRowMajor}};
  return dequantize::MakeParams(desc);
}
absl::StatusOr<quantize::Params> QuantizeRow(const TensorType& to, int64_t columns) {
  KernelDesc desc;
  desc.inputs = {TensorType{DType::kF32, {columns}, std::nullopt, Layout::kRowMajor}};
  desc.outputs = {TensorType{to.dtype, {columns}, to.quant, Layout::kRowMajor}};
  return quantize::MakeParams(desc);
}

class Norm final : public Kernel {
 public:
  Norm(const KernelDesc& desc, Rows rows, const dequantize::Params& from, const quantize::Params& to)
      : Kernel(desc),
        rows_(std::move(rows)),
        takes_codes_(desc.input(kInput).dtype != DType::kF32),
        adds_(desc.has_input(kResidual)),
        row_scales_(!desc.output().quant.has_value()),
        from_(from),
        to_(to),
        dequantize_(kernels::BestVariant(dequantize::Variants(), desc.isa, from).run),
        find_range_(kernels::BestVariant(dynamic_quantize::Variants(), desc.isa).run),
        quantize_(kernels::BestVariant(quantize::Variants(), desc.isa, to).run),
        floats_((rows_.block().rows * rows_.columns() + 15) / 16 * 16) {
    set_variant(rows_.variant());
    set_scratch_bytes(floats_ * static_cast<int64_t>(sizeof(float)) * std::max(1, desc.threads));
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const int64_t grain = std::max<int64_t>(1, kGrain / rows_.columns());
    const int64_t tasks = std::min<int64_t>(context.parallel->threads(), (rows_.count() + grain - 1) / grain);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      float* normalized = static_cast<float*>(context.scratch.data) + thread * floats_;
      Block block = rows_.block();
      block.y = normalized;
      const int64_t end = rows_.count() * (task + 1) / tasks;
      for (int64_t i = rows_.count() * task / tasks; i < end; i += block.rows) {
        block.rows = std::min(block.rows, end - i);
        const int64_t at = i * block.n;
        if (takes_codes_) {
          dequantize_(from_, static_cast<const uint8_t*>(inputs[kInput].data) + at, normalized, 0,
                      block.rows * block.n);
          block.x = normalized;
        } else {
          block.x = static_cast<const float*>(inputs[kInput].data) + at;
        }
        if (adds_) {
          block.residual = static_cast<const float*>(inputs[kResidual].data) + at;
          block.sum = static_cast<float*>(outputs.back().data) + at;
        }
        rows_.Normalize(i, &block);
        uint8_t* codes = static_cast<uint8_t*>(outputs[0].data) + at;
        if (row_scales_) {
          QuantizeRows(block.rows, normalized, codes, static_cast<float*>(outputs[1].data) + i);
        } else {
          quantize_(to_, normalized, codes, 0, block.rows * block.n);
        }
      }
    });
    for (int64_t i = 0; row_scales_ && i < rows_.count(); ++i) {
      const float scale = static_cast<const float*>(outputs[1].data)[i];
      if (!std::isfinite(scale)) {
        return absl::InvalidArgumentError(absl::StrCat("normalized, its input holds ", ShortestText(scale)));
      }
    }
    return absl::OkStatus();
  }

  // Each by its own scale; a row that is not finite has none.
  void QuantizeRows(int64_t rows, const float* x, uint8_t* codes, float* scales) const {
    const int64_t n = rows_.columns();
    for (int64_t i = 0; i < rows; ++i) {
      scales[i] = dynamic_quantize::SymmetricScale(find_range_(x + i * n, n));
      if (!std::isfinite(scales[i])) continue;
      quantize::Params to = dynamic_quantize::SymmetricParams(scales[i]);
      to.pixels = n;
      quantize_(to, x + i * n, codes + i * n, 0, n);
    }
  }

  const Rows rows_;
  const bool takes_codes_, adds_, row_scales_;
  const dequantize::Params from_;
  const quantize::Params to_;  // Where the scale is known.
  dequantize::Function* const dequantize_;
  dynamic_quantize::Function* const find_range_;
  quantize::Function* const quantize_;
  const int64_t floats_;  // Of a block in scratch memory.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  if (!desc.has_input(kInput) || desc.outputs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an operand and a result"));
  }
  const TensorType &x = desc.input(kInput), &y = desc.output();
  if (x.num_elements() == 0) return absl::UnimplementedError(absl::StrCat("operand ", ToString(x), " is empty"));
  ASSIGN_OR_RETURN(Rows rows, Rows::Of(desc, x, desc.op != "int8.rms_norm"));
  dequantize::Params from;
  quantize::Params to;
  if (x.dtype != DType::kF32) {
    ASSIGN_OR_RETURN(from, DequantizeRow(x, rows.columns()));
  }
  if (y.quant) {
    ASSIGN_OR_RETURN(to, QuantizeRow(y, rows.columns()));
  } else {
    Shape wanted = x.shape;
    std::fill_n(wanted.rbegin(), desc.GetInts("normalized_shape").size(), 1);
    if (desc.outputs[1].shape != wanted) {
      return absl::UnimplementedError(
          absl::StrCat("scales ", ToString(desc.outputs[1]), ", wanted one for each row: ", ToString(wanted)));
    }
  }
  return std::make_unique<Norm>(desc, std::move(rows), from, to);
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"int8.layer_norm", "int8.rms_norm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

}  // namespace fuselage::int8::norm
