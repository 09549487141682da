#include "passes/fusion/subpixel.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/match/properties.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/horizontal.h"

namespace fuselage::fusion {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;

int64_t CeilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t FloorOf(int64_t a, int64_t b) { return a / b - (a % b < 0); }

using Axes = std::array<PhasedAxis, 2>;

Axes AxesOf(const Node& node) { return {PhasedAxisOf(node, 0), PhasedAxisOf(node, 1)}; }

// Why its phases would be filled up with zeros; empty where they would not.
std::string WhyNotExact(const Node& node) {
  for (const PhasedAxis& axis : AxesOf(node)) {
    if (axis.kernel % axis.stride != 0) {
      return absl::StrCat("a kernel of ", axis.kernel, " is no multiple of the stride ", axis.stride);
    }
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
      for (int64_t i = 0; i < h.taps(); ++i) {
        for (int64_t j = 0; j < w.taps(); ++j, ++to) {
          const int64_t tap_h = h.TapOf(phase_h, i), tap_w = w.TapOf(phase_w, j);
          const bool inside = tap_h >= 0 && tap_h < h.kernel && tap_w >= 0 && tap_w < w.kernel;
          *to = inside ? kernel[tap_h * w.kernel + tap_w] : 0;
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

absl::StatusOr<Node*> AddConvolution(Node* node, const Activation& activation, const Axes& axes, ir::Graph& graph) {
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
                                 {{"padding", Ints{h.begin(), w.begin(), h.end(), w.end()}},
                                  {"groups", groups},
                                  {"activation", ToString(activation)}},
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

}  // namespace

int64_t PhasedAxis::first() const { return FloorOf(padding - cropped - kernel, stride) + 1; }
int64_t PhasedAxis::last() const { return (stride - 1 + padding - cropped) / stride; }
int64_t PhasedAxis::pixels() const { return CeilOf(cropped + output, stride); }

std::string PhasedAxis::WhyNot() const {
  if (kernel < stride) return "its stride is larger than its kernel";
  return begin() < 0 || end() < 0 ? "padding beyond the taps" : "";
}

PhasedAxis PhasedAxisOf(const Node& node, int i) {
  const Tensor& weight = *node.graph().ParameterOfOrNull(node, "weight");
  PhasedAxis axis = {node.operand(0)->tensor_type().shape[2 + i], node.tensor_type().shape[2 + i], weight.dim(2 + i),
                     node.attribute("stride").as_ints()[i], node.attribute("padding").as_ints()[i]};
  while (axis.taps() > CeilOf(axis.kernel, axis.stride)) ++axis.cropped;
  return axis;
}

std::string WhyNotSubpixel(const Node& node) {
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
  for (const PhasedAxis& axis : AxesOf(node)) {
    if (std::string why = axis.WhyNot(); !why.empty()) return why;
  }
  return "";
}

absl::Status RewriteAsSubpixel(Node* node, Node* activation, ir::Graph& graph) {
  const Axes axes = AxesOf(*node);
  const auto& [h, w] = axes;
  std::vector<Node*> added;
  const Activation function = activation == nullptr ? Activation() : ActivationOf(*activation);
  ASSIGN_OR_RETURN(Node * value, AddConvolution(node, function, axes, graph));
  added.push_back(value);
  if (h.stride * w.stride > 1) {
    ASSIGN_OR_RETURN(value, AddDepthToSpace(value, node, axes, graph));
    added.insert(added.end(), {value->operand(0)->operand(0), value->operand(0), value});
  }
  if (value->type() != node->type()) {
    ASSIGN_OR_RETURN(value, graph.AddFunction(absl::StrCat(node->name(), "_cropped"), "slice", {value},
                                              {{"axes", Ints{2, 3}},
                                               {"starts", Ints{h.cropped, w.cropped}},
                                               {"ends", Ints{h.cropped + h.output, w.cropped + w.output}}},
                                              node));
    added.push_back(value);
  }
  for (Node* call : added) call->AddSources(node->SourcesOrSelf());
  if (activation != nullptr) {
    added[0]->AddSources(activation->SourcesOrSelf());
    activation->ReplaceAllUsesWith(node);
    graph.Erase(activation);
  }
  node->ReplaceAllUsesWith(value);
  ir::Module *const replaced = node->module(), *const module = added[0]->module();
  graph.Replace(node, added[0]);
  const std::string path = replaced->path;
  graph.EraseModule(replaced);
  graph.RenameModule(module, path);
  return absl::OkStatus();
}

absl::StatusOr<bool> RewriteConvTransposes(ir::Graph& graph, passes::Remarks& remarks) {
  bool changed = false;
  for (Node* node : graph.Snapshot()) {
    if (!node->IsOp("conv_transpose2d")) continue;
    std::string why = WhyNotSubpixel(*node);
    if (why.empty()) why = WhyNotExact(*node);
    if (!why.empty()) {
      remarks.Missed(*node, absl::StrCat("stays a transposed convolution: ", why));
      continue;
    }
    remarks.Applied(*node, "as a convolution and depth to space");
    RETURN_IF_ERROR(RewriteAsSubpixel(node, /*activation=*/nullptr, graph));
    changed = true;
  }
  return changed;
}

}  // namespace fuselage::fusion
