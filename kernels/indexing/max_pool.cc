// max_pool1d_with_indices, 2d, 3d.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/indexing/indexing.h"
#include "kernels/indexing/positions.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

// One spatial axis: output o has its taps at o * stride - begin + t * dilation.
struct Axis {
  int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1, begin = 0;

  int64_t At(int64_t o, int64_t t) const { return o * stride - begin + t * dilation; }
};

template <typename T>
class MaxPool : public kernels::Kernel {
 public:
  explicit MaxPool(const KernelDesc& desc) : Kernel(desc), planes_(desc.input(0).shape[0] * desc.input(0).shape[1]) {
    const int dims = desc.input(0).rank() - 2;
    for (int i = 0; i < dims; ++i) {
      axes_[3 - dims + i] = {desc.input(0).shape[2 + i], desc.output().shape[2 + i],  desc.GetInts("kernel_size")[i],
                             desc.GetInts("stride")[i],  desc.GetInts("dilation")[i], desc.GetInts("padding")[i]};
    }
    set_variant("scalar");
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const T* x = static_cast<const T*>(inputs[0].data);
    T* values = static_cast<T*>(outputs[0].data);
    auto* indices = static_cast<int64_t*>(outputs[1].data);
    const int64_t pixels = axes_[0].input * axes_[1].input * axes_[2].input;
    const int64_t windows = axes_[0].output * axes_[1].output * axes_[2].output;
    kernels::ForRanges(*context.parallel, planes_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * windows; i < end * windows; ++i) {
        const T* plane = x + i / windows * pixels;
        const int64_t largest = Largest(plane, i % windows);
        values[i] = largest < 0 ? Lowest() : plane[largest];
        indices[i] = std::max<int64_t>(largest, 0);
      }
    });
  }

  // The first largest element of a window, or a NaN; -1 where it has none.
  int64_t Largest(const T* plane, int64_t window) const {
    const int64_t w = window % axes_[2].output, h = window / axes_[2].output % axes_[1].output;
    const int64_t d = window / (axes_[2].output * axes_[1].output);
    int64_t best = -1;
    for (int64_t i = 0; i < axes_[0].kernel; ++i) {
      const int64_t z = axes_[0].At(d, i);
      if (z < 0 || z >= axes_[0].input) continue;
      for (int64_t j = 0; j < axes_[1].kernel; ++j) {
        const int64_t y = axes_[1].At(h, j);
        if (y < 0 || y >= axes_[1].input) continue;
        for (int64_t k = 0; k < axes_[2].kernel; ++k) {
          const int64_t x = axes_[2].At(w, k);
          if (x < 0 || x >= axes_[2].input) continue;
          const int64_t at = (z * axes_[1].input + y) * axes_[2].input + x;
          if (best < 0 || plane[at] > plane[best] || plane[at] != plane[at]) best = at;
        }
      }
    }
    return best;
  }

  static T Lowest() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }

  const int64_t planes_;
  Axis axes_[3];  // Depth, height, width.
};

}  // namespace

KernelOr CreateMaxPool(const KernelDesc& desc) {
  switch (desc.input(0).dtype) {
    case DType::kF32: return std::make_unique<MaxPool<float>>(desc);
    case DType::kI32: return std::make_unique<MaxPool<int32_t>>(desc);
    case DType::kU8: return std::make_unique<MaxPool<uint8_t>>(desc);
    case DType::kI8: return std::make_unique<MaxPool<int8_t>>(desc);
    default: return absl::UnimplementedError(absl::StrCat("max_pool of ", DTypeName(desc.input(0).dtype)));
  }
}

}  // namespace fuselage::indexing
