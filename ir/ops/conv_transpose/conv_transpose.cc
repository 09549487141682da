#include "ir/ops/conv_transpose/conv_transpose.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/core/window.h"

namespace fuselage::ops::conv_transpose {
namespace {

enum Operand { kInput, kWeight, kBias };

// The window of the convolution that this is the gradient of: it slides over our result, and our input is its output.
absl::StatusOr<Window> WindowOf(const ir::OpCall& call, const Shape& input, const Shape& weight) {
  const std::vector<int64_t>& stride = call.GetInts("stride");
  const std::vector<int64_t>& padding = call.GetInts("padding");
  const std::vector<int64_t>& dilation = call.GetInts("dilation");
  const std::vector<int64_t>& output_padding = call.GetInts("output_padding");
  const int n = static_cast<int>(stride.size());
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  Window window;
  for (int i = 0; i < n; ++i) {
    WindowAxis& axis = window.axes[3 - n + i];
    axis.output = input[2 + i];
    axis.kernel = weight[2 + i];
    axis.stride = stride[i];
    axis.dilation = dilation[i];
    axis.begin = padding[i];
    axis.end = padding[n + i];
    if (axis.output < 1 || axis.output > kMax || axis.kernel < 1 || axis.kernel > kMax) {
      return absl::InvalidArgumentError(absl::StrCat("spatial axis ", i, ": kernel of size ", axis.kernel,
                                                     " on an input of ", axis.output, ", wanted both in [1, 2^31)"));
    }
    if (output_padding[i] >= std::max(axis.stride, axis.dilation)) {
      return AttributeError(call, "output_padding", absl::StrCat("less than stride or dilation on spatial axis ", i));
    }
    axis.input = (axis.output - 1) * axis.stride + axis.extent() - axis.begin - axis.end + output_padding[i];
    if (axis.input < 1) {
      return absl::InvalidArgumentError(absl::StrCat("spatial axis ", i, ": a result of size ", axis.input,
                                                     ", wanted at least 1: padding ", axis.begin, " + ", axis.end,
                                                     " is too large"));
    }
  }
  return window;
}

Shape ResultShape(const Window& window, int n, int64_t batch, int64_t channels) {
  Shape shape = {batch, channels};
  for (int axis = 3 - n; axis < 3; ++axis) shape.push_back(window.axes[axis].input);
  return shape;
}

absl::StatusOr<ir::Type> InferConvTranspose(const ir::InferCall& call, int n) {
  RETURN_IF_ERROR(CheckRank(call, kInput, n + 2));
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  RETURN_IF_ERROR(CheckRank(call, kWeight, n + 2));
  const DType dtype = call.tensor(kInput).dtype;
  RETURN_IF_ERROR(CheckParameterDType(call, kWeight, dtype));
  RETURN_IF_ERROR(CheckWindowAttributes(call, n));
  RETURN_IF_ERROR(CheckInts(call, "output_padding", n, 0));
  const Shape& input = call.tensor(kInput).shape;
  const Shape& weight = call.tensor(kWeight).shape;
  const int64_t groups = call.GetInt("groups");
  if (groups < 1) return AttributeError(call, "groups", "at least 1");
  if (weight[0] < 1 || weight[1] < 1) return OperandError(call, kWeight, "wanted at least one channel");
  if (weight[0] != input[1] || input[1] % groups != 0) {
    return OperandError(call, kInput,
                        absl::StrCat(input[1], " channels, wanted ", weight[0], " (weight ", ToString(weight),
                                     "), a multiple of groups=", groups));
  }
  int64_t channels;
  if (__builtin_mul_overflow(weight[1], groups, &channels)) {
    return AttributeError(call, "groups", "fewer output channels than 2^63");
  }
  if (call.has(kBias)) {
    RETURN_IF_ERROR(CheckShape(call, kBias, {channels}));
    RETURN_IF_ERROR(CheckParameterDType(call, kBias, dtype));
  }
  ASSIGN_OR_RETURN(const Window window, WindowOf(call, input, weight));
  return ResultType(dtype, ResultShape(window, n, input[0], channels));
}

absl::StatusOr<std::vector<Tensor>> EvaluateConvTranspose(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(kInput);
  const Tensor& weight = call.tensor(kWeight);
  absl::StatusOr<Window> status = WindowOf(call, input.shape(), weight.shape());
  FUSELAGE_CHECK(status.ok());
  const Window& window = *status;
  const WindowAxis& depth = window.axes[0];
  const WindowAxis& height = window.axes[1];
  const WindowAxis& width = window.axes[2];
  const int64_t groups = call.GetInt("groups");
  const int64_t in_channels = input.dim(1) / groups, out_channels = weight.dim(1);
  const std::vector<double> x = RealValues(input), w = RealValues(weight);
  std::vector<double> y(call.result().num_elements(), 0.0);
  if (call.has(kBias)) {
    const std::vector<double> bias = RealValues(call.tensor(kBias));
    for (size_t i = 0; i < y.size(); ++i) y[i] = bias[i / window.inputs() % bias.size()];
  }

  // Scatters x * filter over one plane of the result.
  const auto scatter = [&](const double* plane, const double* filter, double* out) {
    for (int64_t position = 0; position < window.outputs(); ++position) {
      const double value = plane[position];
      const int64_t w0 = position % width.output * width.stride - width.begin;
      const int64_t h0 = position / width.output % height.output * height.stride - height.begin;
      const int64_t d0 = position / (width.output * height.output) * depth.stride - depth.begin;
      for (int64_t tap = 0; tap < window.taps(); ++tap) {
        const int64_t v = w0 + tap % width.kernel * width.dilation;
        const int64_t h = h0 + tap / width.kernel % height.kernel * height.dilation;
        const int64_t d = d0 + tap / (width.kernel * height.kernel) * depth.dilation;
        if (d < 0 || d >= depth.input || h < 0 || h >= height.input || v < 0 || v >= width.input) continue;
        out[(d * height.input + h) * width.input + v] += value * filter[tap];
      }
    }
  };
  for (int64_t n = 0; n < input.dim(0); ++n) {
    for (int64_t c = 0; c < input.dim(1); ++c) {
      for (int64_t oc = 0; oc < out_channels; ++oc) {
        scatter(x.data() + (n * input.dim(1) + c) * window.outputs(),
                w.data() + (c * out_channels + oc) * window.taps(),
                y.data() + ((n * groups + c / in_channels) * out_channels + oc) * window.inputs());
      }
    }
  }
  return One(OfReals(call.result(), y));
}

// Each element of the input is multiplied by its channel's weights.
ir::Cost CostOfConvTranspose(const ir::InferCall& call, const ir::Type&) {
  const TensorType& weight = call.tensor(kWeight);
  return {ir::NumElements(call.tensor(kInput)) * static_cast<double>(weight.num_elements() / weight.shape[0])};
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (int n = 1; n <= 3; ++n) {
    ir::OpSchema schema;
    schema.name = absl::StrCat("conv_transpose", n, "d");
    schema.aliases = {absl::StrCat("torch.", schema.name), absl::StrCat("torch.nn.functional.", schema.name)};
    schema.operands = {
        {"input"}, {"weight", /*optional=*/false, /*parameter=*/true}, {"bias", /*optional=*/true, /*parameter=*/true}};
    schema.attributes = WindowAttributes(n);
    schema.attributes.push_back({"output_padding", AttributeKind::kInts, std::vector<int64_t>(n, 0)});
    schema.attributes.push_back({"groups", AttributeKind::kInt, 1});
    schema.module_form = true;
    schema.itemwise = true;
    schema.infer = [n](const ir::InferCall& call) { return InferConvTranspose(call, n); };
    schema.evaluate = EvaluateConvTranspose;
    schema.cost = CostOfConvTranspose;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::conv_transpose
