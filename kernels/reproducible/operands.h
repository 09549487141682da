// What the kernels here check and read alike.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_OPERANDS_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_OPERANDS_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/float_operands.h"
#include "kernels/core/kernel.h"

namespace fuselage::reproducible {

using kernels::CheckFloats;
using kernels::FloatsOr;

// The values of a parameter (kernels::FloatParameter).
absl::StatusOr<std::vector<float>> FloatsOf(const kernels::KernelDesc& desc, absl::string_view name);

// Where the elements of a [N, C, ...] tensor lie, in floats; the positions of an image count row-major.
struct ImageStrides {
  explicit ImageStrides(const TensorType& type);
  int64_t image, channel, position;
};

// A window over up to three spatial axes; where there are fewer, the leading ones are trivial.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;
};
using Coordinates = std::array<int64_t, 3>;
struct Window {
  std::array<WindowAxis, 3> axes;

  int64_t positions() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  Coordinates Position(int64_t output) const {
    return {output / axes[2].out / axes[1].out, output / axes[2].out % axes[1].out, output % axes[2].out};
  }
  // Goes to the next output in row-major order.
  void Advance(Coordinates& position) const {
    for (int i = 2; i >= 0; --i) {
      if (++position[i] < axes[i].out) return;
      position[i] = 0;
    }
  }
  // The input's position.
  int64_t At(int64_t d, int64_t h, int64_t w) const { return (d * axes[1].in + h) * axes[2].in + w; }
};

// From stride, padding and, where there is one, dilation, for a kernel of these sizes over input 0. InvalidArgument
// where their lengths do not fit.
absl::StatusOr<Window> WindowOf(const kernels::KernelDesc& desc, const std::vector<int64_t>& kernel);

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_OPERANDS_H_
