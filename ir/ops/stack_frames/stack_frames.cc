#include "ir/ops/stack_frames/stack_frames.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/core/window.h"

namespace fuselage::ops::stack_frames {
namespace {

absl::StatusOr<WindowAxis> FramesOf(const ir::OpCall& call) {
  const int64_t frames = call.GetInt("frames");
  ASSIGN_OR_RETURN(const Window window, MakeWindow({absl::MakeConstSpan(&frames, 1), call.GetInts("kernel_size"),
                                                    call.GetInts("stride"), call.GetInts("dilation"),
                                                    call.GetInts("padding")}));
  return window.axes.back();
}

absl::StatusOr<ir::Type> Infer(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckRank(call, 0, 4));
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckInts(call, "kernel_size", 1, 1));
  RETURN_IF_ERROR(CheckWindowAttributes(call, 1));
  const TensorType& input = call.tensor(0);
  Shape shape = input.shape;
  const int64_t frames = call.GetInt("frames"), groups = call.GetInt("groups");
  if (frames < 1 || shape[0] % frames != 0) {
    return AttributeError(call, "frames", absl::StrCat("a divisor of the ", shape[0], " images of ", ToString(input)));
  }
  if (groups < 1 || shape[1] % groups != 0) {
    return AttributeError(call, "groups", absl::StrCat("a divisor of the ", shape[1], " channels of ", ToString(input)));
  }
  ASSIGN_OR_RETURN(const WindowAxis window, FramesOf(call));
  shape[0] = shape[0] / frames * window.output;
  ASSIGN_OR_RETURN(shape[1], CheckedNumElements({shape[1], window.kernel}));
  return ResultType(input.dtype, std::move(shape), input.quant);
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const WindowAxis window, FramesOf(call));
  const Tensor& input = call.tensor(0);
  Tensor result(call.result());
  if (result.num_elements() == 0) return One(std::move(result));
  const int64_t of_group = input.dim(1) / call.GetInt("groups");
  const int64_t bytes = input.dim(2) * input.dim(3) * ByteSize(input.dtype());  // Of a channel.
  const uint8_t* in = static_cast<const uint8_t*>(input.raw_data());
  uint8_t* out = static_cast<uint8_t*>(result.raw_data());
  const int64_t zero = input.type().quant ? input.type().quant->zero_point() : 0;
  for (int64_t i = 0; zero != 0 && i < result.num_elements(); ++i) result.Set(i, zero);
  for (int64_t image = 0; image < result.dim(0); ++image) {
    for (int64_t channel = 0; channel < result.dim(1); ++channel, out += bytes) {
      const int64_t sequence = image / window.output, tap = channel / of_group % window.kernel;
      const int64_t frame = image % window.output * window.stride - window.begin + tap * window.dilation;
      if (frame < 0 || frame >= window.input) continue;
      const int64_t from = channel / (window.kernel * of_group) * of_group + channel % of_group;
      std::memcpy(out, in + ((sequence * window.input + frame) * input.dim(1) + from) * bytes, bytes);
    }
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "stack_frames";
  schema.operands = {{"input"}};
  schema.attributes = WindowAttributes(1);
  schema.attributes.insert(schema.attributes.end(), {{"frames", AttributeKind::kInt, std::nullopt},
                                                     {"kernel_size", AttributeKind::kInts, std::nullopt},
                                                     {"groups", AttributeKind::kInt, 1}});
  schema.keeps_range = true;
  schema.infer = Infer;
  schema.evaluate = Evaluate;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::stack_frames
