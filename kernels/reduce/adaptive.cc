#include "kernels/reduce/adaptive.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"

namespace fuselage::reduce {
namespace {

using kernels::KernelDesc;

constexpr int kMostAxes = 3;
constexpr int64_t kChannels = 16;    // At once: loops over them become vectors.
constexpr int64_t kGrain = 1 << 12;  // Results that are worth a thread's while.

struct Window {
  int64_t begin = 0, end = 0;  // Positions.
  int64_t stride = 0;          // In elements.
};

class AdaptiveAveragePool : public kernels::UnaryKernel {
 public:
  explicit AdaptiveAveragePool(const KernelDesc& desc)
      : UnaryKernel(desc),
        axes_(desc.input(0).rank() - 2),
        x_strides_(kernels::StridesOf(desc.input(0))),
        y_strides_(kernels::StridesOf(desc.output())) {
    set_variant("scalar");
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const Shape& shape = outputs()[0].shape;
    int64_t positions = shape[0];  // Counted through all images.
    for (int axis = 0; axis < axes_; ++axis) positions *= shape[2 + axis];
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, shape[1]));
    kernels::ForRanges(*context.parallel, positions, grain, [&](int64_t begin, int64_t end) {
      for (int64_t position = begin; position < end; ++position) {
        Position(static_cast<const float*>(x), static_cast<float*>(y), position);
      }
    });
  }

  // All channels of one position of one image.
  void Position(const float* x, float* y, int64_t position) const {
    const Shape &in = inputs()[0]->shape, &out = outputs()[0].shape;
    Window windows[kMostAxes];
    for (int axis = axes_; axis-- > 0; position /= out[2 + axis]) {
      const int64_t i = position % out[2 + axis], size = in[2 + axis];
      windows[axis] = {i * size / out[2 + axis], ((i + 1) * size + out[2 + axis] - 1) / out[2 + axis],
                       x_strides_[2 + axis]};
      y += i * y_strides_[2 + axis];
    }
    x += position * x_strides_[0];
    y += position * y_strides_[0];
    for (int64_t first = 0; first < in[1]; first += kChannels) {
      const int64_t channels = std::min(kChannels, in[1] - first);
      double means[kChannels];
      MeanOf(windows, axes_ - 1, x + first * x_strides_[1], channels, means);
      for (int64_t c = 0; c < channels; ++c) y[(first + c) * y_strides_[1]] = static_cast<float>(means[c]);
    }
  }

  // Along axis `axis` of the means along those before it.
  void MeanOf(const Window* windows, int axis, const float* x, int64_t channels, double* means) const {
    if (axis < 0) {
      for (int64_t c = 0; c < channels; ++c) means[c] = x[c * x_strides_[1]];
      return;
    }
    const Window& window = windows[axis];
    std::fill_n(means, channels, 0.0);
    for (int64_t k = window.begin; k < window.end; ++k) {
      double inner[kChannels];
      MeanOf(windows, axis - 1, x + k * window.stride, channels, inner);
      for (int64_t c = 0; c < channels; ++c) means[c] += inner[c];
    }
    for (int64_t c = 0; c < channels; ++c) means[c] /= static_cast<double>(window.end - window.begin);
  }

  const int axes_;
  const std::vector<int64_t> x_strides_, y_strides_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateAdaptive(const KernelDesc& desc) {
  if (!desc.has_input(0) || desc.input(0).rank() < 3 || desc.input(0).rank() > 2 + kMostAxes) {
    return absl::InvalidArgumentError(absl::StrCat(desc.op, ": wanted an operand [N, C, spatial...]"));
  }
  if (desc.input(0).dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat(desc.op, " of ", ToString(desc.input(0)), ", wanted f32"));
  }
  return std::make_unique<AdaptiveAveragePool>(desc);
}

}  // namespace fuselage::reduce
