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
  ASSIGN_OR_RETURN(const Window window,
                   MakeWindow({absl::MakeConstSpan(&frames, 1), call.GetInts("kernel_size"), call.GetInts("stride"),
                               call.GetInts("dilation"), call.GetInts("padding")}));
  return window.axes.back();
}

absl::StatusOr<ir::Type> Infer(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckRank(call, 0, 4));
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckInts(call, "kernel_size", 1, 1));
  RETURN_IF_ERROR(CheckWindowAttributes(call, 1));
  const TensorType& input = call.tensor(0);
  Shape shape = input.shape;
  const int64_t frames = call.GetInt("frames");
  if (frames < 1 || shape[0] % frames != 0) {
    return AttributeError(call, "frames", absl::StrCat("a divisor of the ", shape[0], " images of ", ToString(input)));
  }
  ASSIGN_OR_RETURN(const WindowAxis window, FramesOf(call));
  shape[0] = shape[0] / frames * window.output;
  int64_t& stacked = shape[call.GetBool("as_rows") ? 2 : 1];
  ASSIGN_OR_RETURN(stacked, CheckedNumElements({stacked, window.kernel}));
  return ResultType(input.dtype, std::move(shape), input.quant);
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const WindowAxis window, FramesOf(call));
  const Tensor& input = call.tensor(0);
  Tensor result(call.result());
  if (result.num_elements() == 0) return One(std::move(result));
  const int64_t zero = input.type().quant ? input.type().quant->zero_point() : 0;
  for (int64_t i = 0; zero != 0 && i < result.num_elements(); ++i) result.Set(i, zero);
  // A frame is so many runs, which lie behind each other for each tap.
  const int64_t channels = input.dim(1), runs = call.GetBool("as_rows") ? channels * input.dim(2) : 1;
  const int64_t frame_bytes = channels * input.dim(2) * input.dim(3) * ByteSize(input.dtype());
  const int64_t bytes = frame_bytes / runs;
  const uint8_t* in = static_cast<const uint8_t*>(input.raw_data());
  uint8_t* out = static_cast<uint8_t*>(result.raw_data());
  for (int64_t image = 0; image < result.dim(0); ++image) {
    const int64_t sequence = image / window.output;
    for (int64_t tap = 0; tap < window.kernel; ++tap) {
      const int64_t frame = image % window.output * window.stride - window.begin + tap * window.dilation;
      if (frame < 0 || frame >= window.input) continue;
      const uint8_t* from = in + (sequence * window.input + frame) * frame_bytes;
      uint8_t* to = out + image * window.kernel * frame_bytes + tap * bytes;
      for (int64_t run = 0; run < runs; ++run) std::memcpy(to + run * window.kernel * bytes, from + run * bytes, bytes);
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
                                                     {"as_rows", AttributeKind::kBool, false}});
  schema.keeps_range = true;
  schema.infer = Infer;
  schema.evaluate = Evaluate;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::stack_frames
