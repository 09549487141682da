#include "kernels/int8/linear/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"
#include "kernels/core/requantize.h"
#include "kernels/core/tiles.h"
#include "kernels/int8/linear/variants.h"

namespace fuselage::int8::linear {
namespace {

using kernels::Epilogue;
using kernels::KernelDesc;

// A task is this many channels of some rows: its weights stay in the first cache while rows pass.
constexpr int64_t kTaskChannels = 64;
constexpr int64_t kShared = 1 << 17;  // Products that are worth a second thread.

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// to[i] = (from[i] ^ flip) - less. Blocks of constant size become vectors.
template <typename T>
inline __attribute__((always_inline)) void CopyCodes(const uint8_t* from, uint8_t flip, T less, int64_t n, T* to) {
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    T block[kBlock];
    for (int64_t j = 0; j < kBlock; ++j) block[j] = static_cast<T>((from[i + j] ^ flip) - less);
    std::memcpy(to + i, block, sizeof(block));
  }
  for (; i < n; ++i) to[i] = static_cast<T>((from[i] ^ flip) - less);
}

// Whole steps, whose size is a constant, and then what is left.
void PackTileRow(const Packing& packing, const uint8_t* from, uint8_t flip, int64_t features, int64_t row,
                 uint8_t* packed) {
  constexpr int64_t kStep = kernels::kTileRowBytes;
  FUSELAGE_CHECK(packing.step == kStep);
  const int64_t rows = packing.tile_rows, whole = features / kStep * kStep;
  uint8_t* to = packed + row / rows * rows * RoundUp(features, kStep) + row % rows * kStep;
  for (int64_t k = 0; k < whole; k += kStep, to += rows * kStep) {
    CopyCodes<uint8_t>(from + k, flip, 0, kStep, to);
  }
  if (whole == features) return;
  std::memset(to, 0, kStep);
  CopyCodes<uint8_t>(from + whole, flip, 0, features - whole, to);
}

// Repeated `times` times, then zeros.
template <typename T>
std::vector<T> Padded(const std::vector<T>& values, int64_t times, int64_t size) {
  std::vector<T> padded(size);
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < count * times; ++i) padded[i] = values[i % count];
  return padded;
}

// How many rows are computed as one, [rows * K] to [rows * N] by a weight of blocks along its diagonal: a block of the
// packing holds channels of all of them where a row's alone would leave most of it empty. Products take as long, the
// epilogue and its stores a fraction.
int64_t RowsAsOne(const KernelDesc& desc, const Packing& packing) {
  constexpr int64_t kMostDepth = 1024;  // Its weights stay in the first cache.
  const Tensor& weight = *desc.ParameterOrNull("weight");
  if (desc.has_input(1) || weight.num_elements() == 0) return 1;
  const int64_t rows = desc.output().num_elements() / weight.dim(0);
  int64_t as_one = std::max<int64_t>(1, std::min(packing.block / weight.dim(0), kMostDepth / weight.dim(1)));
  while (rows % as_one != 0) --as_one;
  return as_one;
}

class Linear : public kernels::Kernel {
 public:
  [[gnu::cold]] Linear(const KernelDesc& desc, const Epilogue& epilogue, const Variant& variant)
      : Kernel(desc), variant_(variant), input_type_(desc.input(0).dtype) {
    const Tensor& weight = *desc.ParameterOrNull("weight");
    const TensorType& y = desc.output();
    as_one_ = RowsAsOne(desc, variant.packing);
    const int64_t channels = weight.dim(0) * as_one_;
    input_depth_ = weight.dim(1) * as_one_;
    params_.channels = channels;
    params_.rows = channels == 0 ? 0 : y.num_elements() / channels;
    params_.depth = params_.pitch = RoundUp(input_depth_, variant.packing.step);
    SetOutput(y, ParseActivation(desc.GetString("activation")).value(), &params_);
    function_ = epilogue.function;
    if (function_) params_.function = &*function_;
    params_.function_multiplier = epilogue.function_multiplier;
    const int64_t padded = RoundUp(channels, variant.packing.block);
    addend_ = Padded(params_.float_output ? epilogue.offset : epilogue.bias, as_one_, padded);
    multiplier_ = Padded(params_.float_output ? epilogue.float_scale : epilogue.multiplier, as_one_, padded);
    float_bias_ = Padded(epilogue.float_bias, as_one_, padded);
    const Packing& packing = variant.packing;
    const kernels::Pairs pairs = kernels::PairsOf(epilogue.mean_weight, epilogue.largest_weight);
    const kernels::PairPanel panel = kernels::PairPanel::Of(params_.depth / packing.step, pairs);
    params_.parts_of_step = panel.parts_of_step;
    params_.block_bytes = packing.group_steps != nullptr ? panel.bytes() : params_.depth * packing.block;
    const TensorType packed_type{
        DType::kI8, {padded / packing.block * params_.block_bytes}, std::nullopt, Layout::kRowMajor};
    weight_ =
        desc.Packed("weight",
                    absl::StrCat("linear ", packing.block, " ", packing.group, " ", packing.step, " ",
                                 as_one_ == 1 ? "" : absl::StrCat("of ", as_one_, " rows "), ToString(packed_type)),
                    [&] { return Packed(weight, packed_type, panel); });
    params_.weight = weight_->data<int8_t>();
    if (packing.x_bytes == 1 && input_type_ == DType::kI8) MoveInput(weight);
    step_offsets_ = StepOffsets(packing, params_.depth);
    params_.step_offsets = step_offsets_.data();
    params_.addend = addend_.data();
    params_.multiplier = multiplier_.data();
    params_.float_bias = float_bias_.data();
    set_variant(variant.name);
    in_place_ = IsPacked(packing, input_type_, input_depth_);
    if (!in_place_) set_scratch_bytes(PackedRowsBytes(packing, params_.rows, input_depth_));
    set_weight_bytes(padded * int64_t{3 * sizeof(float)}, {weight_});
  }

