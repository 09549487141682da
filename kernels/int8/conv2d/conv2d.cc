#include "kernels/int8/conv2d/conv2d.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/variant.h"
#include "kernels/int8/conv2d/variants.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::CpuSupports;
using kernels::Isa;
using kernels::KernelDesc;
using kernels::Placement;

bool Always(const Problem&) { return true; }

Problem Dense(Problem problem) {
  problem.input_placement = problem.residual_placement = problem.output_placement = Placement();
  return problem;
}

bool NotDepthwise(const Problem& problem) { return !DepthwiseSupports(Dense(problem)); }

constexpr Variant kVariants[] = {
    {/*name=*/"scalar", /*isa=*/Isa::kScalar, /*supports=*/Always, /*worthwhile=*/Always, /*make=*/MakeReference},
    {/*name=*/"avx2", /*isa=*/Isa::kAvx2, /*supports=*/DirectSupports, /*worthwhile=*/Always,
     /*make=*/[](const Problem& problem) { return MakeDirect(problem, DirectAvx2()); }},
    {/*name=*/"avx2 winograd", /*isa=*/Isa::kAvx2,
     /*supports=*/WinogradSupports,
     /*worthwhile=*/[](const Problem& problem) { return WinogradWorthwhile(problem, WinogradAvx2()); },
     /*make=*/[](const Problem& problem) { return MakeWinograd(problem, WinogradAvx2()); }},
    {/*name=*/"avx_vnni", /*isa=*/Isa::kAvxVnni, /*supports=*/DirectSupports, /*worthwhile=*/Always,
     /*make=*/[](const Problem& problem) { return MakeDirect(problem, DirectAvxVnni()); }},
    {/*name=*/"avx_vnni winograd", /*isa=*/Isa::kAvxVnni,
     /*supports=*/WinogradSupports,
     /*worthwhile=*/[](const Problem& problem) { return WinogradWorthwhile(problem, WinogradAvxVnni()); },
     /*make=*/[](const Problem& problem) { return MakeWinograd(problem, WinogradAvxVnni()); }},
    {/*name=*/"avx2 depthwise", /*isa=*/Isa::kAvx2,
     /*supports=*/DepthwiseSupports,
     /*worthwhile=*/Always,
     /*make=*/[](const Problem& problem) { return MakeDepthwise(problem, DepthwiseAvx2(), DirectAvx2()); }},
    {/*name=*/"avx512_vnni", /*isa=*/Isa::kAvx512Vnni, /*supports=*/DirectSupports, /*worthwhile=*/Always,
     /*make=*/[](const Problem& problem) { return MakeDirect(problem, DirectAvx512Vnni()); }},
    {/*name=*/"avx512_vnni winograd", /*isa=*/Isa::kAvx512Vnni,
     /*supports=*/WinogradSupports,
     /*worthwhile=*/[](const Problem& problem) { return WinogradWorthwhile(problem, WinogradAvx512Vnni()); },
     /*make=*/[](const Problem& problem) { return MakeWinograd(problem, WinogradAvx512Vnni()); }},
    {/*name=*/"avx512_vnni depthwise", /*isa=*/Isa::kAvx512Vnni,
     /*supports=*/DepthwiseSupports,
     /*worthwhile=*/Always,
     /*make=*/[](const Problem& problem) { return MakeDepthwise(problem, DepthwiseAvx512Vnni(), DirectAvx512Vnni()); }},
    {/*name=*/"avx512_vnni groups", /*isa=*/Isa::kAvx512Vnni,
     /*supports=*/SmallGroupsSupports,
     /*worthwhile=*/Always,
     /*make=*/[](const Problem& problem) { return MakeDepthwise(problem, DepthwiseAvx512Vnni(), DirectAvx512Vnni()); }},
    {/*name=*/"amx", /*isa=*/Isa::kAmx, /*supports=*/TiledSupports,
     /*worthwhile=*/[](const Problem& problem) { return NotDepthwise(problem) && TiledWorthwhile(problem); },
     /*make=*/[](const Problem& problem) { return MakeTiled(problem, TiledAmx()); }, /*wish=*/TiledWish,
     /*reads_halo=*/TiledReadsHalo},
};

