// conv1d..3d and conv_transpose1d..3d as matrix products, whose left factor is gathered tap by tap; depthwise
// convolutions by channels.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/variant.h"
#include "kernels/reproducible/families.h"
#include "kernels/reproducible/operands.h"
#include "kernels/reproducible/product.h"

namespace fuselage::reproducible {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

struct Convolution {
  Window window;  // A transposed one has it too: output o has its taps at (o + begin - t * dilation) / stride.
  bool transposed = false, residual = false;
  Activation activation;
  int64_t groups = 1, in_channels = 0, out_channels = 0;  // Channels of one group.
  ImageStrides x, y;
  std::vector<float> weight, bias;  // bias: empty where there is none.
};

absl::StatusOr<Convolution> ConvolutionOf(const KernelDesc& desc, bool transposed) {
  RETURN_IF_ERROR(CheckFloats(desc));
  ASSIGN_OR_RETURN(std::vector<float> weight, FloatsOf(desc, "weight"));
  const Shape& shape = desc.ParameterOrNull("weight")->shape();
  if (shape.size() < 3) return absl::InvalidArgumentError(absl::StrCat("weight ", ToString(shape), ", want rank 3"));
  ASSIGN_OR_RETURN(const Window window, WindowOf(desc, {shape.begin() + 2, shape.end()}));
  Convolution c{window,
                transposed,
                /*residual=*/false,
                Activation(),
                desc.GetInt("groups"),
                0,
                0,
                ImageStrides(desc.input(0)),
                ImageStrides(desc.output()),
                std::move(weight),
                {}};
  const int64_t in = desc.input(0).shape[1], out = desc.output().shape[1];
  c.in_channels = c.groups < 1 ? 0 : in / c.groups;
  c.out_channels = c.groups < 1 ? 0 : out / c.groups;
  const Shape wanted = transposed ? Shape{in, c.out_channels} : Shape{out, c.in_channels};
  if (c.groups < 1 || in % c.groups != 0 || out % c.groups != 0 ||
      !std::equal(wanted.begin(), wanted.end(), shape.begin())) {
    return absl::InvalidArgumentError(absl::StrCat("weight ", ToString(shape), " with ", c.groups, " groups on ",
                                                   ToString(desc.input(0)), " to ", ToString(desc.output())));
  }
  if (desc.ParameterOrNull("bias") != nullptr) {
    ASSIGN_OR_RETURN(c.bias, FloatsOf(desc, "bias"));
  }
  if (transposed) return c;
  ASSIGN_OR_RETURN(c.activation, ParseActivation(desc.GetString("activation")));
  c.residual = desc.has_input(1);
  return c;
}

// y = activation(sums + residual), of `n` channels from `offset` on.
void StorePosition(const Convolution& c, const Primitives& primitives, const float* sums, const float* residual,
                   int64_t offset, int64_t n, float* y) {
  const int64_t step = c.y.channel;
  const auto value = [&](int64_t i, int64_t at) { return residual != nullptr ? sums[i] + residual[at] : sums[i]; };
  if (step != 1) {
    for (int64_t i = 0; i < n; ++i) y[offset + i * step] = c.activation(value(i, offset + i * step));
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[offset + i] = value(i, offset + i);
  Activate(primitives, c.activation, y + offset, n);
}

// Where the input lies under the taps of an output: At(tap) along each axis, negative in the padding.
class Taps {
 public:
  Taps(const Window& window, bool transposed) : window_(window), transposed_(transposed) {
    for (int64_t i = 0; i < window.axes[0].kernel; ++i) {
      for (int64_t j = 0; j < window.axes[1].kernel; ++j) {
        for (int64_t k = 0; k < window.axes[2].kernel; ++k) {
          offsets_.push_back({i * window.axes[0].dilation, j * window.axes[1].dilation, k * window.axes[2].dilation});
        }
      }
    }
  }

  // What is common to all taps of an output.
  Coordinates Origin(const Coordinates& output) const {
    Coordinates origin;
    for (int i = 0; i < 3; ++i) {
      const WindowAxis& axis = window_.axes[i];
      origin[i] = transposed_ ? output[i] + axis.begin : output[i] * axis.stride - axis.begin;
    }
    return origin;
  }

  int64_t Source(const Coordinates& origin, int64_t tap, int i) const {
    const WindowAxis& axis = window_.axes[i];
    if (!transposed_) {
      const int64_t at = origin[i] + offsets_[tap][i];
      return at < axis.in ? at : -1;
    }
    // Between the strides there is nothing either.
    const int64_t at = origin[i] - offsets_[tap][i];
    return at >= 0 && at % axis.stride == 0 && at / axis.stride < axis.in ? at / axis.stride : -1;
  }

  // The input's position, or -1.
  int64_t Position(const Coordinates& origin, int64_t tap) const {
    const int64_t d = Source(origin, tap, 0), h = Source(origin, tap, 1), w = Source(origin, tap, 2);
    return d < 0 || h < 0 || w < 0 ? -1 : window_.At(d, h, w);
  }

 private:
  const Window window_;
  const bool transposed_;
  std::vector<Coordinates> offsets_;
};

class ConvKernel final : public ProductKernel {
 public:
  ConvKernel(const KernelDesc& desc, const Primitives& primitives, Convolution c)
      : ProductKernel(
            desc, primitives,
            {desc.input(0).shape[0] * c.groups, c.window.positions(), c.window.taps() * c.in_channels, c.out_channels}),
        c_(std::move(c)),
        taps_(c_.window, c_.transposed) {
    const WindowAxis& width = c_.window.axes[2];
    // The taps of a row of the window lie side by side, all channels of each.
    rows_of_taps_ = !c_.transposed && c_.groups == 1 && c_.x.channel == 1 && width.dilation == 1;
    const int64_t taps = c_.window.taps(), filter = c_.in_channels * taps;
    std::vector<RightFactor> factors;
    for (int64_t g = 0; g < c_.groups; ++g) {
      const float* weight = c_.weight.data() + g * c_.out_channels * filter;
      factors.push_back(c_.transposed ? RightFactor{weight, c_.in_channels, 1, c_.out_channels * taps, taps}
                                      : RightFactor{weight, c_.in_channels, 1, taps, filter});
    }
    PackRight(desc, absl::StrCat(c_.transposed ? "conv_transpose " : "conv ", c_.groups), factors);
    c_.weight = {};
  }

 private:
  // For one tap, or a row of them: elements [first, last) are at `data`, the others zero.
  struct Run {
    const float* data = nullptr;
    int64_t first = 0, last = 0;
  };

  Run RunOf(const float* image, const Coordinates& origin, int64_t tap) const {
    if (!rows_of_taps_) {
      const int64_t at = taps_.Position(origin, tap);
      return at < 0 ? Run() : Run{image + at * c_.x.position, 0, c_.in_channels};
    }
    const WindowAxis& width = c_.window.axes[2];
    const int64_t d = taps_.Source(origin, tap, 0), h = taps_.Source(origin, tap, 1), w = origin[2];
    const int64_t first = std::max<int64_t>(-w, 0), last = std::min(width.in - w, width.kernel);
    if (d < 0 || h < 0 || first >= last) return {};
    return {image + c_.window.At(d, h, w + first) * c_.in_channels, first * c_.in_channels, last * c_.in_channels};
  }

  // Elements [from, to) of the run.
  void Copy(const Run& run, int64_t from, int64_t to, float* out) const {
    const int64_t first = std::clamp(run.first, from, to), last = std::clamp(run.last, first, to);
    std::fill(out, out + (first - from), 0.0f);
    const float* data = run.data + (first - run.first) * c_.x.channel;
    if (c_.x.channel == 1) {
      if (first < last) std::memcpy(out + (first - from), data, (last - first) * sizeof(float));
    } else {
      for (int64_t i = 0; i < last - first; ++i) out[first - from + i] = data[i * c_.x.channel];
    }
    std::fill(out + (last - from), out + (to - from), 0.0f);
  }

  void FillLeft(Inputs inputs, const LeftPiece& piece, float* out) const override {
    const int64_t n = piece.product / c_.groups, g = piece.product % c_.groups;
    const float* image = static_cast<const float*>(inputs[0].data) + n * c_.x.image + g * c_.in_channels * c_.x.channel;
    const int64_t taps = rows_of_taps_ ? c_.window.axes[2].kernel : 1, length = taps * c_.in_channels;
    const int64_t first = piece.begin / length, skipped = piece.begin % length;
    Coordinates output = c_.window.Position(piece.row);
    for (int64_t i = 0; i < piece.rows; ++i, c_.window.Advance(output)) {
      const Coordinates origin = taps_.Origin(output);
      float* to = out + i * kRowStride;
      float* const end = to + (piece.end - piece.begin);
      for (int64_t run = first, from = skipped; to < end; ++run, from = 0) {
        const int64_t until = std::min(length, from + (end - to));
        Copy(RunOf(image, origin, run * taps), from, until, to);
        to += until - from;
      }
    }
  }

  const float* Bias(int64_t product) const override {
    return c_.bias.empty() ? nullptr : c_.bias.data() + product % c_.groups * c_.out_channels;
  }

  void Store(Inputs inputs, void* output, int64_t product, int64_t row, int64_t begin, int64_t end,
             const float* sums) const override {
    const int64_t channel = product % c_.groups * c_.out_channels + begin;
    const int64_t offset = product / c_.groups * c_.y.image + row * c_.y.position + channel * c_.y.channel;
    StorePosition(c_, primitives(), sums, c_.residual ? static_cast<const float*>(inputs[1].data) : nullptr, offset,
                  end - begin, static_cast<float*>(output));
  }

  Convolution c_;
  const Taps taps_;
  bool rows_of_taps_ = false;
};

// A channel of input for each of output, channels innermost in memory.
class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(const KernelDesc& desc, const Primitives& primitives, Convolution c)
      : Kernel(desc),
        primitives_(primitives),
        c_(std::move(c)),
        taps_(c_.window, /*transposed=*/false),
        channels_(c_.groups),
        num_taps_(c_.window.taps()),
        images_(desc.input(0).shape[0]),
        zeros_(channels_, 0.0f) {
    std::vector<float> by_tap(c_.weight.size());
    for (int64_t t = 0; t < num_taps_; ++t) {
      for (int64_t i = 0; i < channels_; ++i) by_tap[t * channels_ + i] = c_.weight[i * num_taps_ + t];
    }
    c_.weight = std::move(by_tap);
    // Pointers to the taps of a position, and its sums.
    thread_bytes_ = (num_taps_ * static_cast<int64_t>(sizeof(float*)) + channels_ * 4 + 63) / 64 * 64;
    set_scratch_bytes(std::max(desc.threads, 1) * thread_bytes_);
    set_weight_bytes(static_cast<int64_t>(c_.weight.size()) * 4);
    set_variant(absl::StrCat(primitives.name, " depthwise"));
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const int64_t row = c_.window.axes[2].out, rows = c_.window.positions() / row;
    const float* residual = c_.residual ? static_cast<const float*>(inputs[1].data) : nullptr;
    context.parallel->For(static_cast<int>(images_ * rows), [&](int task, int thread) {
      auto* scratch = static_cast<uint8_t*>(context.scratch.data) + thread * thread_bytes_;
      const float** from = reinterpret_cast<const float**>(scratch);
      float* sums = reinterpret_cast<float*>(scratch + num_taps_ * sizeof(float*));
      const int64_t n = task / rows;
      const float* image = static_cast<const float*>(inputs[0].data) + n * c_.x.image;
      for (int64_t i = 0; i < row; ++i) {
        const int64_t position = task % rows * row + i;
        const Coordinates origin = taps_.Origin(c_.window.Position(position));
        for (int64_t t = 0; t < num_taps_; ++t) {
          const int64_t at = taps_.Position(origin, t);
          from[t] = at < 0 ? zeros_.data() : image + at * c_.x.position;
        }
        if (c_.bias.empty()) {
          std::fill_n(sums, channels_, 0.0f);
        } else {
          std::copy_n(c_.bias.data(), channels_, sums);
        }
        primitives_.depthwise(from, c_.weight.data(), num_taps_, channels_, sums);
        StorePosition(c_, primitives_, sums, residual, n * c_.y.image + position * c_.y.position, channels_,
                      static_cast<float*>(outputs[0].data));
      }
    });
  }

  const Primitives& primitives_;
  Convolution c_;
  const Taps taps_;
  const int64_t channels_, num_taps_, images_;
  const std::vector<float> zeros_;
  int64_t thread_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc, Table table, bool transposed) {
  ASSIGN_OR_RETURN(Convolution c, ConvolutionOf(desc, transposed));
  const Primitives& primitives = kernels::BestVariant(table, desc.isa);
  const bool depthwise =
      !transposed && c.in_channels == 1 && c.out_channels == 1 && c.x.channel == 1 && c.y.channel == 1;
  if (depthwise) return std::make_unique<DepthwiseKernel>(desc, primitives, std::move(c));
  return std::make_unique<ConvKernel>(desc, primitives, std::move(c));
}

}  // namespace

void RegisterConv(Table table, kernels::KernelRegistry& registry) {
  for (const char* suffix : {"1d", "2d", "3d"}) {
    for (const bool transposed : {false, true}) {
      registry.Register({absl::StrCat(transposed ? "conv_transpose" : "conv", suffix), kernels::LayoutRule::kNhwc,
                         [=](const KernelDesc& desc) { return Create(desc, table, transposed); }});
    }
  }
}

}  // namespace fuselage::reproducible
