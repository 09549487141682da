// Operators that pick, put or resample elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer::operators::indexing {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

// index_select, gather
absl::Status WriteAlongDim(const Call& c) {
  c.Emit(c.onnx, c.in).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

absl::Status WriteGatherNd(const Call& c) {
  c.Emit(c.onnx, c.in).Int("batch_dims", c.op.GetInt("batch_dims"));
  return absl::OkStatus();
}

// Sums and products came with opset 16, extremes with 18.
absl::Status WriteScatter(const Call& c) {
  const std::string& reduce = c.op.GetString("reduce");
  if (reduce != "none") c.to.Require(reduce == "max" || reduce == "min" ? 18 : 16);
  ModelBuilder& node = c.Emit(c.onnx, c.in);
  if (reduce != "none") node.String("reduction", reduce);
  if (c.op.schema().name == "scatter") node.Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

absl::Status WriteOneHot(const Call& c) {
  c.Emit(c.onnx, {c.in[0], c.Ints("depth", {c.op.GetInt("num_classes")}), c.in[1]}).Int("axis", c.op.GetInt("dim"));
  return absl::OkStatus();
}

// Scales of all axes, and only where there are none opset 18's `axes`: a size for the batch would fix it, but
// onnxruntime 1.31 fails on `axes` where it moves channels to the end.
absl::Status WriteResize(const Call& c) {
  const std::string &mode = c.op.GetString("mode"), &coordinates = c.op.GetString("coordinates");
  if (coordinates == "tf_half_pixel_for_nn") return c.Declined(" of coordinates=\"tf_half_pixel_for_nn\" in opset 18");
  c.to.Require(coordinates == "half_pixel_symmetric" ? 19 : 18);
  const std::vector<int64_t>&dims = c.op.GetInts("dims"), &sizes = c.op.GetInts("sizes");
  const auto floats = [&](const char* name, const std::vector<double>& values) {
    if (values.empty()) return std::string();
    return c.Constant(name, Tensor::Of<float>({static_cast<int64_t>(values.size())}, {values.begin(), values.end()}));
  };
  const auto dim_of = [&](size_t i) { return c.type(0).shape[*NormalizeAxis(dims[i], c.type(0).rank())]; };
  std::vector<double> scales = c.op.GetFloats("scales");
  // Whole factors are scales.
  for (size_t i = 0; scales.size() == i && i < sizes.size(); ++i) {
    if (dim_of(i) > 0 && sizes[i] % dim_of(i) == 0) scales.push_back(static_cast<double>(sizes[i] / dim_of(i)));
  }
  if (scales.size() < sizes.size()) scales.clear();
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto scale = static_cast<double>(static_cast<float>(scales[i]));
    const int64_t dim = dim_of(i);
    if (std::floor(static_cast<double>(dim) * scale) != static_cast<double>(sizes[i])) {
      return c.Declined(absl::StrCat(" of ", dim, " elements to ", sizes[i], " by the scale ", scale));
    }
  }
  std::string roi;
  if (coordinates == "tf_crop_and_resize") {
    std::vector<float> whole(2 * dims.size(), 1);
    std::fill(whole.begin(), whole.begin() + dims.size(), 0.0f);
    roi = floats("roi", c.op.GetFloats("roi"));
    if (roi.empty()) roi = c.Constant("roi", Tensor::Of<float>({static_cast<int64_t>(whole.size())}, whole));
  }
  const bool all_axes = !scales.empty() && roi.empty();
  if (all_axes) {
    std::vector<double> all(c.type(0).rank(), 1);
    for (size_t i = 0; i < scales.size(); ++i) all[*NormalizeAxis(dims[i], c.type(0).rank())] = scales[i];
    scales = std::move(all);
  }
  auto& resize =
      c.Emit("Resize", {c.in[0], roi, floats("scales", scales), scales.empty() ? c.Ints("sizes", sizes) : ""});
  if (!all_axes) resize.Ints("axes", dims);
  resize.String("mode", mode)
      .String("coordinate_transformation_mode", coordinates)
      .String("nearest_mode", c.op.GetString("nearest_mode"))
      .Float("cubic_coeff_a", static_cast<float>(c.op.GetFloat("cubic_coeff_a")))
      .Int("antialias", c.op.GetBool("antialias"))
      .Int("exclude_outside", c.op.GetBool("exclude_outside"))
      .Float("extrapolation_value", static_cast<float>(c.op.GetFloat("extrapolation_value")));
  return absl::OkStatus();
}

// ONNX counts indices through all planes.
absl::Status WriteMaxPoolWithIndices(const Call& c) {
  const Shape& shape = c.type(0).shape;
  int64_t plane = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) plane *= shape[axis];
  const DType dtype = c.type(0).dtype;
  if (!IsFloat(dtype) && dtype != DType::kU8 && dtype != DType::kI8) {
    return c.Declined(absl::StrCat(" of ", DTypeName(dtype)));
  }
  c.to.Emit(c.onnx, c.in, {c.Element(0), c.Suffixed("all")})
      .Ints("kernel_shape", c.op.GetInts("kernel_size"))
      .Ints("strides", c.op.GetInts("stride"))
      .Ints("pads", c.op.GetInts("padding"))
      .Ints("dilations", c.op.GetInts("dilation"))
      .Int("ceil_mode", c.op.GetBool("ceil_mode"));
  c.to.Emit("Mod", {c.Suffixed("all"), c.Ints("plane", {plane})}, c.Element(1));
  return absl::OkStatus();
}