class Conv2d : public kernels::Kernel {
 public:
  Conv2d(const KernelDesc& desc, const Variant& variant, const Problem& problem)
      : Kernel(desc),
        algorithm_(variant.make(problem)),
        output_(problem.PlacedOutput()),
        output_zero_point_(static_cast<uint8_t>(problem.epilogue->zero_point)) {
    set_variant(variant.name);
    set_scratch_bytes(algorithm_->scratch_bytes());
    set_weight_bytes(algorithm_->weight_bytes());
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    Arguments arguments;
    arguments.input = inputs[0].data;
    arguments.residual = inputs.size() > 1 ? inputs[1].data : nullptr;
    arguments.output = outputs[0].data;
    for (int64_t n = 0; !output_.placement.dense() && n < output_.batch; ++n) {
      output_.FillHalo(arguments.output, output_zero_point_, n, 0, output_.height);
    }
    algorithm_->Run(arguments, context);
  }

  std::unique_ptr<Algorithm> algorithm_;
  const kernels::PlacedTensor output_;
  const uint8_t output_zero_point_;  // As stored.
};

absl::Status CheckRank4(const TensorType& type, absl::string_view what) {
  if (type.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": rank 4 wanted, found ", ToString(type.shape)));
  }
  for (const int64_t dim : type.shape) {
    if (dim < 1 || dim > std::numeric_limits<int32_t>::max() / 2) {
      return absl::UnimplementedError(absl::StrCat(what, ": a dimension is out of range in ", ToString(type.shape)));
    }
  }
  return CheckedNumElements(type.shape).status();
}

// `count` values within [min, 2^20]: wide enough for any network, and nothing that is computed from them overflows.
absl::StatusOr<std::vector<int>> SmallInts(const KernelDesc& desc, absl::string_view name, size_t count, int min) {
  const std::vector<int64_t>& values = desc.GetInts(name);
  std::vector<int> result(values.begin(), values.end());
  if (values.size() != count ||
      std::any_of(values.begin(), values.end(), [&](int64_t v) { return v < min || v > (1 << 20); })) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " = ", desc.attribute(name).ToString(), ": ", count, " values in [", min, ", 2^20] wanted"));
  }
  return result;
}

absl::StatusOr<Geometry> GeometryOf(const KernelDesc& desc, const Tensor& weight) {
  const TensorType& input = desc.input(0);
  RETURN_IF_ERROR(CheckRank4(input, "input"));
  RETURN_IF_ERROR(CheckRank4(weight.type(), "weight"));
  RETURN_IF_ERROR(CheckRank4(desc.output(), "output"));
  ASSIGN_OR_RETURN(const std::vector<int> stride, SmallInts(desc, "stride", 2, 1));
  ASSIGN_OR_RETURN(const std::vector<int> padding, SmallInts(desc, "padding", 4, 0));
  ASSIGN_OR_RETURN(const std::vector<int> dilation, SmallInts(desc, "dilation", 2, 1));
  const int64_t groups = desc.GetInt("groups");

  Geometry g;
  g.batch = static_cast<int>(input.shape[0]);
  g.in_channels = static_cast<int>(input.shape[1]);
  g.in_height = static_cast<int>(input.shape[2]);
  g.in_width = static_cast<int>(input.shape[3]);
  g.out_channels = static_cast<int>(weight.dim(0));
  g.kernel_height = static_cast<int>(weight.dim(2));
  g.kernel_width = static_cast<int>(weight.dim(3));
  g.stride_y = stride[0], g.stride_x = stride[1];
  g.pad_top = padding[0], g.pad_left = padding[1];
  g.dilation_y = dilation[0], g.dilation_x = dilation[1];
  if (groups < 1 || g.in_channels % groups != 0 || g.out_channels % groups != 0 ||
      weight.dim(1) != g.in_channels / groups) {
    return absl::InvalidArgumentError(absl::StrCat("weight ", ToString(weight.shape()), " does not fit ", groups,
                                                   " groups of input ", ToString(input.shape)));
  }
  g.groups = static_cast<int>(groups);

  const int64_t span_y = int64_t{g.in_height} + padding[0] + padding[2] - int64_t{g.dilation_y} * (g.kernel_height - 1);
  const int64_t span_x = int64_t{g.in_width} + padding[1] + padding[3] - int64_t{g.dilation_x} * (g.kernel_width - 1);
  if (span_y < 1 || span_x < 1) return absl::InvalidArgumentError("the kernel is larger than the padded input");
  const Shape wanted = {g.batch, g.out_channels, (span_y - 1) / g.stride_y + 1, (span_x - 1) / g.stride_x + 1};
  if (desc.output().shape != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("output: ", ToString(wanted), " wanted, found ", ToString(desc.output().shape)));
  }
  g.out_height = static_cast<int>(wanted[2]);
  g.out_width = static_cast<int>(wanted[3]);
  if (int64_t{g.batch} * g.out_height > std::numeric_limits<int32_t>::max()) {
    return absl::UnimplementedError("more than 2^31 output rows");
  }
  return g;
}