 private:
  [[gnu::cold]] Tensor Packed(const Tensor& weight, const TensorType& type, const kernels::PairPanel& panel) const {
    const Packing& packing = variant_.packing;
    Tensor packed(type);
    const int64_t row_channels = weight.dim(0), row_depth = weight.dim(1);
    for (int64_t n = 0; n < params_.channels; ++n) {
      int8_t* block = packed.data<int8_t>() + n / packing.block * params_.block_bytes;
      const int8_t* from = weight.data<int8_t>() + n % row_channels * row_depth;
      for (int64_t k = n / row_channels * row_depth, end = k + row_depth; k < end; ++k) {
        block[(k / packing.group * packing.block + n % packing.block) * packing.group + k % packing.group] = *from++;
      }
    }
    for (int64_t n = 0; packing.group_steps != nullptr && n < params_.channels; n += packing.block) {
      packing.group_steps(panel, static_cast<uint8_t*>(packed.raw_data()) + n / packing.block * params_.block_bytes);
    }
    return packed;
  }

  // For codes that are packed as code + 128. Modulo 2^32, as the accumulator that it corrects.
  void MoveInput(const Tensor& weight) {
    const int8_t* w = weight.data<int8_t>();
    for (int64_t n = 0, depth = weight.dim(1); n < params_.channels; ++n) {
      const int8_t* row = w + n % weight.dim(0) * depth;
      const uint32_t sum = static_cast<uint32_t>(std::accumulate(row, row + depth, int32_t{0}));
      addend_[n] = static_cast<int32_t>(static_cast<uint32_t>(addend_[n]) - 128u * sum);
    }
  }

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const void *x = inputs[0].data, *packed = in_place_ ? x : context.scratch.data;
    void* y = outputs[0].data;
    Params params = params_;
    if (inputs.size() > 1) params.row_multiplier = static_cast<const float*>(inputs[1].data);
    const int64_t rows = params_.rows, channels = params_.channels;
    const int64_t most_rows = variant_.task_rows;
    kernels::Serial alone;
    kernels::Parallel& parallel = rows * channels * input_depth_ < kShared ? alone : *context.parallel;
    kernels::ForRanges(parallel, in_place_ ? 0 : rows, most_rows, [&](int64_t begin, int64_t end) {
      PackRows(variant_.packing, input_type_, input_depth_, x, context.scratch.data, begin, end);
    });
    const int64_t row_tasks = (rows + most_rows - 1) / most_rows;
    const int64_t channel_tasks = (channels + kTaskChannels - 1) / kTaskChannels;
    parallel.For(static_cast<int>(row_tasks * channel_tasks), [&](int task, int) {
      const int64_t row = task % row_tasks * most_rows, channel = task / row_tasks * kTaskChannels;
      variant_.run(params, packed, y,
                   {row, std::min(rows, row + most_rows), channel, std::min(channels, channel + kTaskChannels)});
    });
  }

  Variant variant_;
  DType input_type_;
  int64_t as_one_ = 1;       // RowsAsOne, which `params_` and input_depth_ speak of.
  int64_t input_depth_ = 0;
  bool in_place_ = false;  // The input is as the packing wants it.
  Params params_;
  std::shared_ptr<const Tensor> weight_;
  std::vector<int64_t> step_offsets_;
  std::vector<int32_t> addend_;
  std::vector<float> multiplier_, float_bias_;
  std::optional<ElementwiseInstruction> function_;
};

