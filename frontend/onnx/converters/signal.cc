// Spectra: the transforms are products with constant matrices, the windows constants.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::signal {
namespace {

using Ints = std::vector<int64_t>;

constexpr double kPi = 3.14159265358979323846;

absl::StatusOr<DType> OutputType(const Call& call) {
  const int64_t stated = call.Int("output_datatype", 1);
  absl::StatusOr<DType> dtype = ToDType(stated < 0 || stated > 255 ? -1 : static_cast<int>(stated));
  if (!dtype.ok()) return Annotate(dtype.status(), "attribute 'output_datatype'");
  return dtype;
}

absl::StatusOr<double> NumberOf(const Tensor& tensor, int i) {
  if (tensor.num_elements() == 1 && std::isfinite(tensor.At(0))) return tensor.At(0);
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, ": found ", ToString(tensor.type()), ", wanted one finite number"));
}

// A size or a number of elements.
absl::StatusOr<int64_t> CountOf(const Tensor& tensor, int i) {
  ASSIGN_OR_RETURN(const double count, NumberOf(tensor, i));
  if (count >= 0 && count <= INT32_MAX) return static_cast<int64_t>(count);
  return absl::InvalidArgumentError(absl::StrCat("input ", i, ": found ", count, ", wanted one in [0, 2^31)"));
}

absl::StatusOr<int64_t> ConstantCount(const Call& call, int i) {
  ASSIGN_OR_RETURN(const Tensor* tensor, call.Constant(i));
  return CountOf(*tensor, i);
}

// The discrete Fourier transform of `length` samples as a matrix [length * parts, bins * 2]: rows for the parts of the
// samples (real, or real and imaginary), columns for those of the bins.
struct Transform {
  int64_t length, bins, parts;
  bool inverse = false;
};
absl::StatusOr<Value> MatrixOf(Call& call, const Transform& transform, DType dtype) {
  const auto [length, bins, parts, inverse] = transform;
  ASSIGN_OR_RETURN(Tensor matrix, ChargedTensor(call, dtype, {length * parts, bins * 2}));
  const double scale = inverse ? 1 / static_cast<double>(length) : 1;
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t k = 0; k < bins; ++k) {
      // Multiples of the whole turn are taken off first: they would cost digits.
      const double turn = static_cast<double>(t * k % length) / static_cast<double>(length);
      const double angle = (inverse ? 2 : -2) * kPi * turn, real = scale * std::cos(angle);
      const double imaginary = scale * std::sin(angle);
      const int64_t at = t * parts * bins * 2 + k * 2;
      matrix.Set(at, real);
      matrix.Set(at + 1, imaginary);
      if (parts == 1) continue;
      matrix.Set(at + bins * 2, -imaginary);
      matrix.Set(at + bins * 2 + 1, real);
    }
  }
  return Builder::Constant(call.name() + ".transform", std::move(matrix));
}

// Rows of samples [..., length, parts] to [..., bins, 2].
absl::StatusOr<Value> Transformed(Call& call, const Value& x, const Transform& transform) {
  Shape shape = x.shape();
  const Shape rows = {-1, transform.length * transform.parts};
  ASSIGN_OR_RETURN(const Value matrix, MatrixOf(call, transform, x.type().dtype));
  ASSIGN_OR_RETURN(Value y, call.EmitHelper("rows", "reshape", {x}, {{"shape", rows}}));
  ASSIGN_OR_RETURN(y, call.EmitHelper("bins", "matmul", {y, matrix}));
  shape[shape.size() - 2] = transform.bins;
  shape.back() = 2;
  return call.EmitHelper("spectrum", "reshape", {y}, {{"shape", shape}});
}

// x with `length` elements on `axis`: its first ones, or zeros behind.
absl::StatusOr<Value> WithLength(Call& call, const Value& x, int axis, int64_t length) {
  const int rank = x.type().rank();
  Ints pads(2 * rank, 0);
  pads[rank + axis] = length - x.shape()[axis];
  if (pads[rank + axis] == 0) return x;
  return call.EmitHelper("length", "pad", {x}, {{"pads", pads}});
}

absl::Status CheckSignal(const TensorType& type, int least_rank) {
  const Shape& shape = type.shape;
  if (type.rank() >= least_rank && (shape.back() == 1 || shape.back() == 2) && type.num_elements() > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("found ", ToString(type), ", wanted [..., samples, 1 or 2] with elements"));
}

