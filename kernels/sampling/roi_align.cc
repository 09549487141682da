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
      for (int64_t k = begin; k < end; ++k) {
        Align(values + batch.ImageOf(k) * image, boxes + 4 * k, static_cast<float*>(out[0].data) + k * result);
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

  // All channels of one box.
  void Align(const float* image, const float* box, float* to) const {
    const RoiAxis rows = *AxisOf(box, 0), columns = *AxisOf(box, 1);
    const Shape &x = inputs()[0]->shape, &y = outputs()[0].shape;
    const int64_t bins = y[2] * y[3];
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t c = 0; c < x[1]; ++c) to[c * bins + bin] = max_ ? -std::numeric_limits<float>::infinity() : 0;
      for (int64_t i = 0; i < rows.places; ++i) {
        const AxisTaps row = RoiTaps(x[2], rows.Position(bin / y[3], i));
        for (int64_t j = 0; j < columns.places; ++j) {
          AddPlace(image, row, RoiTaps(x[3], columns.Position(bin % y[3], j)), to + bin);
        }
      }
      const int64_t places = rows.places * columns.places;
      for (int64_t c = 0; c < x[1]; ++c) {
        float& value = to[c * bins + bin];
        value = places == 0 ? 0 : max_ ? value : value / static_cast<float>(places);
      }
    }
  }

  // Adds the pixels of one place, or takes their maximum, into the bin `to` of each channel.
  void AddPlace(const float* image, const AxisTaps& row, const AxisTaps& column, float* to) const {
    const Shape &x = inputs()[0]->shape, &y = outputs()[0].shape;
    for (int i = 0; i < row.count; ++i) {
      for (int j = 0; j < column.count; ++j) {
        const bool beyond = row.index[i] < 0 || column.index[j] < 0;
        const auto weight = static_cast<float>(row.weight[i] * column.weight[j]);
        const float* pixel = image + row.index[i] * x[3] + column.index[j];
        for (int64_t c = 0; c < x[1]; ++c) {
          const float value = beyond ? 0 : weight * pixel[c * x[2] * x[3]];
          float& bin = to[c * y[2] * y[3]];
          bin = !max_ ? bin + value : bin < value ? value : bin;
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
