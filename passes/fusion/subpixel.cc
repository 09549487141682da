#include "passes/fusion/subpixel.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/match/properties.h"
#include "passes/fusion/horizontal.h"

namespace fuselage::fusion {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

// One spatial axis. Pixel o of the result sums x[i] * w[t] over i * stride + t = o + padding.
struct Axis {
  int64_t input, output, kernel, stride, padding;

  int64_t taps() const { return kernel / stride; }      // Of a phase.
  int64_t cropped() const { return padding % stride; }  // Pixels in front of the result.
  int64_t skipped() const { return padding / stride; }  // Pixels of each phase in front of those.
  int64_t pixels() const { return (cropped() + output + stride - 1) / stride; }  // Of a phase.
  // Those of the convolution.
  int64_t begin() const { return taps() - 1 - skipped(); }
  int64_t end() const { return pixels() + skipped() - input; }
};
using Axes = std::array<Axis, 2>;

Axes AxesOf(const Node& node) {
  const Shape &input = node.operand(0)->tensor_type().shape, &output = node.tensor_type().shape;
  const Shape& weight = node.graph().ParameterOfOrNull(node, "weight")->shape();
  const Ints &stride = node.attribute("stride").as_ints(), &padding = node.attribute("padding").as_ints();
  Axes axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {input[2 + i], output[2 + i], weight[2 + i], stride[i], padding[i]};
  }
  return axes;
}

// Why it stays as it is; empty where it does not.
std::string WhyNot(const Node& node) {
  if (node.kind() != ir::NodeKind::kCallModule) return "it is no call_module (run normalize first)";
  std::string shared = SharedWeight(node);
  if (!shared.empty()) return shared;
  const ir::Graph& graph = node.graph();
  const Tensor *weight = graph.ParameterOfOrNull(node, "weight"), *bias = graph.ParameterOfOrNull(node, "bias");
  const bool is_float = match::IsF32(node) && !weight->type().quant && (bias == nullptr || !bias->type().quant);
  if (!is_float || node.tensor_type().num_elements() == 0) {
    return "wanted a result, a weight and a bias of f32, with elements";
  }
  if (node.attribute("dilation").as_ints() != Ints{1, 1}) return "it is dilated";
  for (const Axis& axis : AxesOf(node)) {
    if (axis.kernel % axis.stride != 0) {
      return absl::StrCat("a kernel of ", axis.kernel, " is no multiple of the stride ", axis.stride);
    }
    if (axis.begin() < 0 || axis.end() < 0) return "padding beyond the taps";
  }
  return "";
}

// From [C, K, kernel] with groups in C, to [groups * phases * K, C of a group, taps].
std::shared_ptr<const Tensor> Phases(const Tensor& weight, int64_t groups, const Axes& axes) {
  const auto& [h, w] = axes;
  const int64_t in = weight.dim(0) / groups, out = weight.dim(1);
  auto phases =
      std::make_shared<Tensor>(DType::kF32, Shape{groups * h.stride * w.stride * out, in, h.taps(), w.taps()});
  const float* from = weight.data<float>();
  float* to = phases->data<float>();
  for (int64_t row = 0; row < phases->dim(0); ++row) {
    const int64_t k = row % out, phase_w = row / out % w.stride, phase_h = row / (out * w.stride) % h.stride;
    const int64_t group = row / (out * w.stride * h.stride);
    for (int64_t c = 0; c < in; ++c) {
      const float* kernel = from + ((group * in + c) * out + k) * h.kernel * w.kernel;
      for (int64_t tap_h = h.taps() - 1; tap_h >= 0; --tap_h) {
        for (int64_t tap_w = w.taps() - 1; tap_w >= 0; --tap_w) {
          *to++ = kernel[(phase_h + tap_h * h.stride) * w.kernel + phase_w + tap_w * w.stride];
        }
      }
    }
  }
  return phases;
}

// The bias of each group for all of its phases.
std::shared_ptr<const Tensor> Repeated(const Tensor& bias, int64_t groups, int64_t phases) {
  auto repeated = std::make_shared<Tensor>(DType::kF32, Shape{phases * bias.num_elements()});
  const int64_t out = bias.num_elements() / groups;
  for (int64_t row = 0; row < repeated->num_elements(); ++row) {
    repeated->Set(row, bias.At(row / (phases * out) * out + row % out));
  }
  return repeated;
}

