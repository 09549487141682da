// Operators that read images between pixels, or put patches together.
#include <cstdint>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/spatial.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::sampling {
namespace {

using Ints = std::vector<int64_t>;

// The coordinates of pixel `i` of `size`: from -1 to 1, edge to edge or center to center.
double GridCoordinate(int64_t i, int64_t size, bool align_corners) {
  const auto place = static_cast<double>(i), count = static_cast<double>(size);
  if (align_corners) return size == 1 ? -1 : 2 * place / (count - 1) - 1;
  return (2 * place + 1) / count - 1;
}

// The modes were named after images before opset 20.
absl::Status ConvertGridSample(Call& call) {
  std::string mode = call.String("mode", call.opset() < 20 ? "bilinear" : "linear");
  if (call.opset() >= 20 && (mode == "linear" || mode == "cubic")) mode = "bi" + mode;
  ASSIGN_OR_RETURN(const bool align_corners, call.Flag("align_corners", false));
  return call.Result(
      "grid_sample", call.operands(),
      {{"mode", mode}, {"padding_mode", call.String("padding_mode", "zeros")}, {"align_corners", align_corners}});
}

// theta times the homogeneous coordinates of every pixel.
absl::Status ConvertAffineGrid(Call& call) {
  ASSIGN_OR_RETURN(const bool align_corners, call.Flag("align_corners", false));
  ASSIGN_OR_RETURN(const Ints size, call.ConstantInts(1));
  const int dims = static_cast<int>(size.size()) - 2;
  if ((dims != 2 && dims != 3) || call.shape(0) != Shape{size[0], dims, dims + 1}) {
    return absl::InvalidArgumentError(absl::StrCat("found theta ", ToString(call.type(0)), " for a size ",
                                                   ToString(size), ", wanted [N, 2, 3] for [N, C, H, W] or [N, 3, 4]"));
  }
  const Shape image(size.begin() + 2, size.end());
  ASSIGN_OR_RETURN(const int64_t pixels, CheckedNumElements(image));
  ASSIGN_OR_RETURN(Tensor points, ChargedTensor(call, call.type(0).dtype, {dims + 1, pixels}));
  for (int64_t i = 0; i < pixels; ++i) {
    points.Set(dims * pixels + i, 1);
    int64_t rest = i;
    for (int axis = dims - 1; axis >= 0; rest /= image[axis--]) {  // x, along the last axis, comes first.
      points.Set((dims - 1 - axis) * pixels + i, GridCoordinate(rest % image[axis], image[axis], align_corners));
    }
  }
  const Value constant = Builder::Constant(call.name() + ".points", std::move(points));
  ASSIGN_OR_RETURN(const Value moved, call.EmitHelper("moved", "matmul", {call.operand(0), constant}));
  ASSIGN_OR_RETURN(const Value columns, call.EmitHelper("columns", "transpose", {moved}, {{"dim0", 1}, {"dim1", 2}}));
  Shape grid = size;
  grid.erase(grid.begin() + 1);
  grid.push_back(dims);
  return call.Result("reshape", {columns}, {{"shape", grid}, {"allow_zero", true}});
}

// Boxes are of pixels whose centers are at 0.5 from opset 16 on, unless said otherwise.
absl::Status ConvertRoiAlign(Call& call) {
  const std::string coordinates =
      call.String("coordinate_transformation_mode", call.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'coordinate_transformation_mode': found ",
                                                   Quote(coordinates), ", wanted half_pixel or output_half_pixel"));
  }
  return call.Result("roi_align", call.operands(),
                     {{"output_height", call.Int("output_height", 1)},
                      {"output_width", call.Int("output_width", 1)},
                      {"spatial_scale", call.Float("spatial_scale", 1)},
                      {"sampling_ratio", call.Int("sampling_ratio", 0)},
                      {"aligned", coordinates == "half_pixel"},
                      {"mode", call.String("mode", "avg")}});
}

// One axis of Col2Im: the pixel of tap t of block b is b * stride - begin + t * dilation.
struct BlockAxis {
  int64_t image, block, blocks, stride, dilation, begin;
};

absl::StatusOr<std::vector<BlockAxis>> ReadBlocks(const Call& call) {
  ASSIGN_OR_RETURN(const Ints image, call.ConstantInts(1));
  ASSIGN_OR_RETURN(const Ints block, call.ConstantInts(2));
  const size_t n = image.size();
  const auto list = [&](absl::string_view name, size_t size, int64_t otherwise) {
    return call.HasAttribute(name) ? call.Ints(name) : Ints(size, otherwise);
  };
  const Ints strides = list("strides", n, 1), dilations = list("dilations", n, 1), pads = list("pads", 2 * n, 0);
  if (n < 1 || block.size() != n || strides.size() != n || dilations.size() != n || pads.size() != 2 * n) {
    return absl::InvalidArgumentError(absl::StrCat("found ", n, " axes of the image, ", block.size(), " of the block, ",
                                                   strides.size(), " strides, ", dilations.size(), " dilations and ",
                                                   pads.size(), " pads, wanted them to agree"));
  }
  std::vector<BlockAxis> axes;
  for (size_t i = 0; i < n; ++i) {
    for (const int64_t value : {image[i], block[i], strides[i], dilations[i], pads[i] + 1, pads[i + n] + 1}) {
      if (value < 1 || value > INT16_MAX) {
        return absl::InvalidArgumentError(absl::StrCat("axis ", i, ": found ", value, ", wanted sizes in [1, 2^15)"));
      }
    }
    const int64_t room = image[i] + pads[i] + pads[i + n] - dilations[i] * (block[i] - 1) - 1;
    axes.push_back({image[i], block[i], room < 0 ? 0 : room / strides[i] + 1, strides[i], dilations[i], pads[i]});
  }
  return axes;
}

