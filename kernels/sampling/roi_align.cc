#include <algorithm>
#include <atomic>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/sampling.h"
#include "kernels/sampling/sampling.h"

namespace fuselage::sampling {
namespace {

using kernels::KernelDesc;

constexpr int kTaps = 1024;  // With what they are of, 16 KB of the first-level cache.

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
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> in, absl::Span<const kernels::Buffer> out,
                          const kernels::RunContext& context) const override {
    const TensorType &x = *inputs()[0], &y = outputs()[0];
    const float *values = static_cast<const float*>(in[0].data), *boxes = static_cast<const float*>(in[1].data);
    const Batch batch{in[2].data, inputs()[2]->dtype == DType::kI64, x.shape[0]};
    const int64_t image = x.shape[1] * x.shape[2] * x.shape[3], result = y.shape[1] * y.shape[2] * y.shape[3];
    for (int64_t k = 0; k < y.shape[0]; ++k) RETURN_IF_ERROR(Check(batch, boxes + 4 * k, k));
    kernels::ForRanges(*context.parallel, y.shape[0], 1, [&](int64_t begin, int64_t end) {
      Taps taps;
      for (int64_t k = begin; k < end; ++k) {
        Align(values + batch.ImageOf(k) * image, boxes + 4 * k, static_cast<float*>(out[0].data) + k * result, taps);
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

  // A pixel of a plane and its weight; beyond the image, where it is 0, the pixel is -1.
  struct Tap {
    int32_t pixel;
    float weight;
  };
  // Taps of a bin, in the order of its places: those of the list up to `end`.
  struct Part {
    int32_t bin, end;
  };
  // Of some bins, until there is no room. Each plane is read for all of them, near where it was read before.
  struct Taps {
    Tap taps[kTaps];
    Part parts[kTaps];
    int count = 0, bins = 0;
  };

  // All channels of one box.
  void Align(const float* image, const float* box, float* to, Taps& taps) const {
    const RoiAxis rows = *AxisOf(box, 0), columns = *AxisOf(box, 1);
    const Shape &x = inputs()[0]->shape, &y = outputs()[0].shape;
    const int64_t bins = y[2] * y[3], places = rows.places * columns.places;
    std::fill(to, to + x[1] * bins, max_ ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t i = 0; i < rows.places; ++i) {
        const AxisTaps row = RoiTaps(x[2], rows.Position(bin / y[3], i));
        for (int64_t j = 0; j < columns.places; ++j) {
          if (taps.count + kMostAxisTaps * kMostAxisTaps > kTaps) Add(image, to, taps);
          AddPlace(row, RoiTaps(x[3], columns.Position(bin % y[3], j)), static_cast<int32_t>(bin), taps);
        }
      }
    }
    Add(image, to, taps);
    for (int64_t i = 0; i < x[1] * bins; ++i) {
      to[i] = places == 0 ? 0 : max_ ? to[i] : to[i] / static_cast<float>(places);
    }
  }

  void AddPlace(const AxisTaps& row, const AxisTaps& column, int32_t bin, Taps& taps) const {
    const auto width = static_cast<int32_t>(inputs()[0]->shape[3]);
    for (int i = 0; i < row.count; ++i) {
      for (int j = 0; j < column.count; ++j) {
        const bool beyond = row.index[i] < 0 || column.index[j] < 0;
        if (beyond && !max_) continue;
        const auto pixel = static_cast<int32_t>(row.index[i]) * width + static_cast<int32_t>(column.index[j]);
        taps.taps[taps.count++] = {beyond ? -1 : pixel, static_cast<float>(row.weight[i] * column.weight[j])};
      }
    }
    if (taps.bins == 0 || taps.parts[taps.bins - 1].bin != bin) ++taps.bins;
    taps.parts[taps.bins - 1] = {bin, taps.count};
  }

  // Adds the pixels, or takes their maximum, into the bins of each channel; then there are none.
  void Add(const float* image, float* to, Taps& taps) const {
    const Shape &x = inputs()[0]->shape, &y = outputs()[0].shape;
    const int64_t plane = x[2] * x[3], bins = y[2] * y[3];
    for (int64_t c = 0; c < x[1]; ++c, image += plane, to += bins) {
      const Tap* tap = taps.taps;
      for (const Part* part = taps.parts; part < taps.parts + taps.bins; ++part) {
        float bin = to[part->bin];
        for (const Tap* end = taps.taps + part->end; tap < end; ++tap) {
          const float value = tap->pixel < 0 ? 0 : tap->weight * image[tap->pixel];
          bin = !max_ ? bin + value : bin < value ? value : bin;
        }
        to[part->bin] = bin;
      }
    }
    taps.count = taps.bins = 0;
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
  if (desc.input(0).shape[2] * desc.input(0).shape[3] > INT32_MAX) {
    return absl::UnimplementedError("roi_align of 2^31 pixels and more");
  }
  return std::make_unique<RoiAlign>(desc);
}

}  // namespace fuselage::sampling
