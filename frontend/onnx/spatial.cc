#include "frontend/onnx/spatial.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

// Far above any network, and low enough that sums and products of a few stay in 64 bits.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

absl::Status CheckList(absl::string_view name, const std::vector<int64_t>& values, size_t size, int64_t least) {
  const auto in_range = [least](int64_t value) { return value >= least && value <= kLargest; };
  if (values.size() == size && std::all_of(values.begin(), values.end(), in_range)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "': found [", absl::StrJoin(values, ","),
                                                 "], wanted ", size, " values in [", least, ", ", kLargest, "]"));
}

absl::StatusOr<std::vector<int64_t>> ReadList(const Call& call, absl::string_view name, size_t size, int64_t least,
                                              int64_t otherwise) {
  std::vector<int64_t> values = call.Ints(name);
  if (!call.HasAttribute(name)) values.assign(size, otherwise);
  RETURN_IF_ERROR(CheckList(name, values, size, least));
  return values;
}

}  // namespace

std::string SpatialTarget(absl::string_view target, int dims) { return absl::StrCat(target, dims, "d"); }

absl::StatusOr<Spatial> ReadSpatial(const Call& call, const Shape& input, std::vector<int64_t> weight_kernel) {
  Spatial spatial;
  spatial.dims = static_cast<int>(input.size()) - 2;
  if (spatial.dims < 1 || spatial.dims > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an input of shape ", ToString(input), ", wanted rank 3, 4 or 5"));
  }
  const size_t n = spatial.dims;
  if (weight_kernel.empty() && !call.HasAttribute("kernel_shape")) {
    return absl::InvalidArgumentError("found no attribute 'kernel_shape', wanted it");
  }
  spatial.kernel = call.HasAttribute("kernel_shape") ? call.Ints("kernel_shape") : weight_kernel;
  RETURN_IF_ERROR(CheckList("kernel_shape", spatial.kernel, n, 1));
  if (!weight_kernel.empty() && spatial.kernel != weight_kernel) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'kernel_shape': found ", ToString(spatial.kernel),
                                                   ", wanted ", ToString(weight_kernel), " as the weight has"));
  }
  ASSIGN_OR_RETURN(spatial.strides, ReadList(call, "strides", n, 1, 1));
  ASSIGN_OR_RETURN(spatial.dilations, ReadList(call, "dilations", n, 1, 1));
  ASSIGN_OR_RETURN(spatial.padding, ReadList(call, "pads", 2 * n, 0, 0));
  spatial.auto_pad = call.String("auto_pad", "NOTSET");
  if (spatial.auto_pad != "NOTSET" && spatial.auto_pad != "VALID" && spatial.auto_pad != "SAME_UPPER" &&
      spatial.auto_pad != "SAME_LOWER") {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'auto_pad': found ", Quote(spatial.auto_pad),
                                                   ", wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
  }
  if (spatial.auto_pad != "NOTSET" && spatial.padding != std::vector<int64_t>(2 * n)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found auto_pad ", spatial.auto_pad, " beside pads ", ToString(spatial.padding), ", wanted one"));
  }
  return spatial;
}

void ResolvePadding(const Shape& input, Spatial* spatial) {
  if (spatial->auto_pad != "SAME_UPPER" && spatial->auto_pad != "SAME_LOWER") return;
  for (int i = 0; i < spatial->dims; ++i) {
    const int64_t size = input[i + 2], stride = spatial->strides[i];
    const int64_t outputs = size / stride + (size % stride != 0);
    const int64_t span = spatial->dilations[i] * (spatial->kernel[i] - 1) + 1;
    const int64_t total = outputs == 0 ? 0 : std::max<int64_t>((outputs - 1) * stride + span - size, 0);
    const int64_t smaller = total / 2;
    const bool upper = spatial->auto_pad == "SAME_UPPER";
    spatial->padding[i] = upper ? smaller : total - smaller;
    spatial->padding[i + spatial->dims] = total - spatial->padding[i];
  }
}

absl::StatusOr<std::vector<int64_t>> KernelOf(const Shape& input, const Shape& weight) {
  if (weight.size() != input.size() || weight.size() < 3) {
    return absl::InvalidArgumentError(absl::StrCat("found an input of shape ", ToString(input),
                                                   " and a weight of shape ", ToString(weight),
                                                   ", wanted the same rank, 3, 4 or 5"));
  }
  return std::vector<int64_t>(weight.begin() + 2, weight.end());
}

absl::StatusOr<WindowedCall> ReadConv(const Call& call, const Shape& input, const Shape& weight) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KernelOf(input, weight));
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(call, input, kernel));
  ResolvePadding(input, &spatial);
  return WindowedCall{SpatialTarget("conv", spatial.dims),
                      {{"stride", spatial.strides},
                       {"padding", spatial.padding},
                       {"dilation", spatial.dilations},
                       {"groups", call.Int("group", 1)}}};
}

absl::StatusOr<WindowedCall> ReadAveragePool(const Call& call, const Shape& input) {
  ASSIGN_OR_RETURN(Spatial spatial, ReadSpatial(call, input, {}));
  ResolvePadding(input, &spatial);
  if (spatial.dilations != std::vector<int64_t>(spatial.dims, 1)) {
    return absl::UnimplementedError(
        absl::StrCat("found dilations ", ToString(spatial.dilations), ", wanted 1 in each dimension"));
  }
  ASSIGN_OR_RETURN(const bool ceil_mode, call.Flag("ceil_mode", false));
  ASSIGN_OR_RETURN(const bool count_include_pad, call.Flag("count_include_pad", false));
  return WindowedCall{SpatialTarget("avg_pool", spatial.dims),
                      {{"kernel_size", spatial.kernel},
                       {"stride", spatial.strides},
                       {"padding", spatial.padding},
                       {"ceil_mode", ceil_mode},
                       {"count_include_pad", count_include_pad}}};
}

}  // namespace fuselage::onnx
