#include "passes/quantize/rows.h"

#include <vector>

namespace fuselage::quantize {
namespace {

// A conv2d's geometry: output o of an axis has its taps at o * stride - begin + t * dilation.
struct Axis {
  int64_t input, output, kernel, stride, begin, dilation;
};

Axis AxisOf(const ir::Node& conv, const Shape& input, const Shape& kernel, int i) {
  const auto ints = [&](const char* name) { return conv.attribute(name).as_ints()[i]; };
  return {input[2 + i],    conv.tensor_type().shape[2 + i], kernel[2 + i], ints("stride"), ints("padding"),
          ints("dilation")};
}

// One row of output pixels: rows[x] = [channels][kernel height][kernel width] of `planes`, which are a group's.
void FillRows(const Axis& height, const Axis& width, const float* planes, int64_t channels, int64_t y, float* rows) {
  for (int64_t x = 0; x < width.output; ++x) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* plane = planes + c * height.input * width.input;
      for (int64_t i = 0; i < height.kernel; ++i) {
        const int64_t in_y = y * height.stride - height.begin + i * height.dilation;
        for (int64_t j = 0; j < width.kernel; ++j, ++rows) {
          const int64_t in_x = x * width.stride - width.begin + j * width.dilation;
          const bool inside = in_y >= 0 && in_y < height.input && in_x >= 0 && in_x < width.input;
          *rows = inside ? plane[in_y * width.input + in_x] : 0;
        }
      }
    }
  }
}

}  // namespace

int64_t GroupsOf(const ir::Node& call) { return call.IsOp("conv2d") ? call.attribute("groups").as_int() : 1; }

void ForEachRows(const ir::Node& call, const Tensor& input,
                 const std::function<void(int64_t group, absl::Span<const float> rows)>& visit) {
  if (!call.IsOp("conv2d")) return visit(0, input.values<float>());
  const Shape& kernel = call.graph().ParameterOfOrNull(call, "weight")->shape();
  const int64_t groups = GroupsOf(call), channels = kernel[1];
  const Axis height = AxisOf(call, input.shape(), kernel, 0), width = AxisOf(call, input.shape(), kernel, 1);
  std::vector<float> rows(width.output * channels * height.kernel * width.kernel);
  const float* planes = input.data<float>();
  for (int64_t image = 0; image < input.dim(0); ++image) {
    for (int64_t group = 0; group < groups; ++group, planes += channels * height.input * width.input) {
      for (int64_t y = 0; y < height.output; ++y) {
        FillRows(height, width, planes, channels, y, rows.data());
        visit(group, rows);
      }
    }
  }
}

}  // namespace fuselage::quantize
