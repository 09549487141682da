#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/resize_axis.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::resize {
namespace {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

// A constant list of floats; empty where it is absent or empty.
absl::StatusOr<Reals> ConstantReals(const Call& call, int i) {
  if (!call.has(i)) return Reals();
  ASSIGN_OR_RETURN(const Tensor* tensor, call.Constant(i));
  if (tensor->rank() > 1 || !IsFloat(tensor->dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, ": found ", ToString(tensor->type()), ", wanted a list of floats"));
  }
  return ToDoubles(*tensor);
}

// What a resize does to the axes that it names.
struct Request {
  Ints axes, sizes;
  Reals scales, roi;  // roi: starts, then ends; or none.
};

absl::Status CheckCount(size_t found, size_t wanted, absl::string_view what) {
  if (found == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", found, " ", what, ", wanted ", wanted));
}

// floor(size * scale) in double, which is exact for a size below 2^29 and a scale that was a float.
absl::Status SizesFromScales(const Call& call, Request& request) {
  RETURN_IF_ERROR(CheckCount(request.scales.size(), request.axes.size(), "scales"));
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const double size = std::floor(static_cast<double>(call.shape(0)[request.axes[i]]) * request.scales[i]);
    if (!(request.scales[i] > 0 && size <= INT32_MAX)) {
      return absl::InvalidArgumentError(absl::StrCat("found the scale ", request.scales[i], " for axis ",
                                                     request.axes[i], " of ", ToString(call.type(0)),
                                                     ", wanted one > 0 that gives a size below 2^31"));
    }
    request.sizes.push_back(static_cast<int64_t>(size));
  }
  return absl::OkStatus();
}

// Scales from sizes: each axis's own, or where the aspect ratio is to be kept the smallest or largest of them, which
// then rounds the sizes.
absl::Status ScalesFromSizes(const Call& call, Request& request) {
  RETURN_IF_ERROR(CheckCount(request.sizes.size(), request.axes.size(), "sizes"));
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const int64_t own = call.shape(0)[request.axes[i]], size = request.sizes[i];
    if (size < 0 || size > INT32_MAX || (own == 0 && size > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("found the size ", size, " for axis ", request.axes[i], " of ",
                                                     ToString(call.type(0)), ", wanted one in [0, 2^31)"));
    }
    request.scales.push_back(own == size ? 1 : static_cast<double>(size) / static_cast<double>(own));
  }
  const std::string policy = call.String("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || request.axes.empty()) return absl::OkStatus();
  if (policy != "not_larger" && policy != "not_smaller") {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'keep_aspect_ratio_policy': found ", Quote(policy),
                                                   ", wanted stretch, not_larger or not_smaller"));
  }
  const auto [least, most] = std::minmax_element(request.scales.begin(), request.scales.end());
  const double scale = policy == "not_larger" ? *least : *most;
  for (size_t i = 0; i < request.axes.size(); ++i) {
    request.scales[i] = scale;
    const double size = std::floor(scale * static_cast<double>(call.shape(0)[request.axes[i]]) + 0.5);
    if (size > INT32_MAX) return absl::InvalidArgumentError(absl::StrCat("found the size ", size, ", wanted < 2^31"));
    request.sizes[i] = static_cast<int64_t>(size);
  }
  return absl::OkStatus();
}

// Emits the resize of those axes that change; a batch is none of them.
absl::Status EmitResize(Call& call, Request request, const ResizeMode& mode) {
  Ints dims, sizes;
  Reals scales, starts, ends;
  bool own_scales = true;  // The scales are the sizes over the input's.
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const int64_t input = call.shape(0)[request.axes[i]], size = request.sizes[i];
    ResizeAxis axis{input, size, request.scales[i]};
    if (!request.roi.empty()) {
      axis.roi_start = request.roi[i];
      axis.roi_end = request.roi[i + request.axes.size()];
    }
    if (axis.IsIdentity(mode)) continue;
    dims.push_back(request.axes[i]);
    sizes.push_back(size);
    scales.push_back(axis.scale);
    starts.push_back(axis.roi_start);
    ends.push_back(axis.roi_end);
    own_scales = own_scales && axis.scale == static_cast<double>(size) / static_cast<double>(input);
  }
  if (dims.empty()) return call.Result("identity", {call.operand(0)});
  AttributeMap attributes = {{"dims", dims},
                             {"sizes", sizes},
                             {"mode", mode.mode},
                             {"coordinates", mode.coordinates},
                             {"antialias", mode.antialias},
                             {"exclude_outside", mode.exclude_outside}};
  if (!own_scales) attributes.emplace("scales", scales);
  if (mode.mode == "nearest") attributes.emplace("nearest_mode", mode.nearest_mode);
  if (mode.mode == "cubic") attributes.emplace("cubic_coeff_a", mode.cubic_coeff_a);
  if (mode.coordinates == "tf_crop_and_resize") {
    starts.insert(starts.end(), ends.begin(), ends.end());
    attributes.emplace("roi", starts);
    attributes.emplace("extrapolation_value", call.Float("extrapolation_value", 0));
  }
  return call.Result("resize", {call.operand(0)}, attributes);
}