absl::Status CheckRowScales(const KernelDesc& desc) {
  const TensorType &x = desc.input(0), &scale = desc.input(1), &y = desc.output();
  Shape wanted = x.shape;
  wanted.back() = 1;
  const Tensor* bias = desc.ParameterOrNull("bias");
  const bool float_bias = bias == nullptr || bias->dtype() == DType::kF32;
  if (x.dtype == DType::kI8 && !x.quant && scale.dtype == DType::kF32 && scale.shape == wanted &&
      y.dtype == DType::kF32 && float_bias) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("linear: input ", ToString(x), ", scales ", ToString(scale),
                                                 ", output ", ToString(y), float_bias ? "" : ", bias in steps",
                                                 ", wanted plain i8, f32", ToString(wanted), " and f32"));
}

// What rows of a table decide by.
Params ProblemOf(const KernelDesc& desc, const Epilogue& epilogue) {
  const int64_t channels = desc.output().shape.back();
  Params params;
  params.rows = channels == 0 ? 0 : desc.output().num_elements() / channels;
  params.pairs = kernels::PairsOf(epilogue.mean_weight, epilogue.largest_weight);
  return params;
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::Span<const Variant> VariantsOfAnyWeight() {
  static const auto* const variants = [] {
    auto* table = new std::vector<Variant>;
    Params most;  // Rows that fill any tile, weights that may be large.
    most.rows = std::numeric_limits<int64_t>::max();
    std::copy_if(std::begin(kVariants), std::end(kVariants), std::back_inserter(*table),
                 [&](const Variant& variant) { return variant.accepts == nullptr || variant.accepts(most); });
    return table;
  }();
  return *variants;
}

const Variant& VariantFor(Isa isa, int64_t rows) {
  Params params;
  params.rows = rows;
  return kernels::BestVariant(Variants(), isa, params);
}

bool IsPacked(const Packing& packing, DType type, int64_t features) {
  if (packing.in_place) return true;
  return packing.x_bytes == 1 && packing.tile_rows == 0 && type == DType::kU8 && features % packing.step == 0;
}

int64_t PackedRowsBytes(const Packing& packing, int64_t rows, int64_t features) {
  return RoundUp(rows, std::max(1, packing.tile_rows)) * RoundUp(features, packing.step) * packing.x_bytes;
}

void PackRows(const Packing& packing, DType type, int64_t features, const void* x, void* packed, int64_t begin,
              int64_t end) {
  const int64_t depth = RoundUp(features, packing.step), tail = depth - features;
  const uint8_t flip = type == DType::kI8 ? 0x80 : 0;
  for (int64_t row = begin; row < end; ++row) {
    const uint8_t* from = static_cast<const uint8_t*>(x) + row * features;
    if (packing.tile_rows > 0) {
      PackTileRow(packing, from, flip, features, row, static_cast<uint8_t*>(packed));
    } else if (packing.x_bytes == 1) {
      uint8_t* to = static_cast<uint8_t*>(packed) + row * depth;
      CopyCodes<uint8_t>(from, flip, 0, features, to);
      std::memset(to + features, 0, tail);
    } else {
      int16_t* to = static_cast<int16_t*>(packed) + row * depth;
      CopyCodes<int16_t>(from, flip, type == DType::kI8 ? 128 : 0, features, to);
      std::memset(to + features, 0, tail * sizeof(int16_t));
    }
  }
}

std::vector<int64_t> StepOffsets(const Packing& packing, int64_t depth) {
  std::vector<int64_t> offsets;
  const int64_t rows = std::max(1, packing.tile_rows);
  for (int64_t k = 0; k < depth; k += packing.step) offsets.push_back(k * rows * packing.x_bytes);
  return offsets;
}

void SetOutput(const TensorType& y, const Activation& activation, Params* params) {
  params->float_output = y.dtype == DType::kF32;
  params->relu = activation.is_relu();
  if (params->float_output) return;
  const kernels::UnsignedForm form = kernels::UnsignedFormOf(y);
  const kernels::CodeRange range = kernels::CodeRangeOf(DType::kU8, form.zero_point, y.quant->scale(), activation);
  params->flip = form.flip;
  params->zero_point = form.zero_point;
  params->lo = range.lo;
  params->hi = range.hi;
}

[[gnu::cold]] absl::StatusOr<Epilogue> CheckedEpilogue(const KernelDesc& desc) {
  const Tensor* weight = desc.ParameterOrNull("weight");
  if (!desc.has_input(0) || weight == nullptr) {
    return absl::InvalidArgumentError("linear: wanted an operand and a constant weight");
  }
  const TensorType &x = desc.input(0), &y = desc.output();
  if (weight->rank() != 2 || x.rank() < 1 || x.shape.back() != weight->dim(1)) {
    return absl::InvalidArgumentError(absl::StrCat("linear: input ", ToString(x), ", weight ",
                                                   ToString(weight->shape()), ", wanted [..., K] and [N, K]"));
  }
  Shape wanted = x.shape;
  wanted.back() = weight->dim(0);
  if (y.shape != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("linear: output ", ToString(y), ", wanted shape ", ToString(wanted)));
  }
  TensorType codes = x;
  if (desc.has_input(1)) {
    RETURN_IF_ERROR(CheckRowScales(desc));
    codes.quant = PerTensor(1);  // The scale of each row comes in the run.
  }
  kernels::EpilogueParams params;
  params.input = &codes;
  params.weight = weight;
  params.desc = &desc;
  params.bias = desc.ParameterOrNull("bias");
  params.output = &y;
  ASSIGN_OR_RETURN(params.activation, ParseActivation(desc.GetString("activation")));
  return kernels::MakeEpilogue(params);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  return EntryOf(kVariants).create(desc);
}

