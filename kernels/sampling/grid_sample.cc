#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/sampling.h"
#include "kernels/core/float_operands.h"
#include "kernels/sampling/sampling.h"

namespace fuselage::sampling {
namespace {

using kernels::KernelDesc;

constexpr int64_t kChunk = 16;  // Places whose taps are at hand while all channels are read.
constexpr int kMostTaps = kMostAxisTaps * kMostAxisTaps * kMostAxisTaps;

// The pixels of a plane that one place reads.
struct PlaceTaps {
  int count = 0;
  int64_t offset[kMostTaps];
  float weight[kMostTaps];
};

class GridSample : public kernels::BinaryKernel {
 public:
  explicit GridSample(const KernelDesc& desc)
      : BinaryKernel(desc), dims_(desc.input(0).rank() - 2), channels_(desc.input(0).shape[1]) {
    const Shape& shape = desc.input(0).shape;
    for (int axis = 0; axis < 3; ++axis) {
      axes_[axis] = {axis < 3 - dims_ ? 1 : shape[axis + shape.size() - 3], SampleModeOf(desc.GetString("mode")),
                     SamplePaddingOf(desc.GetString("padding_mode")), desc.GetBool("align_corners")};
    }
    places_ = desc.input(1).num_elements() / (shape[0] * dims_);
    set_variant("scalar");
  }

 private:
  void ComputeBinary(const void* input, const void* grid, void* output,
                     const kernels::RunContext& context) const override {
    const float *x = static_cast<const float*>(input), *at = static_cast<const float*>(grid);
    float* y = static_cast<float*>(output);
    const int64_t images = inputs()[0]->shape[0], chunks = (places_ + kChunk - 1) / kChunk;
    const int64_t pixels = axes_[0].size * axes_[1].size * axes_[2].size;
    kernels::ForRanges(*context.parallel, images * chunks, 1, [&](int64_t begin, int64_t end) {
      PlaceTaps taps[kChunk];
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t image = chunk / chunks, first = chunk % chunks * kChunk;
        const int64_t count = std::min(kChunk, places_ - first);
        for (int64_t i = 0; i < count; ++i) FindTaps(at + (image * places_ + first + i) * dims_, &taps[i]);
        for (int64_t plane = image * channels_; plane < (image + 1) * channels_; ++plane) {
          for (int64_t i = 0; i < count; ++i) y[plane * places_ + first + i] = Sum(taps[i], x + plane * pixels);
        }
      }
    });
  }

  // x comes first in the grid, last among the axes.
  void FindTaps(const float* coordinates, PlaceTaps* taps) const {
    AxisTaps axes[3] = {{1, {0}, {1}}, {}, {}};
    for (int axis = 3 - dims_; axis < 3; ++axis) {
      axes[axis] = GridTaps(axes_[axis], static_cast<double>(coordinates[2 - axis]));
    }
    taps->count = 0;
    for (int i = 0; i < axes[0].count; ++i) {
      for (int j = 0; j < axes[1].count; ++j) {
        for (int k = 0; k < axes[2].count; ++k) {
          const int64_t z = axes[0].index[i], y = axes[1].index[j], x = axes[2].index[k];
          if (z < 0 || y < 0 || x < 0) continue;
          taps->offset[taps->count] = (z * axes_[1].size + y) * axes_[2].size + x;
          taps->weight[taps->count++] = static_cast<float>(axes[0].weight[i] * axes[1].weight[j] * axes[2].weight[k]);
        }
      }
    }
  }

  static float Sum(const PlaceTaps& taps, const float* plane) {
    float sum = 0;
    for (int t = 0; t < taps.count; ++t) sum += taps.weight[t] * plane[taps.offset[t]];
    return sum;
  }

  const int dims_;
  const int64_t channels_;
  SampleAxis axes_[3];  // Depth, height, width.
  int64_t places_;      // How many each image has.
};

}  // namespace

KernelOr CreateGridSample(const KernelDesc& desc) {
  RETURN_IF_ERROR(kernels::CheckFloats(desc));
  return std::make_unique<GridSample>(desc);
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"grid_sample", kernels::LayoutRule::kRowMajor, CreateGridSample});
  registry.Register({"roi_align", kernels::LayoutRule::kRowMajor, CreateRoiAlign});
}

}  // namespace fuselage::sampling
