#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/quant.h"
#include "frontend/onnx/spatial.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::conv {
namespace {

absl::Status ConvertConv(Call& call) {
  ASSIGN_OR_RETURN(WindowedCall conv, ReadConv(call, call.shape(0), call.shape(1)));
  return call.Result(conv.target, call.operands(), std::move(conv.attributes));
}

absl::Status ConvertConvInteger(Call& call) {
  ASSIGN_OR_RETURN(WindowedCall conv, ReadConv(call, call.shape(0), call.shape(1)));
  RETURN_IF_ERROR(CheckScalar(call, 2, "x_zero_point"));
  ASSIGN_OR_RETURN(const Value x, ZeroPointOf(call, "x_zero_point", 0, 2, 0));
  ASSIGN_OR_RETURN(const Value w, ZeroPointOf(call, "w_zero_point", 1, 3, 0));
  return call.Result(SpatialTarget("conv_integer", call.rank(0) - 2), {call.operand(0), call.operand(1), x, w},
                     std::move(conv.attributes));
}

// quantize(conv(dequantize(x), dequantize(w), dequantize(b))).
absl::Status ConvertQLinearConv(Call& call) {
  ASSIGN_OR_RETURN(WindowedCall conv, ReadConv(call, call.shape(0), call.shape(3)));
  RETURN_IF_ERROR(CheckScalar(call, 1, "x_scale"));
  RETURN_IF_ERROR(CheckScalar(call, 6, "y_scale"));
  ASSIGN_OR_RETURN(const Value x, Dequantize(call, "x_dequantize", call.operand(0), {1, 2}, 1));
  ASSIGN_OR_RETURN(const Value w, Dequantize(call, "w_dequantize", call.operand(3), {4, 5}, 0));
  Value bias;
  if (call.has(8)) {
    ASSIGN_OR_RETURN(bias, DequantizeBias(call, 8, 1, 4));
  }
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper("conv", conv.target, {x, w, bias}, std::move(conv.attributes)));
  ASSIGN_OR_RETURN(Value codes, Quantize(call, y, {6, 7}, call.type(7).dtype, 1));
  call.Set(0, std::move(codes));
  return absl::OkStatus();
}

absl::Status ConvertConvTranspose(Call& call) {
  const Shape& input = call.shape(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KernelOf(input, call.shape(1)));
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(call, input, kernel));
  const size_t n = spatial.dims;
  std::vector<int64_t> output_padding = call.Ints("output_padding");
  if (!call.HasAttribute("output_padding")) output_padding.assign(n, 0);
  std::vector<int64_t> output_shape = call.Ints("output_shape");
  if (call.HasAttribute("output_shape") && output_shape.size() == n + 2) {
    output_shape.erase(output_shape.begin(), output_shape.begin() + 2);  // Some exporters repeat [N, C].
  }
  if (output_padding.size() != n || (call.HasAttribute("output_shape") && output_shape.size() != n)) {
    return absl::InvalidArgumentError(absl::StrCat("found output_padding ", ToString(output_padding),
                                                   " and output_shape ", ToString(output_shape), ", wanted ", n,
                                                   " values in each"));
  }
  const bool same = spatial.auto_pad == "SAME_UPPER" || spatial.auto_pad == "SAME_LOWER";
  for (size_t i = 0; i < n && (same || !output_shape.empty()); ++i) {
    // The whole result without padding, less what is asked for, is cut off at both ends.
    __int128 total = static_cast<__int128>(spatial.strides[i]) * (input[i + 2] - 1) + output_padding[i] +
                     static_cast<__int128>(spatial.dilations[i]) * (kernel[i] - 1) + 1;
    total -= output_shape.empty() ? static_cast<__int128>(input[i + 2]) * spatial.strides[i] : output_shape[i];
    if (total > INT32_MAX || total < -INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("found output_shape ", ToString(output_shape), " for input ", ToString(input)));
    }
    const int64_t cut = std::max<int64_t>(static_cast<int64_t>(total), 0);
    output_padding[i] += cut - static_cast<int64_t>(total);  // Asked for more than there is: zeros at the end.
    spatial.padding[i] = spatial.auto_pad == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    spatial.padding[i + n] = cut - spatial.padding[i];
  }
  return call.Result(SpatialTarget("conv_transpose", spatial.dims), call.operands(),
                     {{"stride", spatial.strides},
                      {"padding", spatial.padding},
                      {"output_padding", output_padding},
                      {"dilation", spatial.dilations},
                      {"groups", call.Int("group", 1)}});
}

constexpr char kConv[] = "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS pads=INTS strides=INTS";
constexpr char kConvTranspose[] =
    "auto_pad=STRING dilations=INTS group=INT kernel_shape=INTS output_padding=INTS output_shape=INTS "
    "pads=INTS strides=INTS";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Conv", 1, {2, 3}, {1, 1}, kConv, ConvertConv},
      {"ConvInteger", 10, {2, 4}, {1, 1}, kConv, ConvertConvInteger},
      {"ConvTranspose", 1, {2, 3}, {1, 1}, kConvTranspose, ConvertConvTranspose},
      {"QLinearConv", 10, {8, 9}, {1, 1}, kConv, ConvertQLinearConv},
  });
}

}  // namespace fuselage::onnx::converters::conv