int64_t MaxAbsWeightSum(const Tensor& weight) {
  const int64_t per_channel = weight.num_elements() / weight.dim(0);
  const int8_t* w = weight.data<int8_t>();
  int64_t max = 0;
  for (int64_t oc = 0; oc < weight.dim(0); ++oc) {
    int64_t sum = 0;
    for (int64_t i = 0; i < per_channel; ++i) sum += std::abs(static_cast<int>(*w++));
    max = std::max(max, sum);
  }
  return max;
}

// Checks `desc` and returns what `use` makes of the problem that it states; the epilogue lives during the call.
template <typename Result, typename Use>
absl::StatusOr<Result> WithProblem(const KernelDesc& desc, Use use) {
  if (!desc.has_input(0) || desc.outputs.size() != 1) {
    return absl::InvalidArgumentError("int8.conv2d: one input and one output wanted");
  }
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(0), "input"));
  const Tensor* weight = desc.ParameterOrNull("weight");
  if (weight == nullptr) return absl::UnimplementedError("int8.conv2d: the weight is not a constant");
  if (weight->dtype() != DType::kI8) {
    return absl::UnimplementedError(absl::StrCat("weight: i8 wanted, found ", DTypeName(weight->dtype())));
  }
  Problem problem;
  ASSIGN_OR_RETURN(problem.geometry, GeometryOf(desc, *weight));

  kernels::EpilogueParams params;
  params.input = &desc.input(0);
  params.weight = weight;
  params.bias = desc.ParameterOrNull("bias");
  params.output = &desc.output();
  ASSIGN_OR_RETURN(params.activation, ParseActivation(desc.GetString("activation")));
  if (desc.output().dtype != DType::kF32) RETURN_IF_ERROR(kernels::CheckCodes(desc.output(), "output"));
  if (desc.has_input(1)) {
    RETURN_IF_ERROR(kernels::CheckCodes(desc.input(1), "residual"));
    if (desc.output().dtype == DType::kF32) return absl::UnimplementedError("a residual with a float output");
    if (desc.input(1).shape != desc.output().shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("residual: ", ToString(desc.output().shape), " wanted, found ", ToString(desc.input(1).shape)));
    }
    params.residual = &desc.input(1);
    problem.has_residual = true;
    problem.residual_type = desc.input(1).dtype;
  }
  ASSIGN_OR_RETURN(const kernels::Epilogue epilogue, kernels::MakeEpilogue(params));
  // |a| * m and |r - z_r| * m_r stay finite, so their sum is never NaN.
  const auto finite = [](float m, float largest) { return m < std::numeric_limits<float>::max() / largest; };
  if (!std::all_of(epilogue.multiplier.begin(), epilogue.multiplier.end(),
                   [&](float m) { return finite(m, 0x1p31f); }) ||
      !finite(epilogue.residual_multiplier, 256.0f)) {
    return absl::FailedPreconditionError("the output's scale is too small for the input's: the result overflows");
  }

  problem.weight = weight->data<int8_t>();
  problem.max_abs_weight_sum = MaxAbsWeightSum(*weight);
  problem.input_type = desc.input(0).dtype;
  problem.input_zero_point = desc.input(0).quant->zero_point();
  problem.output_type = desc.output().dtype;
  problem.relu = params.activation.is_relu();
  problem.epilogue = &epilogue;
  problem.threads = std::max(1, desc.threads);
  problem.input_placement = desc.input_placement(0);
  problem.residual_placement = desc.input_placement(1);
  problem.output_placement = desc.output_placement;
  if (problem.output_type == DType::kF32 && !problem.output_placement.dense()) {
    return absl::UnimplementedError("a float output is dense");
  }
  return use(problem);
}

// Null: none.
const Variant* Choose(absl::Span<const Variant> variants, const Problem& problem, Isa isa) {
  return kernels::LastVariantOrNull(
      variants, isa, [&](const Variant& variant) { return variant.supports(problem) && variant.worthwhile(problem); });
}

absl::StatusOr<std::string> VariantOf(absl::Span<const Variant> variants, const KernelDesc& desc) {
  return WithProblem<std::string>(desc, [&](const Problem& problem) -> absl::StatusOr<std::string> {
    const Variant* variant = Choose(variants, problem, desc.isa);
    if (variant == nullptr) return absl::UnimplementedError("int8.conv2d: no variant");
    return variant->name;
  });
}