absl::StatusOr<std::string> OneOf(const Call& call, absl::string_view name, absl::string_view otherwise,
                                  absl::Span<const char* const> wanted) {
  const std::string found = call.String(name, otherwise);
  if (std::find(wanted.begin(), wanted.end(), found) != wanted.end()) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", name, "': found ", Quote(found), ", wanted one of ", absl::StrJoin(wanted, ", ")));
}

absl::StatusOr<ResizeMode> ReadMode(const Call& call) {
  ResizeMode mode;
  ASSIGN_OR_RETURN(mode.mode, OneOf(call, "mode", "nearest", ResizeModes()));
  ASSIGN_OR_RETURN(mode.coordinates, OneOf(call, "coordinate_transformation_mode", "half_pixel", ResizeCoordinates()));
  ASSIGN_OR_RETURN(mode.nearest_mode, OneOf(call, "nearest_mode", "round_prefer_floor", ResizeNearestModes()));
  mode.cubic_coeff_a = call.Float("cubic_coeff_a", -0.75);
  ASSIGN_OR_RETURN(mode.antialias, call.Flag("antialias", false));
  ASSIGN_OR_RETURN(mode.exclude_outside, call.Flag("exclude_outside", false));
  return mode;
}

// Upsample, and Resize of opset 10: scales for every axis, of coordinates from the corner.
absl::Status ConvertByScales(Call& call, Request request) {
  request.axes.resize(call.rank(0));
  std::iota(request.axes.begin(), request.axes.end(), 0);
  RETURN_IF_ERROR(SizesFromScales(call, request));
  constexpr const char* kModes[] = {"nearest", "linear", "bilinear"};
  ASSIGN_OR_RETURN(const std::string mode, OneOf(call, "mode", "nearest", kModes));
  return EmitResize(call, std::move(request), {mode == "bilinear" ? "linear" : mode, "asymmetric", "floor"});
}

// Scales are an attribute before opset 9, an input from then on.
absl::Status ConvertUpsample(Call& call) {
  if (call.opset() >= 10)
    return absl::InvalidArgumentError("found it in an opset that has it no longer, wanted Resize");
  Request request;
  if (call.opset() < 9) {
    const std::vector<float> scales = call.Floats("scales");
    request.scales.assign(scales.begin(), scales.end());
  } else {
    ASSIGN_OR_RETURN(request.scales, ConstantReals(call, 1));
  }
  return ConvertByScales(call, std::move(request));
}

// Opset 11 adds roi, sizes and the coordinates' modes; 13 lets inputs be absent; 18 adds axes, antialias and
// keep_aspect_ratio_policy.
absl::Status ConvertResize(Call& call) {
  Request request;
  if (call.opset() < 11) {
    ASSIGN_OR_RETURN(request.scales, ConstantReals(call, 1));
    return ConvertByScales(call, std::move(request));
  }
  request.axes = call.Ints("axes");
  if (!call.HasAttribute("axes")) {
    request.axes.resize(call.rank(0));
    std::iota(request.axes.begin(), request.axes.end(), 0);
  }
  for (int64_t& axis : request.axes) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, call.rank(0)));
  }
  ASSIGN_OR_RETURN(const ResizeMode mode, ReadMode(call));
  if (mode.coordinates == "tf_crop_and_resize") {
    ASSIGN_OR_RETURN(request.roi, ConstantReals(call, 1));
    RETURN_IF_ERROR(CheckCount(request.roi.size(), 2 * request.axes.size(), "numbers of roi"));
  }
  ASSIGN_OR_RETURN(request.scales, ConstantReals(call, 2));
  const bool by_sizes = call.has(3) && call.type(3).num_elements() > 0;
  if (by_sizes == !request.scales.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", by_sizes ? "both" : "neither", " scales ",
                                                   by_sizes ? "and" : "nor", " sizes, wanted one"));
  }
  if (by_sizes) {
    ASSIGN_OR_RETURN(request.sizes, ConstantSizes(call, 3, request.axes));
    RETURN_IF_ERROR(ScalesFromSizes(call, request));
  } else {
    RETURN_IF_ERROR(SizesFromScales(call, request));
  }
  return EmitResize(call, std::move(request), mode);
}

constexpr char kResize[] =
    "antialias=INT axes=INTS coordinate_transformation_mode=STRING cubic_coeff_a=FLOAT exclude_outside=INT "
    "extrapolation_value=FLOAT keep_aspect_ratio_policy=STRING mode=STRING nearest_mode=STRING";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Resize", 10, {1, 4}, {1, 1}, kResize, ConvertResize},
      {"Upsample", 7, {1, 2}, {1, 1}, "mode=STRING scales=FLOATS", ConvertUpsample},
  });
}

}  // namespace fuselage::onnx::converters::resize
