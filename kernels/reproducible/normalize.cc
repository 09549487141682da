// softmax, layer_norm, and batch_norm with the running statistics: sums in double, layer_norm's by kernels/norm, else
// in row-major order.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"
#include "kernels/core/variant.h"
#include "kernels/norm/norm.h"
#include "kernels/reproducible/families.h"
#include "kernels/reproducible/operands.h"

namespace fuselage::reproducible {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;
using kernels::RunContext;

constexpr int64_t kGrain = 1 << 13;  // Elements that are worth a thread's while.

int64_t Grain(int64_t line) { return std::max<int64_t>(1, kGrain / line); }

class Softmax final : public kernels::UnaryKernel {
 public:
  Softmax(const KernelDesc& desc, const Primitives& primitives, int axis)
      : UnaryKernel(desc),
        primitives_(primitives),
        length_(desc.input(0).shape[axis]),
        stride_(kernels::StridesOf(desc.input(0))[axis]),
        lines_(desc.input(0).num_elements() / length_) {
    set_scratch_bytes(std::max(desc.threads, 1) * length_ * static_cast<int64_t>(sizeof(float)));
    set_variant(primitives.name);
  }

 private:
  void ComputeUnary(const void* x, void* y, const RunContext& context) const override {
    const int64_t tasks = (lines_ + Grain(length_) - 1) / Grain(length_);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
      float* line = static_cast<float*>(context.scratch.data) + thread * length_;
      const int64_t begin = task * Grain(length_), end = std::min(lines_, begin + Grain(length_));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / stride_ * stride_ * length_ + i % stride_;
        ComputeLine(static_cast<const float*>(x) + first, static_cast<float*>(y) + first, line);
      }
    });
  }

  void ComputeLine(const float* x, float* y, float* line) const {
    float largest = x[0];
    for (int64_t k = 0; k < length_; ++k) {
      line[k] = x[k * stride_];
      largest = std::max(largest, line[k]);
    }
    primitives_.exponentials(line, largest, length_, line);
    double sum = 0;
    for (int64_t k = 0; k < length_; ++k) sum += line[k];
    for (int64_t k = 0; k < length_; ++k) y[k * stride_] = static_cast<float>(line[k] / sum);
  }

  const Primitives& primitives_;
  const int64_t length_, stride_, lines_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateSoftmax(const KernelDesc& desc, Table table) {
  RETURN_IF_ERROR(CheckFloats(desc));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(desc.GetInt("dim"), desc.input(0).rank()));
  return std::make_unique<Softmax>(desc, kernels::BestVariant(table, desc.isa), axis);
}

// y = (x - mean) * factor + bias by channels.
class BatchNorm final : public kernels::UnaryKernel {
 public:
  struct Channel {
    double mean, factor, bias;
  };

  BatchNorm(const KernelDesc& desc, std::vector<Channel> channels)
      : UnaryKernel(desc), channels_(std::move(channels)), strides_(desc.input(0)) {
    elements_ = desc.input(0).num_elements();
    set_variant("double");
  }

 private:
  void ComputeUnary(const void* x, void* y, const RunContext& context) const override {
    const float* from = static_cast<const float*>(x);
    float* to = static_cast<float*>(y);
    const int64_t channels = static_cast<int64_t>(channels_.size());
    if (strides_.channel == 1) {  // Innermost: a position at a time.
      kernels::ForRanges(*context.parallel, elements_ / channels, Grain(channels), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          for (int64_t c = 0; c < channels; ++c)
            to[i * channels + c] = Normalized(from[i * channels + c], channels_[c]);
        }
      });
      return;
    }
    const int64_t plane = strides_.channel;
    kernels::ForRanges(*context.parallel, elements_ / plane, Grain(plane), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Channel channel = channels_[i % channels];
        for (int64_t k = i * plane; k < (i + 1) * plane; ++k) to[k] = Normalized(from[k], channel);
      }
    });
  }

  static float Normalized(float x, const Channel& c) { return static_cast<float>((x - c.mean) * c.factor + c.bias); }

  const std::vector<Channel> channels_;
  const ImageStrides strides_;
  int64_t elements_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateBatchNorm(const KernelDesc& desc) {
  RETURN_IF_ERROR(CheckFloats(desc));
  if (desc.GetBool("training") || desc.ParameterOrNull("running_mean") == nullptr ||
      desc.ParameterOrNull("running_var") == nullptr) {
    return absl::UnimplementedError("statistics of the batch");
  }
  if (desc.input(0).rank() < 2) return absl::UnimplementedError(absl::StrCat("input ", ToString(desc.input(0))));
  const int64_t n = desc.input(0).shape[1];
  ASSIGN_OR_RETURN(const std::vector<float> weight, FloatsOr(desc, "weight", n, 1.0f));
  ASSIGN_OR_RETURN(const std::vector<float> bias, FloatsOr(desc, "bias", n, 0.0f));
  ASSIGN_OR_RETURN(const std::vector<float> mean, FloatsOf(desc, "running_mean"));
  ASSIGN_OR_RETURN(const std::vector<float> variance, FloatsOf(desc, "running_var"));
  std::vector<BatchNorm::Channel> channels;
  for (int64_t c = 0; c < n; ++c) {
    channels.push_back({mean[c], weight[c] / std::sqrt(variance[c] + desc.GetFloat("eps")), bias[c]});
  }
  return std::make_unique<BatchNorm>(desc, std::move(channels));
}

}  // namespace

void RegisterNormalize(Table table, kernels::KernelRegistry& registry) {
  registry.Register(WithoutReference(
      {"softmax", kernels::LayoutRule::kRowMajor, [=](const KernelDesc& desc) { return CreateSoftmax(desc, table); }}));
  registry.Register({"layer_norm", kernels::LayoutRule::kRowMajor, norm::Create});
  registry.Register({"batch_norm", kernels::LayoutRule::kSame, CreateBatchNorm});
}

}  // namespace fuselage::reproducible