// Images came with opset 16, volumes with 20, when the modes were renamed.
absl::Status WriteGridSample(const Call& c) {
  c.to.Require(c.type(0).rank() == 4 ? 16 : 20);
  std::string mode = c.op.GetString("mode");
  if (c.to.opset() >= 20 && mode != "nearest") mode = mode.substr(2);
  c.Emit(c.onnx, c.in)
      .String("mode", mode)
      .String("padding_mode", c.op.GetString("padding_mode"))
      .Int("align_corners", c.op.GetBool("align_corners"));
  return absl::OkStatus();
}

absl::Status WriteRoiAlign(const Call& c) {
  c.to.Require(16);
  if (c.type(2).dtype != DType::kI64) return c.Declined(" of i32 indices");
  c.Emit(c.onnx, c.in)
      .Int("output_height", c.op.GetInt("output_height"))
      .Int("output_width", c.op.GetInt("output_width"))
      .Float("spatial_scale", static_cast<float>(c.op.GetFloat("spatial_scale")))
      .Int("sampling_ratio", c.op.GetInt("sampling_ratio"))
      .String("coordinate_transformation_mode", c.op.GetBool("aligned") ? "half_pixel" : "output_half_pixel")
      .String("mode", c.op.GetString("mode"));
  return absl::OkStatus();
}

absl::Status WriteReverseSequence(const Call& c) {
  c.Emit(c.onnx, c.in).Int("batch_axis", c.op.GetInt("batch_dim")).Int("time_axis", c.op.GetInt("time_dim"));
  return absl::OkStatus();
}

absl::Status WriteTopk(const Call& c) {
  c.to.Emit(c.onnx, {c.in[0], c.Ints("k", {c.op.GetInt("k")})}, {c.Element(0), c.Element(1)})
      .Int("axis", c.op.GetInt("dim"))
      .Int("largest", c.op.GetBool("largest"))
      .Int("sorted", c.op.GetBool("sorted"));
  return absl::OkStatus();
}

// Rows that an operator found, as result 0 with room for `most` of them, and their number as result 1.
void EmitFound(const Call& c, const std::string& found, int64_t most) {
  c.to.Emit("Shape", {found}, c.Suffixed("shape"));
  c.to.Emit("Slice", {c.Suffixed("shape"), c.Ints("from", {0}), c.Ints("to", {1})}, c.Element(1));
  c.to.Emit("Sub", {c.Ints("room", {most}), c.Element(1)}, c.Suffixed("missing"));
  c.to.Emit("Concat", {c.Ints("front", {0, 0}), c.Suffixed("missing"), c.Ints("back", {0})}, c.Suffixed("pads"))
      .Int("axis", 0);
  c.to.Emit("Pad", {found, c.Suffixed("pads")}, c.Element(0));
}

absl::Status WriteNonzero(const Call& c) {
  c.to.Emit(c.onnx, c.in, c.Suffixed("positions"));
  c.to.Emit("Transpose", {c.Suffixed("positions")}, c.Suffixed("rows")).Ints("perm", {1, 0});
  EmitFound(c, c.Suffixed("rows"), c.type(0).num_elements());
  return absl::OkStatus();
}

// Without a threshold any score passes; here all that are numbers above -infinity.
absl::Status WriteNms(const Call& c) {
  const double least = std::max(c.op.GetFloat("score_threshold"), -static_cast<double>(kLargest));
  c.to.Emit(c.onnx,
            {c.in[0], c.in[1], c.Ints("most", {c.op.GetInt("max_output_boxes_per_class")}),
             c.Constant("iou", Tensor::Of<float>({1}, {static_cast<float>(c.op.GetFloat("iou_threshold"))})),
             c.Constant("score", Tensor::Of<float>({1}, {static_cast<float>(least)}))},
            c.Suffixed("rows"))
      .Int("center_point_box", c.op.GetBool("center_point_box"));
  EmitFound(c, c.Suffixed("rows"), c.result.elements()[0].shape[0]);
  return absl::OkStatus();
}

// tril, triu
absl::Status WriteTriangle(const Call& c) {
  c.to.Require(14);
  c.Emit(c.onnx, {c.in[0], c.Ints("k", {c.op.GetInt("diagonal")})}).Int("upper", c.op.schema().name == "triu");
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"gather", WriteAlongDim, "GatherElements"},
      {"gather_nd", WriteGatherNd, "GatherND"},
      {"grid_sample", WriteGridSample, "GridSample"},
      {"index_select", WriteAlongDim, "Gather"},
      {"max_pool1d_with_indices", WriteMaxPoolWithIndices, "MaxPool"},
      {"max_pool2d_with_indices", WriteMaxPoolWithIndices, "MaxPool"},
      {"max_pool3d_with_indices", WriteMaxPoolWithIndices, "MaxPool"},
      {"nms", WriteNms, "NonMaxSuppression"},
      {"nonzero", WriteNonzero, "NonZero"},
      {"one_hot", WriteOneHot, "OneHot"},
      {"resize", WriteResize, "Resize"},
      {"reverse_sequence", WriteReverseSequence, "ReverseSequence"},
      {"roi_align", WriteRoiAlign, "RoiAlign"},
      {"scatter", WriteScatter, "ScatterElements"},
      {"scatter_nd", WriteScatter, "ScatterND"},
      {"topk", WriteTopk, "TopK"},
      {"tril", WriteTriangle, "Trilu"},
      {"triu", WriteTriangle, "Trilu"},
  });
}

}  // namespace fuselage::onnx::writer::operators::indexing
