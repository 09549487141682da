#include "absl/strings/str_cat.h"
#include "ir/base/sampling.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/sampling/sampling.h"

namespace fuselage::ops::sampling {
namespace {

std::vector<std::string> Names(absl::Span<const char* const> names) { return {names.begin(), names.end()}; }

absl::StatusOr<ir::Type> InferGridSample(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(CheckFloat(call, 1));
  RETURN_IF_ERROR(CheckRank(call, 0, 4, 5));
  RETURN_IF_ERROR(CheckOneOf(call, "mode", Names(SampleModes())));
  RETURN_IF_ERROR(CheckOneOf(call, "padding_mode", Names(SamplePaddings())));
  const TensorType &input = call.tensor(0), &grid = call.tensor(1);
  const int rank = input.rank();
  RETURN_IF_ERROR(CheckRank(call, 1, rank));
  if (grid.shape[0] != input.shape[0] || grid.shape.back() != rank - 2) {
    return OperandError(call, 1, absl::StrCat("wanted ", input.shape[0], " grids of ", rank - 2, " coordinates"));
  }
  for (int axis = 2; axis < rank; ++axis) {
    if (input.shape[axis] < 1) return OperandError(call, 0, absl::StrCat("wanted at least one pixel on axis ", axis));
  }
  Shape shape = {input.shape[0], input.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return ResultType(input.dtype, std::move(shape));
}

// The value of an image [D, H, W] between the pixels that `taps` names on its axes.
double Sample(const double* image, const Shape& shape, const AxisTaps (&taps)[3]) {
  double sum = 0;
  for (int i = 0; i < taps[0].count; ++i) {
    for (int j = 0; j < taps[1].count; ++j) {
      for (int k = 0; k < taps[2].count; ++k) {
        const int64_t z = taps[0].index[i], y = taps[1].index[j], x = taps[2].index[k];
        if (z < 0 || y < 0 || x < 0) continue;
        const double weight = taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k];
        sum += weight * image[(z * shape[1] + y) * shape[2] + x];
      }
    }
  }
  return sum;
}

absl::StatusOr<std::vector<Tensor>> EvaluateGridSample(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const int dims = input.rank() - 2;
  Shape image(input.shape().begin() + 2, input.shape().end());
  if (dims == 2) image.insert(image.begin(), 1);
  const std::vector<double> x = RealValues(input), grid = RealValues(call.tensor(1));
  Tensor result(call.result());
  const int64_t channels = input.dim(1), pixels = image[0] * image[1] * image[2];
  const int64_t places = channels == 0 || input.dim(0) == 0 ? 0 : result.num_elements() / (input.dim(0) * channels);
  for (int64_t i = 0; i < places * input.dim(0); ++i) {
    AxisTaps taps[3] = {{1, {0}, {1}}, {}, {}};
    for (int axis = 3 - dims; axis < 3; ++axis) {
      const SampleAxis sample{image[axis], SampleModeOf(call.GetString("mode")),
                              SamplePaddingOf(call.GetString("padding_mode")), call.GetBool("align_corners")};
      taps[axis] = GridTaps(sample, grid[i * dims + 2 - axis]);
    }
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = i / places * channels + c;
      result.Set(plane * places + i % places, Sample(x.data() + plane * pixels, image, taps));
    }
  }
  return One(std::move(result));
}

}  // namespace

void RegisterGridSample(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "grid_sample";
  schema.aliases = {"torch.nn.functional.grid_sample"};
  schema.operands = {{"input"}, {"grid"}};
  schema.attributes = {{"mode", AttributeKind::kString, "bilinear"},
                       {"padding_mode", AttributeKind::kString, "zeros"},
                       {"align_corners", AttributeKind::kBool, false}};
  schema.infer = InferGridSample;
  schema.evaluate = EvaluateGridSample;
  registry.Register(std::move(schema));
}

void Register(ir::OpRegistry& registry) {
  RegisterGridSample(registry);
  RegisterRoiAlign(registry);
}

}  // namespace fuselage::ops::sampling