absl::StatusOr<Node*> AddConvolution(Node* node, const Axes& axes, ir::Graph& graph) {
  const auto& [h, w] = axes;
  const int64_t groups = node->attribute("groups").as_int();
  const std::string path = graph.UniqueModulePath(absl::StrCat(node->module()->path, ".phases"));
  std::map<std::string, std::string> parameters;
  parameters["weight"] = graph.AddParameter(absl::StrCat(path, ".weight"),
                                            Phases(*graph.ParameterOfOrNull(*node, "weight"), groups, axes));
  if (const Tensor* bias = graph.ParameterOfOrNull(*node, "bias"); bias != nullptr) {
    parameters["bias"] = graph.AddParameter(absl::StrCat(path, ".bias"), Repeated(*bias, groups, h.stride * w.stride));
  }
  RETURN_IF_ERROR(graph
                      .AddModule(path, "conv2d",
                                 {{"padding", Ints{h.begin(), w.begin(), h.end(), w.end()}}, {"groups", groups}},
                                 std::move(parameters))
                      .status());
  return graph.AddModuleCall(absl::StrCat(node->name(), "_phases"), path, {node->operand(0)}, node);
}

// The phases' pixels in their places.
absl::StatusOr<Node*> AddDepthToSpace(Node* phases, Node* node, const Axes& axes, ir::Graph& graph) {
  const auto& [h, w] = axes;
  const int64_t channels = node->tensor_type().shape[1], groups = node->attribute("groups").as_int();
  ASSIGN_OR_RETURN(
      Node * apart,
      graph.AddFunction(absl::StrCat(node->name(), "_apart"), "reshape", {phases},
                        {{"shape", Ints{0, groups, h.stride, w.stride, channels / groups, h.pixels(), w.pixels()}}},
                        node));
  ASSIGN_OR_RETURN(Node * moved, graph.AddFunction(absl::StrCat(node->name(), "_moved"), "permute", {apart},
                                                   {{"dims", Ints{0, 1, 4, 5, 2, 6, 3}}}, node));
  return graph.AddFunction(absl::StrCat(node->name(), "_joined"), "reshape", {moved},
                           {{"shape", Ints{0, channels, h.pixels() * h.stride, w.pixels() * w.stride}}}, node);
}

absl::Status Rewrite(Node* node, ir::Graph& graph) {
  const Axes axes = AxesOf(*node);
  const auto& [h, w] = axes;
  std::vector<Node*> added;
  ASSIGN_OR_RETURN(Node * value, AddConvolution(node, axes, graph));
  added.push_back(value);
  if (h.stride * w.stride > 1) {
    ASSIGN_OR_RETURN(value, AddDepthToSpace(value, node, axes, graph));
    added.insert(added.end(), {value->operand(0)->operand(0), value->operand(0), value});
  }
  if (value->type() != node->type()) {
    ASSIGN_OR_RETURN(value, graph.AddFunction(absl::StrCat(node->name(), "_cropped"), "slice", {value},
                                              {{"axes", Ints{2, 3}},
                                               {"starts", Ints{h.cropped(), w.cropped()}},
                                               {"ends", Ints{h.cropped() + h.output, w.cropped() + w.output}}},
                                              node));
    added.push_back(value);
  }
  for (Node* call : added) call->AddSources(node->SourcesOrSelf());
  node->ReplaceAllUsesWith(value);
  ir::Module *const replaced = node->module(), *const module = added[0]->module();
  graph.Replace(node, added[0]);
  const std::string path = replaced->path;
  graph.EraseModule(replaced);
  graph.RenameModule(module, path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> RewriteConvTransposes(ir::Graph& graph, passes::Remarks& remarks) {
  bool changed = false;
  for (Node* node : graph.Snapshot()) {
    if (!node->IsOp("conv_transpose2d")) continue;
    const std::string why = WhyNot(*node);
    if (!why.empty()) {
      remarks.Missed(*node, absl::StrCat("stays a transposed convolution: ", why));
      continue;
    }
    remarks.Applied(*node, "as a convolution and depth to space");
    RETURN_IF_ERROR(Rewrite(node, graph));
    changed = true;
  }
  return changed;
}

}  // namespace fuselage::fusion
