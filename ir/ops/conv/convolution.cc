#include "ir/ops/conv/convolution.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/core/checks.h"

namespace fuselage::ops::conv {
namespace {

absl::StatusOr<Window> WindowOf(const ir::OpCall& call, const Shape& input, const Shape& weight) {
  WindowParams params;
  params.input = absl::MakeConstSpan(input).subspan(2);
  params.kernel = absl::MakeConstSpan(weight).subspan(2);
  params.stride = call.GetInts("stride");
  params.padding = call.GetInts("padding");
  params.dilation = call.GetInts("dilation");
  return MakeWindow(params);
}

Convolution Assemble(const Window& window, int64_t groups, const Shape& input, const Shape& weight) {
  Convolution convolution;
  convolution.window = window;
  convolution.batch = input[0];
  convolution.groups = groups;
  convolution.in_channels = weight[1];
  convolution.out_channels = weight[0] / groups;
  return convolution;
}

// Blocks of the implicit im2col matrix: `kTaps` rows (weight elements) of `kPixels` columns (output pixels) stay in
// the cache while all output channels of the group use them.
constexpr int64_t kPixels = 128, kTaps = 64;

// columns[t][p] = the input under tap `first_tap + t` of output `first_pixel + p`; zero in the padding.
template <typename T>
void FillColumns(const Window& window, const T* input, int64_t first_tap, int64_t taps, int64_t first_pixel,
                 int64_t pixels, T* columns) {
  const WindowAxis& depth = window.axes[0];
  const WindowAxis& height = window.axes[1];
  const WindowAxis& width = window.axes[2];
  int64_t d0[kPixels], h0[kPixels], w0[kPixels];
  for (int64_t p = 0; p < pixels; ++p) {
    const int64_t output = first_pixel + p;
    w0[p] = output % width.output * width.stride - width.begin;
    h0[p] = output / width.output % height.output * height.stride - height.begin;
    d0[p] = output / (width.output * height.output) * depth.stride - depth.begin;
  }
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t tap = first_tap + t;
    const int64_t dw = tap % width.kernel * width.dilation;
    const int64_t dh = tap / width.kernel % height.kernel * height.dilation;
    const int64_t dd = tap / (width.kernel * height.kernel) % depth.kernel * depth.dilation;
    const T* plane = input + tap / window.taps() * window.inputs();
    T* row = columns + t * kPixels;
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t d = d0[p] + dd, h = h0[p] + dh, w = w0[p] + dw;
      const bool inside = d >= 0 && d < depth.input && h >= 0 && h < height.input && w >= 0 && w < width.input;
      row[p] = inside ? plane[(d * height.input + h) * width.input + w] : T{0};
    }
  }
}

// row[p] += sum_t weight[t] * columns[t][p], in the order of t; four at a time spare the row's loads and stores.
template <typename T>
void Accumulate(const T* weight, int64_t taps, const T* columns, int64_t pixels, T* __restrict row) {
  int64_t t = 0;
  for (; t + 4 <= taps; t += 4) {
    const T a = weight[t], b = weight[t + 1], c = weight[t + 2], d = weight[t + 3];
    const T* __restrict x = columns + t * kPixels;
    for (int64_t p = 0; p < pixels; ++p) {
      row[p] = row[p] + a * x[p] + b * x[kPixels + p] + c * x[2 * kPixels + p] + d * x[3 * kPixels + p];
    }
  }
  for (; t < taps; ++t) {
    for (int64_t p = 0; p < pixels; ++p) row[p] += weight[t] * columns[t * kPixels + p];
  }
}

template <typename T>
void ConvolveBlocks(const Convolution& c, const T* input, const T* weight, T* result) {
  const int64_t taps = c.in_channels * c.window.taps();
  const int64_t pixels = c.window.outputs();
  std::vector<T> columns(kTaps * kPixels);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t group = 0; group < c.groups; ++group) {
      const T* in = input + (n * c.groups + group) * c.in_channels * c.window.inputs();
      T* out = result + (n * c.groups + group) * c.out_channels * pixels;
      const T* filters = weight + group * c.out_channels * taps;
      for (int64_t p = 0; p < pixels; p += kPixels) {
        const int64_t width = std::min(kPixels, pixels - p);
        for (int64_t t = 0; t < taps; t += kTaps) {
          const int64_t depth = std::min(kTaps, taps - t);
          FillColumns(c.window, in, t, depth, p, width, columns.data());
          for (int64_t oc = 0; oc < c.out_channels; ++oc) {
            Accumulate(filters + oc * taps + t, depth, columns.data(), width, out + oc * pixels + p);
          }
        }
      }
    }
  }
}

}  // namespace

