#include <algorithm>
#include <atomic>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/sampling.h"
#include "kernels/sampling/sampling.h"

namespace fuselage::sampling {
namespace {

using kernels::KernelDesc;

// Images, given as i32 or i64; negative ones count from the end.
struct Batch {
  const void* data;
  bool wide;
  int64_t images;

  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
  bool IsIn(int64_t i) const { return (*this)[i] >= -images && (*this)[i] < images; }
  int64_t ImageOf(int64_t i) const { return (*this)[i] < 0 ? (*this)[i] + images : (*this)[i]; }
};

class RoiAlign : public kernels::Kernel {
 public:
  explicit RoiAlign(const KernelDesc& desc)
      : Kernel(desc),
        bins_{desc.GetInt("sampling_ratio"), desc.GetFloat("spatial_scale"), desc.GetBool("aligned")},
        max_(desc.GetString("mode") == "max") {
    set_variant("scalar");
    const TensorType &x = desc.input(0), &y = desc.outputs[0];
    const int64_t bins = std::max(1, desc.threads) * y.shape[1] * y.shape[2] * y.shape[3];
    set_scratch_bytes((x.num_elements() + bins) * static_cast<int64_t>(sizeof(float)));
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> in, absl::Span<const kernels::Buffer> out,
                          const kernels::RunContext& context) const override {
    const TensorType &x = *inputs()[0], &y = outputs()[0];
    const float *values = static_cast<const float*>(in[0].data), *boxes = static_cast<const float*>(in[1].data);
    const Batch batch{in[2].data, inputs()[2]->dtype == DType::kI64, x.shape[0]};
    const int64_t image = x.shape[1] * x.shape[2] * x.shape[3], result = y.shape[1] * y.shape[2] * y.shape[3];
    for (int64_t k = 0; k < y.shape[0]; ++k) RETURN_IF_ERROR(Check(batch, boxes + 4 * k, k));
    auto* pixels = static_cast<float*>(context.scratch.data);
    MoveChannels(values, *context.parallel, pixels);
    const int64_t tasks = std::min<int64_t>(context.parallel->threads(), y.shape[0]);
    context.parallel->For(static_cast<int>(tasks), [&](int task, int) {
      float* bins = pixels + x.num_elements() + task * result;
      for (int64_t k = y.shape[0] * task / tasks; k < y.shape[0] * (task + 1) / tasks; ++k) {
        Align(pixels + batch.ImageOf(k) * image, boxes + 4 * k, bins, static_cast<float*>(out[0].data) + k * result);
      }
    });
    return absl::OkStatus();
  }

  absl::StatusOr<RoiAxis> AxisOf(const float* box, int axis) const {
    return MakeRoiAxis(bins_, static_cast<double>(box[1 - axis]), static_cast<double>(box[3 - axis]),
                       outputs()[0].shape[2 + axis]);
  }

  absl::Status Check(const Batch& batch, const float* box, int64_t k) const {
    if (!batch.IsIn(k)) {
      return absl::InvalidArgumentError(
          absl::StrCat("found index ", batch[k], ", wanted one in [", -batch.images, ", ", batch.images, ")"));
    }
    RETURN_IF_ERROR(AxisOf(box, 0).status());
    return AxisOf(box, 1).status();
  }

  // The images with their channels side by side, whose loops are vectors.
  void MoveChannels(const float* x, kernels::Parallel& parallel, float* to) const {
    const Shape& shape = inputs()[0]->shape;
    const int64_t channels = shape[1], plane = shape[2] * shape[3];
    constexpr int64_t kPixels = 16;  // A line of each channel.
    const int64_t blocks = (plane + kPixels - 1) / kPixels;
    kernels::ForRanges(parallel, shape[0] * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kPixels, last = std::min(first + kPixels, plane);
        const float* from = x + i / blocks * channels * plane;
        float* pixels = to + i / blocks * channels * plane;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t pixel = first; pixel < last; ++pixel) pixels[pixel * channels + c] = from[c * plane + pixel];
        }
      }
    });
  }

  // All channels of one box, by way of `bins`, of which each has them side by side.
  void Align(const float* image, const float* box, float* bins, float* to) const {
    const RoiAxis rows = *AxisOf(box, 0), columns = *AxisOf(box, 1);
    const Shape &x = inputs()[0]->shape, &y = outputs()[0].shape;
    const int64_t count = y[2] * y[3], channels = x[1], places = rows.places * columns.places;
    std::fill(bins, bins + count * channels, max_ ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t row = 0; row < rows.places; ++row) {
        const AxisTaps above = RoiTaps(x[2], rows.Position(i / y[3], row));
        for (int64_t column = 0; column < columns.places; ++column) {
          AddPlace(image, above, RoiTaps(x[3], columns.Position(i % y[3], column)), bins + i * channels);
        }
      }
    }
    const auto number = static_cast<float>(places);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < count; ++i) {
        const float value = bins[i * channels + c];
        to[c * count + i] = places == 0 ? 0 : max_ ? value : value / number;
      }
    }
  }

  // Adds the pixels of one place, or takes their maximum, into a bin's channels.
  void AddPlace(const float* image, const AxisTaps& row, const AxisTaps& column, float* bin) const {
    const int64_t width = inputs()[0]->shape[3], channels = inputs()[0]->shape[1];
    for (int i = 0; i < row.count; ++i) {
      for (int j = 0; j < column.count; ++j) {
        const auto weight = static_cast<float>(row.weight[i] * column.weight[j]);
        const float* pixel = image + (row.index[i] * width + column.index[j]) * channels;
        if (row.index[i] < 0 || column.index[j] < 0) {
          for (int64_t c = 0; max_ && c < channels; ++c) bin[c] = bin[c] < 0 ? 0 : bin[c];
        } else if (max_) {
          for (int64_t c = 0; c < channels; ++c) {
            const float value = weight * pixel[c];
            bin[c] = bin[c] < value ? value : bin[c];
          }
        } else {
          for (int64_t c = 0; c < channels; ++c) bin[c] += weight * pixel[c];
        }
      }
    }
  }

  const RoiBins bins_;
  const bool max_;
};

}  // namespace

KernelOr CreateRoiAlign(const KernelDesc& desc) {
  for (const int i : {0, 1}) {
    if (desc.input(i).dtype != DType::kF32) {
      return absl::UnimplementedError(absl::StrCat("roi_align of ", ToString(desc.input(i))));
    }
  }
  return std::make_unique<RoiAlign>(desc);
}

}  // namespace fuselage::sampling
