#include "tools/peers/cudnn/lowered.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/status.h"
#include "tools/peers/layer.h"

namespace fuselage::peers::cudnn {
namespace {

std::array<int64_t, 4> Dims(const Shape& shape) { return {shape[0], shape[1], shape[2], shape[3]}; }

// [oc, c, kh, kw] to [oc, kh, kw, channels], the channels beyond c zero.
Tensor Filter(const Tensor& weight, DType dtype, int64_t channels) {
  const int64_t c = weight.dim(1), pixels = weight.dim(2) * weight.dim(3);
  Tensor filter(dtype, {weight.dim(0), weight.dim(2), weight.dim(3), channels});
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    const int64_t output = i / (c * pixels), channel = i / pixels % c, pixel = i % pixels;
    filter.Set((output * pixels + pixel) * channels + channel, weight.At(i));
  }
  return filter;
}

absl::StatusOr<LoweredConvolution> Lower(const ir::Node& node, DType dtype) {
  ASSIGN_OR_RETURN(const Layer layer, Layer::Of(node));
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(node.attribute("activation").as_string()));
  if (!activation.is_none() && !activation.is_relu()) {
    return absl::UnimplementedError(absl::StrCat("activation ", ToString(activation), ", wanted none or relu"));
  }
  const bool int8 = dtype == DType::kI8;
  const int64_t groups = node.attribute("groups").as_int(), unit = int8 ? 4 : 8;
  LoweredConvolution lowered{&node, {}, {}, {}, {}};
  Convolution& c = lowered.convolution;
  c.dtype = dtype;
  c.input = Dims(layer.input.shape);
  c.output = Dims(layer.output.shape);
  if (groups == 1) c.input[1] = (c.input[1] + unit - 1) / unit * unit;
  c.weight = Dims(layer.weight->shape());
  c.weight[1] = c.input[1] / groups;
  c.stride = node.attribute("stride").as_ints();
  c.dilation = node.attribute("dilation").as_ints();
  c.padding = node.attribute("padding").as_ints();
  c.relu = activation.is_relu();
  c.residual = node.num_operands() > 1 && node.operand(1) != nullptr;

  const int64_t outputs = c.output[1];
  lowered.weight = Filter(int8 ? *layer.weight : Dequantized(*layer.weight), dtype, c.weight[1]);
  lowered.bias = Tensor(int8 ? DType::kF32 : DType::kF16, {outputs});
  if (int8) lowered.scale = Tensor(DType::kF32, {outputs});
  for (int64_t i = 0; i < outputs; ++i) {
    const float steps = layer.addends[i] * layer.scales[i];
    lowered.bias.Set(i, int8 ? steps : steps * ScaleOf(layer.output));
    if (int8) lowered.scale.Set(i, layer.scales[i]);
  }
  return lowered;
}

}  // namespace

absl::StatusOr<std::vector<LoweredConvolution>> LoweredConvolutions(const ir::Graph& graph, DType dtype) {
  std::vector<LoweredConvolution> all;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->IsOp("int8.conv2d")) continue;
    absl::StatusOr<LoweredConvolution> lowered = Lower(*node, dtype);
    RETURN_IF_ERROR(Annotate(lowered.status(), absl::StrCat("%", node->name())));
    all.push_back(*std::move(lowered));
  }
  if (all.empty()) return absl::InvalidArgumentError("the graph has no convolution");
  return all;
}

}  // namespace fuselage::peers::cudnn