// The axis is an attribute before opset 20, an input from then on.
absl::Status ConvertDft(Call& call) {
  RETURN_IF_ERROR(CheckSignal(call.type(0), 2));
  const int rank = call.rank(0);
  int64_t stated = call.Int("axis", call.opset() < 20 ? 1 : -2);
  if (call.opset() < 20 ? call.has(2) : call.HasAttribute("axis")) {
    return absl::InvalidArgumentError("wanted the axis as an attribute before opset 20, as an input from then on");
  }
  if (call.has(2)) {
    ASSIGN_OR_RETURN(const Ints list, call.ConstantInts(2));
    if (list.size() != 1) return absl::InvalidArgumentError("input 2: wanted one axis");
    stated = list[0];
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(stated, rank));
  if (axis == rank - 1) return absl::InvalidArgumentError("found the axis of real and imaginary parts, wanted another");
  ASSIGN_OR_RETURN(const bool inverse, call.Flag("inverse", false));
  ASSIGN_OR_RETURN(const bool onesided, call.Flag("onesided", false));
  int64_t length = call.shape(0)[axis];
  if (call.has(1)) {
    ASSIGN_OR_RETURN(length, ConstantCount(call, 1));
  }
  if (length < 1) return absl::InvalidArgumentError("input 1: found a length of 0, wanted at least one sample");
  const AttributeMap swap = {{"dim0", axis}, {"dim1", rank - 2}};
  ASSIGN_OR_RETURN(Value x, WithLength(call, call.operand(0), axis, length));
  if (axis != rank - 2) {
    ASSIGN_OR_RETURN(x, call.EmitHelper("samples", "transpose", {x}, swap));
  }
  ASSIGN_OR_RETURN(x,
                   Transformed(call, x, {length, onesided ? length / 2 + 1 : length, call.shape(0).back(), inverse}));
  return axis == rank - 2 ? call.Result("identity", {x}) : call.Result("transpose", {x}, swap);
}

// Frames, one every frame_step samples, each weighted by the window and transformed. PyTorch exports a real signal as
// [batch, samples], which the standard has as [batch, samples, 1].
absl::Status ConvertStft(Call& call) {
  Value signal = call.operand(0);
  if (call.rank(0) == 2) {
    ASSIGN_OR_RETURN(signal, call.EmitHelper("signal", "unsqueeze", {signal}, {{"dims", Ints{-1}}}));
  }
  RETURN_IF_ERROR(CheckSignal(signal.type(), 3));
  ASSIGN_OR_RETURN(const int64_t step, ConstantCount(call, 1));
  ASSIGN_OR_RETURN(const bool onesided, call.Flag("onesided", true));
  const int64_t samples = signal.shape()[1], parts = signal.shape()[2];
  int64_t length = call.has(2) && call.rank(2) == 1 ? call.shape(2)[0] : samples;
  if (call.has(3)) {
    ASSIGN_OR_RETURN(length, ConstantCount(call, 3));
  }
  if (signal.type().rank() != 3 || step < 1 || length < 1 || length > samples ||
      (call.has(2) && call.shape(2) != Shape{length})) {
    return absl::InvalidArgumentError(absl::StrCat("found frames of ", length, ", one every ", step, " samples, of ",
                                                   ToString(signal.type()),
                                                   ", wanted them to fit, and a window as long"));
  }
  const int64_t frames = 1 + (samples - length) / step;
  ASSIGN_OR_RETURN(Tensor places, ChargedTensor(call, DType::kI64, {frames, length}));
  for (int64_t i = 0; i < frames * length; ++i) places.data<int64_t>()[i] = i / length * step + i % length;
  const Value index = Builder::Constant(call.name() + ".frames", std::move(places));
  ASSIGN_OR_RETURN(Value x, call.EmitHelper("framed", "index_select", {signal, index}, {{"dim", 1}}));
  if (call.has(2)) {
    const Shape column = {length, 1};
    ASSIGN_OR_RETURN(const Value window, call.EmitHelper("window", "reshape", {call.operand(2)}, {{"shape", column}}));
    ASSIGN_OR_RETURN(x, call.EmitHelper("windowed", "mul", {x, window}));
  }
  ASSIGN_OR_RETURN(x, Transformed(call, x, {length, onesided ? length / 2 + 1 : length, parts}));
  return call.Result("identity", {x});
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N).
absl::Status ConvertWindow(Call& call) {
  struct Window {
    absl::string_view name;
    double a0, a1, a2;
  };
  static constexpr Window kWindows[] = {
      {"BlackmanWindow", 0.42, 0.5, 0.08}, {"HammingWindow", 25.0 / 46, 21.0 / 46, 0}, {"HannWindow", 0.5, 0.5, 0}};
  const Window& window = *std::find_if(std::begin(kWindows), std::end(kWindows),
                                       [&](const Window& w) { return w.name == call.operator_name(); });
  ASSIGN_OR_RETURN(const DType dtype, OutputType(call));
  ASSIGN_OR_RETURN(const bool periodic, call.Flag("periodic", true));
  return FoldResult(call, {0}, [&](absl::Span<const Tensor* const> operands) -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const int64_t size, CountOf(*operands[0], 0));
    ASSIGN_OR_RETURN(Tensor result, ChargedTensor(call, dtype, {size}));
    const auto period = static_cast<double>(std::max<int64_t>(periodic ? size : size - 1, 1));
    for (int64_t i = 0; i < size; ++i) {
      const double angle = 2 * kPi * static_cast<double>(i) / period;
      result.Set(i, window.a0 - window.a1 * std::cos(angle) + window.a2 * std::cos(2 * angle));
    }
    return result;
  });
}