// No placement makes it choose another variant than it would for dense operands.
bool Places(absl::Span<const Variant> variants, const KernelDesc& desc) {
  const absl::StatusOr<bool> places = WithProblem<bool>(desc, [&](const Problem& problem) -> absl::StatusOr<bool> {
    const Variant* variant = Choose(variants, problem, desc.isa);
    return variant != nullptr && variant == Choose(variants, Dense(problem), desc.isa);
  });
  return places.ok() && *places;
}

Placement Wish(absl::Span<const Variant> variants, const KernelDesc& desc) {
  // Spares whoever compiles for other instruction sets the sums over all weights.
  const bool any = std::any_of(variants.begin(), variants.end(), [&](const Variant& variant) {
    return variant.wish != nullptr && desc.isa.Includes(variant.isa) && CpuSupports(variant.isa);
  });
  if (!any) return Placement();
  const auto wish = WithProblem<Placement>(desc, [&](const Problem& problem) -> absl::StatusOr<Placement> {
    const Variant* variant = Choose(variants, Dense(problem), desc.isa);
    return variant == nullptr || variant->wish == nullptr ? Placement() : variant->wish(problem);
  });
  return wish.ok() ? *wish : Placement();
}

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) { return CreateFrom(kVariants, desc); }

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateFrom(absl::Span<const Variant> variants,
                                                            const KernelDesc& desc) {
  using Result = std::unique_ptr<kernels::Kernel>;
  return WithProblem<Result>(desc, [&](const Problem& problem) -> absl::StatusOr<Result> {
    const Variant* variant = Choose(variants, problem, desc.isa);
    if (variant == nullptr) return absl::UnimplementedError("int8.conv2d: no variant");
    return std::make_unique<Conv2d>(desc, *variant, problem);
  });
}

bool ReadsHalo(const KernelDesc& desc, const Variant& variant) {
  const absl::StatusOr<bool> reads = WithProblem<bool>(desc, [&](const Problem& problem) -> absl::StatusOr<bool> {
    return variant.reads_halo != nullptr && variant.supports(problem) && variant.reads_halo(problem);
  });
  return reads.ok() && *reads;
}

const Variant* HaloReaderOrNull(absl::Span<const Variant> variants, const KernelDesc& desc) {
  const auto variant = WithProblem<const Variant*>(desc, [&](const Problem& problem) -> absl::StatusOr<const Variant*> {
    return Choose(variants, problem, desc.isa);
  });
  return variant.ok() && *variant != nullptr && ReadsHalo(desc, **variant) ? *variant : nullptr;
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const Variant& variant) {
  using Result = std::unique_ptr<kernels::Kernel>;
  return WithProblem<Result>(desc, [&](const Problem& problem) -> absl::StatusOr<Result> {
    if (!variant.supports(problem)) {
      return absl::FailedPreconditionError(absl::StrCat("variant ", variant.name, " does not support this problem"));
    }
    return std::make_unique<Conv2d>(desc, variant, problem);
  });
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateWith(
    const KernelDesc& desc, absl::FunctionRef<absl::StatusOr<std::unique_ptr<kernels::Kernel>>(const Problem&)> make) {
  return WithProblem<std::unique_ptr<kernels::Kernel>>(desc, make);
}

Placement WishedPlacement(const KernelDesc& desc, const Variant& variant) {
  const auto wish = WithProblem<Placement>(desc, [&](const Problem& problem) -> absl::StatusOr<Placement> {
    return variant.wish == nullptr ? Placement() : variant.wish(problem);
  });
  return wish.ok() ? *wish : Placement();
}

kernels::KernelEntry EntryOf(absl::Span<const Variant> variants) {
  kernels::KernelEntry entry;
  entry.op = "int8.conv2d";
  entry.layout = kernels::LayoutRule::kNhwc;
  entry.create = [variants](const KernelDesc& desc) { return CreateFrom(variants, desc); };
  entry.places = [variants](const KernelDesc& desc) { return Places(variants, desc); };
  entry.wished_placement = [variants](const KernelDesc& desc) { return Wish(variants, desc); };
  entry.variant = [variants](const KernelDesc& desc) { return VariantOf(variants, desc); };
  return entry;
}

void Register(kernels::KernelRegistry& registry) { registry.Register(EntryOf(kVariants)); }

}  // namespace fuselage::int8::conv2d