absl::StatusOr<std::string> VariantName(const KernelDesc& desc) { return EntryOf(kVariants).variant(desc); }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const Variant& variant) {
  ASSIGN_OR_RETURN(const Epilogue epilogue, CheckedEpilogue(desc));
  return std::make_unique<Linear>(desc, epilogue, variant);
}

kernels::KernelEntry EntryOf(absl::Span<const Variant> variants) {
  const auto choice = [variants](const KernelDesc& desc, const Epilogue& epilogue) -> const Variant& {
    return kernels::BestVariant(variants, desc.isa, ProblemOf(desc, epilogue));
  };
  kernels::KernelEntry entry;
  entry.op = "int8.linear";
  entry.layout = kernels::LayoutRule::kRowMajor;
  entry.create = [choice](const KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
    ASSIGN_OR_RETURN(const Epilogue epilogue, CheckedEpilogue(desc));
    return std::make_unique<Linear>(desc, epilogue, choice(desc, epilogue));
  };
  entry.variant = [choice](const KernelDesc& desc) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Epilogue epilogue, CheckedEpilogue(desc));
    return choice(desc, epilogue).name;
  };
  return entry;
}

std::vector<int> RowsFor(const KernelDesc& desc) {
  std::vector<int> rows;
  const absl::StatusOr<Epilogue> epilogue = CheckedEpilogue(desc);
  if (!epilogue.ok()) return rows;
  const Params problem = ProblemOf(desc, *epilogue);
  for (size_t i = 0; i < std::size(kVariants); ++i) {
    const Variant& variant = kVariants[i];
    const bool accepts = variant.accepts == nullptr || variant.accepts(problem);
    if (desc.isa.Includes(variant.isa) && accepts) rows.push_back(static_cast<int>(i));
  }
  return rows;
}

void Register(kernels::KernelRegistry& registry) {
  kernels::KernelEntry entry = EntryOf(kVariants);
  entry.table = {{"kernels/int8/linear/variants.h"}, "int8::linear::kVariants", "int8::linear::EntryOf", RowsFor};
  registry.Register(std::move(entry));
}

// Addends may leave 32 bits where the sum does not.
void scalar::Run(const Params& p, const void* x, void* y, const Range& range) {
  for (int64_t row = range.row_begin; row < range.row_end; ++row) {
    const int16_t* codes = static_cast<const int16_t*>(x) + row * p.pitch;
    for (int64_t n = range.channel_begin; n < range.channel_end; ++n) {
      int32_t products = 0;
      for (int64_t k = 0; k < p.depth; ++k) products += codes[k] * p.weight[n * p.pitch + k];
      const uint32_t addend =
          static_cast<uint32_t>(p.addend[n]) + static_cast<uint32_t>(p.row_addend == nullptr ? 0 : p.row_addend[row]);
      const int32_t sum = static_cast<int32_t>(static_cast<uint32_t>(products) + addend);
      const int64_t i = row * p.channels + n;
      const float row_multiplier = p.row_multiplier == nullptr ? 1.0f : p.row_multiplier[row];
      float v = p.float_output ? std::fma(static_cast<float>(sum), p.multiplier[n] * row_multiplier, p.float_bias[n])
                               : static_cast<float>(sum) * p.multiplier[n];
      if (p.function != nullptr) v = elementwise::Activated(*p.function, v) * p.function_multiplier;
      if (p.float_output) {
        static_cast<float*>(y)[i] = !p.relu || v > 0 ? v : 0.0f;
      } else {
        static_cast<uint8_t*>(y)[i] = static_cast<uint8_t>(kernels::ToCode(v, p.zero_point, {p.lo, p.hi})) ^ p.flip;
      }
    }
  }
}

}  // namespace fuselage::int8::linear