// For each tap of the block, and each block: its pixel in the image, or the one behind the last for what lies beyond.
absl::StatusOr<Tensor> PixelsOfBlocks(Call& call, const std::vector<BlockAxis>& axes, int64_t taps, int64_t blocks,
                                      int64_t pixels) {
  ASSIGN_OR_RETURN(Tensor result, ChargedTensor(call, DType::kI64, {taps * blocks, 1}));
  for (int64_t i = 0; i < taps * blocks; ++i) {
    int64_t tap = i / blocks, block = i % blocks, pixel = 0, stride = 1;
    for (size_t axis = axes.size(); axis-- > 0;) {
      const BlockAxis& a = axes[axis];
      const int64_t at = block % a.blocks * a.stride - a.begin + tap % a.block * a.dilation;
      pixel = at < 0 || at >= a.image || pixel < 0 ? -1 : pixel + at * stride;
      stride *= a.image;
      tap /= a.block;
      block /= a.blocks;
    }
    result.data<int64_t>()[i] = pixel < 0 ? pixels : pixel;
  }
  return result;
}

// Columns [N, C * taps, blocks]: each tap of each block is added to its pixel. Pixels come first, so that rows are
// added.
absl::Status ConvertCol2Im(Call& call) {
  ASSIGN_OR_RETURN(const std::vector<BlockAxis> axes, ReadBlocks(call));
  int64_t taps = 1, blocks = 1;
  Shape image;
  for (const BlockAxis& axis : axes) {
    if (__builtin_mul_overflow(taps, axis.block, &taps)) taps = INT64_MAX;
    if (__builtin_mul_overflow(blocks, axis.blocks, &blocks)) blocks = INT64_MAX;
    image.push_back(axis.image);
  }
  ASSIGN_OR_RETURN(const int64_t pixels, CheckedNumElements(image));
  if (call.rank(0) != 3 || call.shape(0)[1] % taps != 0 || call.shape(0)[2] != blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", ToString(call.type(0)), ", wanted [N, C * ", taps, ", ", blocks, "] for these blocks"));
  }
  const int64_t batch = call.shape(0)[0], channels = call.shape(0)[1] / taps;
  ASSIGN_OR_RETURN(Tensor places, PixelsOfBlocks(call, axes, taps, blocks, pixels));
  ASSIGN_OR_RETURN(Tensor nothing, ChargedTensor(call, call.type(0).dtype, {pixels + 1, batch * channels}));
  const Value index = Builder::Constant(call.name() + ".pixels", std::move(places));
  const Value zeros = Builder::Constant(call.name() + ".zeros", std::move(nothing));
  const Shape planes = {batch * channels, taps * blocks};
  const AttributeMap turn = {{"dim0", 0}, {"dim1", 1}}, whole = {{"starts", Ints{0}}, {"ends", Ints{pixels}}};
  ASSIGN_OR_RETURN(Value x,
                   call.EmitHelper("planes", "reshape", {call.operand(0)}, {{"shape", planes}, {"allow_zero", true}}));
  ASSIGN_OR_RETURN(x, call.EmitHelper("taps", "transpose", {x}, turn));
  ASSIGN_OR_RETURN(x, call.EmitHelper("sums", "scatter_nd", {zeros, index, x}, {{"reduce", "add"}}));
  ASSIGN_OR_RETURN(x, call.EmitHelper("inside", "slice", {x}, whole));
  ASSIGN_OR_RETURN(x, call.EmitHelper("images", "transpose", {x}, turn));
  image.insert(image.begin(), {batch, channels});
  return call.Result("reshape", {x}, {{"shape", image}, {"allow_zero", true}});
}

constexpr char kRoiAlign[] =
    "coordinate_transformation_mode=STRING mode=STRING output_height=INT output_width=INT sampling_ratio=INT "
    "spatial_scale=FLOAT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"AffineGrid", 20, {2, 2}, {1, 1}, "align_corners=INT", ConvertAffineGrid},
      {"Col2Im", 18, {3, 3}, {1, 1}, "dilations=INTS pads=INTS strides=INTS", ConvertCol2Im},
      {"GridSample", 16, {2, 2}, {1, 1}, "align_corners=INT mode=STRING padding_mode=STRING", ConvertGridSample},
      {"RoiAlign", 10, {3, 3}, {1, 1}, kRoiAlign, ConvertRoiAlign},
  });
}

}  // namespace fuselage::onnx::converters::sampling
