#include "ir/ops/core/window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"

namespace fuselage::ops {

Shape OutputShape(const Window& window, int n) {
  Shape shape;
  for (int axis = 3 - n; axis < 3; ++axis) shape.push_back(window.axes[axis].output);
  return shape;
}

absl::StatusOr<Window> MakeWindow(const WindowParams& params) {
  const int n = static_cast<int>(params.kernel.size());
  FUSELAGE_CHECK(n >= 1 && n <= 3 && static_cast<int>(params.input.size()) == n);
  Window window;
  for (int i = 0; i < n; ++i) {
    WindowAxis& axis = window.axes[3 - n + i];
    axis.input = params.input[i];
    axis.kernel = params.kernel[i];
    axis.stride = params.stride[i];
    axis.dilation = params.dilation[i];
    axis.begin = params.padding[i];
    axis.end = params.padding[n + i];
    constexpr int64_t kMax = int64_t{1} << 31;
    if (axis.kernel < 1 || axis.kernel >= kMax || axis.input >= kMax) {
      return absl::InvalidArgumentError(absl::StrCat("spatial axis ", i, ": kernel of size ", axis.kernel,
                                                     " on an input of ", axis.input,
                                                     ", wanted a kernel of at least 1 and both below 2^31"));
    }
    const int64_t room = axis.input + axis.begin + axis.end - axis.extent();
    if (room < 0) {
      return absl::InvalidArgumentError(absl::StrCat("spatial axis ", i, ": the kernel spans ", axis.extent(),
                                                     " elements, more than the padded input's ", axis.input, " + ",
                                                     axis.begin, " + ", axis.end));
    }
    axis.output = room / axis.stride + 1;
    if (params.ceil_mode && room % axis.stride != 0 && axis.output * axis.stride < axis.input + axis.begin) {
      ++axis.output;
    }
  }
  return window;
}

int64_t PaddedTaps(const Window& window, int64_t output) {
  int64_t count = 1;
  for (int i = 2; i >= 0; --i) {
    const WindowAxis& axis = window.axes[i];
    const int64_t room = axis.input + axis.begin + axis.end - output % axis.output * axis.stride;
    count *= std::min(axis.kernel, (room + axis.dilation - 1) / axis.dilation);
    output /= axis.output;
  }
  return count;
}

std::vector<ir::AttributeSpec> WindowAttributes(int n) {
  return {{"stride", AttributeKind::kInts, std::vector<int64_t>(n, 1)},
          {"padding", AttributeKind::kInts, std::vector<int64_t>(2 * n, 0)},
          {"dilation", AttributeKind::kInts, std::vector<int64_t>(n, 1)}};
}

absl::Status CheckWindowAttributes(const ir::OpCall& call, int n) {
  RETURN_IF_ERROR(CheckInts(call, "stride", n, 1));
  RETURN_IF_ERROR(CheckInts(call, "padding", 2 * n, 0));
  return CheckInts(call, "dilation", n, 1);
}

}  // namespace fuselage::ops