Shape Convolution::ResultShape(int n) const {
  Shape shape = {batch, groups * out_channels};
  for (int64_t dim : OutputShape(window, n)) shape.push_back(dim);
  return shape;
}

ir::OpSchema ConvolutionSchema(int n) {
  ir::OpSchema schema;
  schema.operands = {{"input"},
                     {"weight", /*optional=*/false, /*parameter=*/true, /*variadic=*/false, /*channel_axis=*/0},
                     {"bias", /*optional=*/true, /*parameter=*/true},
                     {"residual", /*optional=*/true}};
  schema.attributes = WindowAttributes(n);
  schema.attributes.push_back({"groups", AttributeKind::kInt, 1});
  schema.attributes.push_back({"activation", AttributeKind::kString, "none"});
  schema.module_form = true;
  schema.itemwise = true;
  schema.cost = CostOfConvolution;
  return schema;
}

ir::Cost CostOfConvolution(const ir::InferCall& call, const ir::Type& result) {
  const TensorType& weight = call.tensor(kWeight);
  return {ir::NumElements(result) * static_cast<double>(weight.num_elements() / weight.shape[0])};
}

absl::StatusOr<Convolution> CheckGeometry(const ir::InferCall& call, int n) {
  RETURN_IF_ERROR(CheckRank(call, kInput, n + 2));
  RETURN_IF_ERROR(CheckRank(call, kWeight, n + 2));
  RETURN_IF_ERROR(CheckWindowAttributes(call, n));
  const Shape& input = call.tensor(kInput).shape;
  const Shape& weight = call.tensor(kWeight).shape;
  const int64_t groups = call.GetInt("groups");
  if (groups < 1) return AttributeError(call, "groups", "at least 1");
  if (weight[0] < 1 || weight[1] < 1) return OperandError(call, kWeight, "wanted at least one channel");
  if (weight[0] % groups != 0) {
    return OperandError(call, kWeight,
                        absl::StrCat(weight[0], " output channels, wanted a multiple of groups=", groups));
  }
  int64_t channels;
  if (__builtin_mul_overflow(weight[1], groups, &channels) || channels != input[1]) {
    return OperandError(call, kInput,
                        absl::StrCat(input[1], " channels, wanted ", weight[1], " (weight ", ToString(weight),
                                     ") times groups=", groups));
  }
  ASSIGN_OR_RETURN(const Window window, WindowOf(call, input, weight));
  return Assemble(window, groups, input, weight);
}

absl::StatusOr<Convolution> CheckConvolution(const ir::InferCall& call, int n) {
  ASSIGN_OR_RETURN(const Convolution convolution, CheckGeometry(call, n));
  RETURN_IF_ERROR(ParseActivation(call.GetString("activation")).status());
  if (call.has(kBias)) RETURN_IF_ERROR(CheckShape(call, kBias, {call.tensor(kWeight).shape[0]}));
  if (call.has(kResidual)) RETURN_IF_ERROR(CheckShape(call, kResidual, convolution.ResultShape(n)));
  return convolution;
}

Convolution ConvolutionOf(const ir::OpCall& call, const Shape& input, const Shape& weight) {
  absl::StatusOr<Window> window = WindowOf(call, input, weight);
  FUSELAGE_CHECK(window.ok());
  return Assemble(*window, call.GetInt("groups"), input, weight);
}

template <typename T>
void Convolve(const Convolution& convolution, const T* input, const T* weight, T* result) {
  if constexpr (std::is_same_v<T, int64_t>) {  // Unsigned: wraps without undefined behaviour.
    ConvolveBlocks(convolution, reinterpret_cast<const uint64_t*>(input), reinterpret_cast<const uint64_t*>(weight),
                   reinterpret_cast<uint64_t*>(result));
  } else {
    ConvolveBlocks(convolution, input, weight, result);
  }
}

template void Convolve(const Convolution&, const double*, const double*, double*);
template void Convolve(const Convolution&, const int64_t*, const int64_t*, int64_t*);

}  // namespace fuselage::ops::conv
