// max_pool1d..3d, avg_pool1d..3d and global_avg_pool. A maximum that has seen NaN is NaN; that of no element is -inf. A
// mean is a sum in double, in row-major order, divided once.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/reproducible/families.h"
#include "kernels/reproducible/operands.h"

namespace fuselage::reproducible {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

// The taps of one output along an axis that lie inside the input: [begin, end), from position `start` on.
struct Taps {
  Taps(const WindowAxis& axis, int64_t output) : start(output * axis.stride - axis.begin) {
    begin = start < 0 ? std::min(axis.kernel, (-start + axis.dilation - 1) / axis.dilation) : 0;
    end = start >= axis.in ? 0 : std::min(axis.kernel, (axis.in - start + axis.dilation - 1) / axis.dilation);
    end = std::max(begin, end);
    const int64_t room = axis.in + axis.end - start;
    padded = std::min(axis.kernel, (room + axis.dilation - 1) / axis.dilation);
  }
  int64_t start, begin, end;
  int64_t padded;  // How many lie inside the padded input.
};

class Pool : public kernels::UnaryKernel {
 public:
  Pool(const KernelDesc& desc, const Window& window)
      : UnaryKernel(desc),
        window_(window),
        images_(desc.input(0).shape[0]),
        channels_(desc.input(0).shape[1]),
        x_(desc.input(0)),
        y_(desc.output()) {
    set_scratch_bytes(std::max(desc.threads, 1) * channels_ * static_cast<int64_t>(sizeof(double)));
  }

 protected:
  // One output position, all channels: `x` is the image's first element, y the position's.
  virtual void ComputePosition(const float* x, const Taps (&taps)[3], double* sums, float* y) const = 0;

  // Calls visit(x of the tap's first channel), in row-major order.
  template <typename Visit>
  void ForEachTap(const float* x, const Taps (&taps)[3], Visit visit) const {
    const auto& axes = window_.axes;
    for (int64_t i = taps[0].begin; i < taps[0].end; ++i) {
      for (int64_t j = taps[1].begin; j < taps[1].end; ++j) {
        for (int64_t k = taps[2].begin; k < taps[2].end; ++k) {
          visit(x + window_.At(taps[0].start + i * axes[0].dilation, taps[1].start + j * axes[1].dilation,
                               taps[2].start + k * axes[2].dilation) *
                        x_.position);
        }
      }
    }
  }

  const Window window_;
  const int64_t images_, channels_;
  const ImageStrides x_, y_;

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const final {
    const int64_t row = window_.axes[2].out, rows = window_.positions() / row;
    context.parallel->For(static_cast<int>(images_ * rows), [&](int task, int thread) {
      double* sums = static_cast<double*>(context.scratch.data) + thread * channels_;
      const int64_t n = task / rows;
      for (int64_t i = 0; i < row; ++i) {
        const int64_t position = task % rows * row + i;
        const std::array<int64_t, 3> at = window_.Position(position);
        const Taps taps[3] = {{window_.axes[0], at[0]}, {window_.axes[1], at[1]}, {window_.axes[2], at[2]}};
        ComputePosition(static_cast<const float*>(x) + n * x_.image, taps, sums,
                        static_cast<float*>(y) + n * y_.image + position * y_.position);
      }
    });
  }
};

class MaxPool final : public Pool {
 public:
  MaxPool(const KernelDesc& desc, const Window& window) : Pool(desc, window) { set_variant("scalar"); }

 private:
  void ComputePosition(const float* x, const Taps (&taps)[3], double*, float* y) const override {
    for (int64_t c = 0; c < channels_; ++c) y[c * y_.channel] = -std::numeric_limits<float>::infinity();
    ForEachTap(x, taps, [&](const float* tap) {
      const auto take = [&](int64_t in, int64_t out) {
        for (int64_t c = 0; c < channels_; ++c) {
          const float value = tap[c * in], best = y[c * out];
          y[c * out] = value > best || value != value ? value : best;
        }
      };
      x_.channel == 1 && y_.channel == 1 ? take(1, 1) : take(x_.channel, y_.channel);
    });
  }
};

class AvgPool final : public Pool {
 public:
  AvgPool(const KernelDesc& desc, const Window& window, bool count_include_pad)
      : Pool(desc, window), count_include_pad_(count_include_pad) {
    set_variant("double");
  }

 private:
  void ComputePosition(const float* x, const Taps (&taps)[3], double* sums, float* y) const override {
    std::fill_n(sums, channels_, 0.0);
    ForEachTap(x, taps, [&](const float* tap) {
      const auto add = [&](int64_t in) {
        for (int64_t c = 0; c < channels_; ++c) sums[c] += tap[c * in];
      };
      x_.channel == 1 ? add(1) : add(x_.channel);
    });
    int64_t count = 1;
    for (const Taps& axis : taps) count *= count_include_pad_ ? axis.padded : axis.end - axis.begin;
    const double divisor = static_cast<double>(count);
    for (int64_t c = 0; c < channels_; ++c) {
      y[c * y_.channel] = count == 0 ? 0.0f : static_cast<float>(sums[c] / divisor);
    }
  }

  const bool count_include_pad_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreatePool(const KernelDesc& desc, bool max) {
  RETURN_IF_ERROR(CheckFloats(desc));
  ASSIGN_OR_RETURN(const Window window, WindowOf(desc, desc.GetInts("kernel_size")));
  if (max) return std::make_unique<MaxPool>(desc, window);
  return std::make_unique<AvgPool>(desc, window, desc.GetBool("count_include_pad"));
}

// All positions are one line of taps.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGlobalAverage(const KernelDesc& desc) {
  RETURN_IF_ERROR(CheckFloats(desc));
  if (desc.input(0).rank() < 3) return absl::UnimplementedError(absl::StrCat("input ", ToString(desc.input(0))));
  Window window;
  window.axes[2].in = window.axes[2].kernel =
      desc.input(0).num_elements() / (desc.input(0).shape[0] * desc.input(0).shape[1]);
  return std::make_unique<AvgPool>(desc, window, /*count_include_pad=*/false);
}

}  // namespace

void RegisterPool(kernels::KernelRegistry& registry) {
  for (const char* suffix : {"1d", "2d", "3d"}) {
    for (const bool max : {true, false}) {
      registry.Register({absl::StrCat(max ? "max_pool" : "avg_pool", suffix), kernels::LayoutRule::kNhwc,
                         [=](const KernelDesc& desc) { return CreatePool(desc, max); }});
    }
  }
  registry.Register({"global_avg_pool", kernels::LayoutRule::kNhwc, CreateGlobalAverage});
}

}  // namespace fuselage::reproducible
