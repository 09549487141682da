#include "kernels/int8/conv2d/core/problem.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::KernelDesc;

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

// Along an axis: those i of `outputs` with 0 <= i * stride + offset < inputs.
Range OutputsOf(int64_t offset, int64_t stride, int64_t inputs, int64_t outputs) {
  const int64_t begin = offset < 0 ? std::min(outputs, (stride - 1 - offset) / stride) : 0;
  const int64_t end = offset < inputs ? std::min(outputs, (inputs - 1 - offset) / stride + 1) : 0;
  return {begin, std::max(begin, end)};
}

// How many groups are best computed as one. Products of 16 output channels take as long as those of one, however many
// inputs are zeros to them; kernels for groups take 4, 8 or 16 channels, the fewer the faster, and for one.
int GroupsAsOne(const Geometry& g) {
  constexpr int kMostChannels = 16;
  const int in = g.group_in_channels(), out = g.group_out_channels();
  if (in == out && (in == 1 || in == 4)) return 1;
  const bool becomes_four = in == 2 && out == 2 && g.groups % 2 == 0;
  int as_one = becomes_four ? 2 : std::max(1, in == 8 && out == 8 ? 1 : kMostChannels / out);
  while (g.groups % as_one != 0) --as_one;
  return as_one;
}

void JoinGroups(Problem* problem) {
  Geometry& g = problem->geometry;
  const int as_one = GroupsAsOne(g);
  if (as_one == 1) return;
  const int64_t row = int64_t{g.group_in_channels()} * g.kernel_height * g.kernel_width;
  auto joined = std::make_shared<Tensor>(TensorType{
      DType::kI8, {g.out_channels, as_one * g.group_in_channels(), g.kernel_height, g.kernel_width}, std::nullopt});
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    const int64_t place = oc / g.group_out_channels() % as_one;
    std::copy_n(problem->weight + oc * row, row, joined->data<int8_t>() + (oc * as_one + place) * row);
  }
  g.groups /= as_one;
  problem->weight = joined->data<int8_t>();
  problem->own_weight = std::move(joined);
}

}  // namespace

Range Geometry::RowsOfTap(int ky) const {
  return OutputsOf(int64_t{ky} * dilation_y - pad_top, stride_y, in_height, out_height);
}
Range Geometry::ColumnsOfTap(int kx) const {
  return OutputsOf(int64_t{kx} * dilation_x - pad_left, stride_x, in_width, out_width);
}
int64_t Geometry::taps_inside() const {
  int64_t rows = 0, columns = 0;
  for (int ky = 0; ky < kernel_height; ++ky) rows += RowsOfTap(ky).end - RowsOfTap(ky).begin;
  for (int kx = 0; kx < kernel_width; ++kx) columns += ColumnsOfTap(kx).end - ColumnsOfTap(kx).begin;
  return rows * columns;
}

Problem Problem::ColumnAsRow() && {
  Geometry& g = geometry;
  const bool dense = input_placement.dense() && residual_placement.dense() && output_placement.dense();
  if (dense && g.in_width == 1 && g.out_width == 1 && g.kernel_width == 1 && g.pad_left == 0) {
    std::swap(g.in_height, g.in_width);
    std::swap(g.out_height, g.out_width);
    std::swap(g.kernel_height, g.kernel_width);
    std::swap(g.stride_y, g.stride_x);
    std::swap(g.pad_top, g.pad_left);
    std::swap(g.dilation_y, g.dilation_x);
  }
  return std::move(*this);
}

// Here once, not wherever one is made.
Problem::Problem() = default;
Problem::Problem(const Problem&) = default;
Problem::Problem(Problem&&) noexcept = default;
Problem& Problem::operator=(Problem&&) noexcept = default;
Problem::~Problem() = default;

absl::StatusOr<Problem> ProblemOf(const KernelDesc& desc) {
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
  params.desc = &desc;
  params.bias = desc.ParameterOrNull("bias");
  params.output = &desc.output();
  params.post_scale = desc.ParameterOrNull("post_scale");
  params.post_shift = desc.ParameterOrNull("post_shift");
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
  ASSIGN_OR_RETURN(problem.epilogue, kernels::MakeEpilogue(params));
  const kernels::Epilogue& epilogue = problem.epilogue;
  // |a| * m and |r - z_r| * m_r stay finite, so their sum is never NaN.
  const auto finite = [](float m, float largest) { return m < std::numeric_limits<float>::max() / largest; };
  if (!std::all_of(epilogue.multiplier.begin(), epilogue.multiplier.end(),
                   [&](float m) { return finite(m, 0x1p31f); }) ||
      !finite(epilogue.residual_multiplier, 256.0f)) {
    return absl::FailedPreconditionError("the output's scale is too small for the input's: the result overflows");
  }

  problem.described_groups = problem.geometry.groups;
  problem.weight = weight->data<int8_t>();
  JoinGroups(&problem);
  for (int64_t oc = 0; oc < weight->dim(0); ++oc) {
    problem.max_abs_weight_sum =
        std::max(problem.max_abs_weight_sum, kernels::SumsOf(*epilogue.weight_sums, oc).magnitude);
  }
  problem.input_type = desc.input(0).dtype;
  problem.input_zero_point = desc.input(0).quant->zero_point();
  problem.output_type = desc.output().dtype;
  problem.relu = params.activation.is_relu();
  problem.desc = &desc;
  problem.threads = std::max(1, desc.threads);
  problem.input_placement = desc.input_placement(0);
  problem.residual_placement = desc.input_placement(1);
  problem.output_placement = desc.output_placement;
  if (problem.output_type == DType::kF32 && !problem.output_placement.dense()) {
    return absl::UnimplementedError("a float output is dense");
  }
  return problem;
}

}  // namespace fuselage::int8::conv2d