// Triangles between neighbouring mel frequencies, as columns over the bins of a spectrum.
absl::Status FillTriangles(const std::vector<int64_t>& edges, Tensor* result) {
  const int64_t rows = result->dim(0), columns = result->dim(1);
  for (const int64_t edge : edges) {
    if (edge < 0 || edge >= rows) {
      return absl::InvalidArgumentError(
          absl::StrCat("found frequencies up to bin ", edge, ", wanted less than ", rows));
    }
  }
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t low = edges[column], center = edges[column + 1], high = edges[column + 2];
    for (int64_t row = low; row <= center; ++row) {
      const double up = low == center ? 1 : static_cast<double>(row - low) / static_cast<double>(center - low);
      result->Set(row * columns + column, up);
    }
    for (int64_t row = center; row < high; ++row) {
      result->Set(row * columns + column, static_cast<double>(high - row) / static_cast<double>(high - center));
    }
  }
  return absl::OkStatus();
}

// The formula is the standard's, down to its step, which is a little less than what would end at the upper edge.
absl::Status ConvertMelWeightMatrix(Call& call) {
  ASSIGN_OR_RETURN(const DType dtype, OutputType(call));
  return FoldResult(call, {0, 1, 2, 3, 4}, [&](absl::Span<const Tensor* const> in) -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const int64_t bins, CountOf(*in[0], 0));
    ASSIGN_OR_RETURN(const int64_t length, CountOf(*in[1], 1));
    ASSIGN_OR_RETURN(const int64_t rate, CountOf(*in[2], 2));
    ASSIGN_OR_RETURN(const double low, NumberOf(*in[3], 3));
    ASSIGN_OR_RETURN(const double high, NumberOf(*in[4], 4));
    if (rate < 1 || low < 0 || high < low) {
      return absl::InvalidArgumentError(absl::StrCat("found frequencies from ", low, " to ", high, " at ", rate,
                                                     " samples a second, wanted a range"));
    }
    const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    ASSIGN_OR_RETURN(Tensor result, ChargedTensor(call, dtype, {length / 2 + 1, bins}));
    const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
    std::vector<int64_t> edges;
    for (int64_t i = 0; i < bins + 2; ++i) {
      const double hertz = 700 * (std::pow(10, (mel(low) + static_cast<double>(i) * step) / 2595) - 1);
      edges.push_back(
          static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
    }
    RETURN_IF_ERROR(FillTriangles(edges, &result));
    return result;
  });
}

constexpr char kWindow[] = "output_datatype=INT periodic=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"BlackmanWindow", 17, {1, 1}, {1, 1}, kWindow, ConvertWindow},
      {"DFT", 17, {1, 3}, {1, 1}, "axis=INT inverse=INT onesided=INT", ConvertDft},
      {"HammingWindow", 17, {1, 1}, {1, 1}, kWindow, ConvertWindow},
      {"HannWindow", 17, {1, 1}, {1, 1}, kWindow, ConvertWindow},
      {"MelWeightMatrix", 17, {5, 5}, {1, 1}, "output_datatype=INT", ConvertMelWeightMatrix},
      {"STFT", 17, {2, 4}, {1, 1}, "onesided=INT", ConvertStft},
  });
}

}  // namespace fuselage::onnx::converters::signal
