#include "passes/volumes/volumes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "passes/fusion/subpixel.h"
#include "passes/volumes/stack.h"
#include "passes/volumes/volumes.pb.h"

namespace fuselage::volumes {
namespace {

using ir::Node;
using passes::Remarks;
using Ints = std::vector<int64_t>;

constexpr int kRank = 5;  // Of a volume.

// Of windows: the values along the depth, one or, of paddings, the begin and the end; and the others.
Ints AlongDepth(const Ints& values) { return values.size() == 3 ? Ints{values[0]} : Ints{values[0], values[3]}; }
Ints Across(const Ints& values) {
  return values.size() == 3 ? Ints{values[1], values[2]} : Ints{values[1], values[2], values[4], values[5]};
}

// The attributes of a window over volumes, those with a value for each axis as `part` has them.
template <typename Part>
AttributeMap OfWindow(AttributeMap attributes, Part part) {
  for (auto& [name, value] : attributes) {
    if (value.kind() == AttributeKind::kInts) value = part(value.as_ints());
  }
  return attributes;
}

// A column of the depth in a sheet.
Ints AsColumn(const Ints& values) {
  const Ints depth = AlongDepth(values);
  return depth.size() == 1 ? Ints{depth[0], 1} : Ints{depth[0], 0, depth[1], 0};
}

// A weight [OC, C, kernel...] over volumes as one over images of stacked frames, as channels or as rows.
std::shared_ptr<const Tensor> OverImages(const Tensor& weight, bool as_rows) {
  const int64_t channels = weight.dim(1), taps = weight.dim(2), rows = weight.dim(3);
  TensorType type = weight.type();
  type.shape = as_rows ? Shape{weight.dim(0), channels, rows * taps, weight.dim(4)}
                       : Shape{weight.dim(0), taps * channels, rows, weight.dim(4)};
  auto images = std::make_shared<Tensor>(std::move(type));
  const int64_t bytes = weight.dim(4) * ByteSize(weight.dtype());  // Of a row.
  const uint8_t* from = static_cast<const uint8_t*>(weight.raw_data());
  uint8_t* to = static_cast<uint8_t*>(images->raw_data());
  for (int64_t i = 0; i < weight.dim(0); ++i, to += channels * taps * rows * bytes) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t row = 0; row < rows; ++row, from += bytes) {
          std::memcpy(to + (as_rows ? (c * rows + row) * taps + tap : (tap * channels + c) * rows + row) * bytes, from,
                      bytes);
        }
      }
    }
  }
  return images;
}

// A transposed convolution's [C, OC, kernel...] as one from images of stacked frames to channels of a frame for each
// phase along the depth.
std::shared_ptr<const Tensor> OverPhases(const Tensor& weight, const fusion::PhasedAxis& depth) {
  const int64_t in = weight.dim(0), out = weight.dim(1), pixels = weight.dim(3) * weight.dim(4);
  auto images =
      std::make_shared<Tensor>(DType::kF32, Shape{depth.taps() * in, depth.stride * out, weight.dim(3), weight.dim(4)});
  const float* from = weight.data<float>();
  float* to = images->data<float>();
  for (int64_t i = 0; i < depth.taps() * in; ++i) {
    for (int64_t k = 0; k < depth.stride * out; ++k, to += pixels) {
      const int64_t tap = depth.TapOf(k / out, i / in);
      if (tap < 0 || tap >= depth.kernel) continue;
      std::copy_n(from + ((i % in * out + k % out) * depth.kernel + tap) * pixels, pixels, to);
    }
  }
  return images;
}

class Rewriter {
 public:
  Rewriter(ir::Graph& graph, Remarks& remarks) : graph_(graph), remarks_(remarks) {}

  absl::StatusOr<bool> Run() {
    for (Node* node : graph_.Snapshot()) {
      if (!node->is_call() || !node->type().is_tensor() || node->tensor_type().num_elements() == 0) continue;
      RETURN_IF_ERROR(Visit(node));
    }
    RETURN_IF_ERROR(Finish());
    return !rewritten_.empty();
  }

 private:
  // `first` takes the name of `node`, whose value is then `stack`.
  struct Rewritten {
    Node *node, *first;
    Stack stack;
  };

  absl::Status Visit(Node* node) {
    if (node->IsOp("conv3d") || node->IsOp("conv_transpose3d")) return Convolution(node);
    bool reads_stack = false;
    for (const Node* operand : node->operands()) reads_stack |= operand != nullptr && stacks_.contains(operand);
    if (!reads_stack) return absl::OkStatus();
    if (node->op()->view == ir::View::kSameOrder) return View(node);
    if (node->tensor_type().rank() != kRank) return absl::OkStatus();
    if (node->IsOp("max_pool3d") || node->IsOp("avg_pool3d")) return Pool(node);
    const bool of_sheet = node->IsOp("global_avg_pool") || node->IsOp("group_norm") || node->IsOp("instance_norm");
    if (of_sheet) return OfSheet(node);
    const bool by_channel = node->IsOp("batch_norm") || JoinsChannels(*node);
    if (by_channel || match::ConvertsAll(*node) || node->op()->elementwise) return Same(node);
    return absl::OkStatus();
  }

  static bool JoinsChannels(const Node& node) {
    if (!node.IsOp("cat")) return false;
    const int64_t dim = node.attribute("dim").as_int();
    return dim == 1 || dim == 1 - kRank;
  }

  // --- What nodes become.

  absl::Status Convolution(Node* node) {
    if (const std::string why = WhyNot(*node); !why.empty()) {
      remarks_.Missed(*node, absl::StrCat("stays a convolution over volumes: ", why));
      return absl::OkStatus();
    }
    const bool transposed = node->IsOp("conv_transpose3d"), column = IsColumn(*node);
    std::vector<Node*> operands;
    for (Node* operand : node->operands()) {
      ASSIGN_OR_RETURN(const Stack stack, Get(operand, node));
      operands.push_back(stack.images);
      if (column) {
        ASSIGN_OR_RETURN(operands.back(), SheetOf(stack, node));
      } else if (operands.size() == 1) {
        AttributeMap window = transposed ? PhaseOf(fusion::PhasedAxisOf(*node, 0)) : DepthOf(*node);
        ASSIGN_OR_RETURN(operands.back(), Stacked(node, stack, std::move(window)));
      }
    }
    ASSIGN_OR_RETURN(const std::string path, ModuleOf(*node));
    ASSIGN_OR_RETURN(Node * images, graph_.AddModuleCall(node->name(), path, operands, node));
    images->AddSources(node->SourcesOrSelf());
    const Shape& shape = node->tensor_type().shape;
    Stack stack = {images, shape[2]};
    if (transposed) {
      ASSIGN_OR_RETURN(stack, Unphased(images, fusion::PhasedAxisOf(*node, 0), node));
    } else if (column) {
      ASSIGN_OR_RETURN(stack, StackOfSheet(images, shape[3], node));
    }
    remarks_.Applied(*node, column ? "over a sheet of its frames" : "over images of its frames");
    Done(node, images, stack);
    return absl::OkStatus();
  }

  // Why a convolution stays; empty where it does not.
  std::string WhyNot(const Node& node) const {
    if (node.kind() != ir::NodeKind::kCallModule) return "it is no call_module (run normalize first)";
    if (!match::IsF32(node) || node.operand(0)->tensor_type().num_elements() == 0) return "wanted f32 with elements";
    const Tensor& weight = *graph_.ParameterOfOrNull(node, "weight");
    const std::optional<QuantParams>& quant = weight.type().quant;
    const int64_t groups = node.attribute("groups").as_int();
    const Ints& dilation = node.attribute("dilation").as_ints();
    if (node.IsOp("conv3d")) {
      if (quant && !quant->per_tensor() && quant->axis != 0) return "its weight's scales are not those of axis 0";
      const bool rows_apart = groups > 1 && weight.dim(2) > 1 && weight.dim(3) > 1 && dilation[1] > 1;
      return rows_apart ? "it has groups, and rows of its kernel are dilated" : "";
    }
    if (quant || groups > 1) return "it has groups or codes";
    return dilation[0] > 1 ? "it is dilated" : fusion::PhasedAxisOf(node, 0).WhyNot();
  }

  // A window along the depth alone.
  bool IsColumn(const Node& node) const {
    if (!node.IsOp("conv3d")) return false;
    const Tensor& weight = *graph_.ParameterOfOrNull(node, "weight");
    return weight.dim(2) > 1 && weight.dim(3) == 1 && weight.dim(4) == 1 &&
           Across(node.attribute("stride").as_ints()) == Ints{1, 1} &&
           Across(node.attribute("padding").as_ints()) == Ints{0, 0, 0, 0};
  }

  // The window along the depth, as stack_frames has it. Groups keep their channels behind each other.
  AttributeMap DepthOf(const Node& node) const {
    AttributeMap window = {{"kernel_size", Ints{graph_.ParameterOfOrNull(node, "weight")->dim(2)}},
                           {"as_rows", node.attribute("groups").as_int() > 1}};
    for (const char* name : {"stride", "padding", "dilation"}) {
      window.emplace(name, AlongDepth(node.attribute(name).as_ints()));
    }
    return window;
  }
  static AttributeMap PhaseOf(const fusion::PhasedAxis& depth) {
    return {{"kernel_size", Ints{depth.taps()}}, {"padding", Ints{depth.begin(), depth.end()}}, {"stride", Ints{1}}};
  }

  // The frames that a window sees, as images; themselves, where it sees each by itself.
  absl::StatusOr<Node*> Stacked(Node* node, const Stack& stack, AttributeMap window) {
    const bool alone = window.at("kernel_size") == Attribute(Ints{1}) && window.at("stride") == Attribute(Ints{1}) &&
                       window.at("padding") == Attribute(Ints{0, 0});
    if (alone) return stack.images;
    window.emplace("frames", stack.frames);
    ASSIGN_OR_RETURN(Node * stacked, graph_.AddFunction(absl::StrCat(node->name(), "_frames"), "stack_frames",
                                                        {stack.images}, std::move(window), node));
    stacked->AddSources(node->SourcesOrSelf());
    return stacked;
  }

  // Images that have a frame for each phase, as frames.
  absl::StatusOr<Stack> Unphased(Node* images, const fusion::PhasedAxis& depth, Node* before) {
    Stack stack = {images, depth.pixels()};
    if (depth.stride > 1) {
      ASSIGN_OR_RETURN(stack, StackOfChannels(stack, depth.stride, before));
    }
    if (stack.frames == depth.output) return stack;
    ASSIGN_OR_RETURN(Node * sheet, SheetOf(stack, before));
    ASSIGN_OR_RETURN(
        sheet, graph_.AddFunction(
                   absl::StrCat(images->name(), "_cropped"), "slice", {sheet},
                   {{"axes", Ints{2}}, {"starts", Ints{depth.cropped}}, {"ends", Ints{depth.cropped + depth.output}}},
                   before));
    sheet->AddSources(before->SourcesOrSelf());
    return StackOfSheet(sheet, stack.dim(2), before);
  }

  // A convolution's module, over images; a shared one stays shared.
  absl::StatusOr<std::string> ModuleOf(const Node& node) {
    std::string& path = modules_[node.module()];
    if (!path.empty()) return path;
    const bool transposed = node.IsOp("conv_transpose3d"), column = IsColumn(node);
    const bool as_rows = column || node.attribute("groups").as_int() > 1;
    const Tensor& weight = *graph_.ParameterOfOrNull(node, "weight");
    AttributeMap attributes = OfWindow(WithDefaults(node), column ? AsColumn : Across);
    std::map<std::string, std::string> parameters = node.module()->parameters;
    const auto replace = [&](const char* name, std::shared_ptr<const Tensor> tensor) {
      parameters[name] = graph_.AddParameter(absl::StrCat(parameters.at(name), ".frames"), std::move(tensor));
    };
    if (transposed) {
      const fusion::PhasedAxis depth = fusion::PhasedAxisOf(node, 0);
      replace("weight", OverPhases(weight, depth));
      if (const Tensor* bias = graph_.ParameterOfOrNull(node, "bias"); bias != nullptr) {
        auto repeated = std::make_shared<Tensor>(DType::kF32, Shape{depth.stride * bias->num_elements()});
        for (int64_t i = 0; i < repeated->num_elements(); ++i) repeated->Set(i, bias->At(i % bias->num_elements()));
        replace("bias", std::move(repeated));
      }
    } else {
      replace("weight", OverImages(weight, as_rows));
      if (as_rows && !column) {  // Rows of all taps lie between those of one.
        for (const char* name : {"stride", "padding"}) {
          Ints values = Across(node.attribute(name).as_ints());
          for (size_t i = 0; i < values.size(); i += 2) values[i] *= weight.dim(2);
          attributes.at(name) = values;
        }
      }
    }
    path = graph_.UniqueModulePath(absl::StrCat(node.module()->path, ".images"));
    RETURN_IF_ERROR(
        graph_.AddModule(path, transposed ? "conv_transpose2d" : "conv2d", std::move(attributes), std::move(parameters))
            .status());
    return path;
  }

  // Of each image, then along the depth.
  absl::Status Pool(Node* node) {
    const std::string op = absl::StrCat(node->IsOp("max_pool3d") ? "max" : "avg", "_pool2d");
    const Stack input = stacks_.at(node->operand(0));
    Node *first = nullptr, *images = input.images;
    const auto moves = [](const AttributeMap& window) {
      for (const char* name : {"kernel_size", "stride"}) {
        for (const int64_t value : window.at(name).as_ints()) {
          if (value != 1) return true;
        }
      }
      return false;
    };
    AttributeMap window = OfWindow(WithDefaults(*node), Across);
    if (moves(window)) {
      ASSIGN_OR_RETURN(images, Module(node, op, images, std::move(window)));
      first = images;
    }
    Stack stack = {images, input.frames};
    window = OfWindow(WithDefaults(*node), AsColumn);
    if (moves(window)) {
      ASSIGN_OR_RETURN(Node * sheet, SheetOf(stack, node));
      ASSIGN_OR_RETURN(sheet, Module(node, op, sheet, std::move(window)));
      if (first == nullptr) first = sheet;
      ASSIGN_OR_RETURN(stack, StackOfSheet(sheet, stack.dim(2), node));
    }
    if (first == nullptr) return absl::OkStatus();  // cleanup's.
    Done(node, first, stack);
    return absl::OkStatus();
  }

  absl::Status OfSheet(Node* node) {
    const Stack input = stacks_.at(node->operand(0));
    Node* sheet = input.images;
    if (input.frames > 1) {
      ASSIGN_OR_RETURN(sheet, SheetOf(input, node));
    }
    std::vector<Node*> operands = node->operands();
    operands[0] = sheet;
    ASSIGN_OR_RETURN(Node * result, Again(node, operands));
    Stack stack = {result, 1};
    if (input.frames > 1 && result->type() == sheet->type()) {
      ASSIGN_OR_RETURN(stack, StackOfSheet(result, input.dim(2), node));
    }
    Done(node, result, stack);
    return absl::OkStatus();
  }

  // Of images; or of sheets, where an operand is a value for each channel.
  absl::Status Same(Node* node) {
    const Shape& shape = node->tensor_type().shape;
    const auto is_gate = [&](const Node* operand) {
      return stacks_.contains(operand) && stacks_.at(operand).one_pixel() && operand->tensor_type().shape != shape;
    };
    const std::vector<Node*> all = node->operands();
    const bool gated = node->op()->elementwise && std::any_of(all.begin(), all.end(), is_gate);
    std::vector<Node*> operands;
    for (Node* operand : all) {
      ASSIGN_OR_RETURN(Node * found, OperandOrNull(node, operand, gated, is_gate(operand)));
      if (operand != nullptr && found == nullptr) return absl::OkStatus();
      operands.push_back(found);
    }
    ASSIGN_OR_RETURN(Node * result, Again(node, operands));
    Stack stack = {result, shape[2]};
    if (gated) {
      ASSIGN_OR_RETURN(stack, StackOfSheet(result, shape[3], node));
    }
    Done(node, result, stack);
    return absl::OkStatus();
  }

  // An operand of `node` as it reads it now; null where it cannot.
  absl::StatusOr<Node*> OperandOrNull(Node* node, Node* operand, bool as_sheet, bool is_gate) {
    if (operand == nullptr) return operand;
    const Shape& shape = operand->tensor_type().shape;
    const bool whole = shape == node->tensor_type().shape || node->IsOp("cat");
    if (is_gate) return stacks_.at(operand).images;
    if (whole && static_cast<int>(shape.size()) == kRank) {
      ASSIGN_OR_RETURN(const Stack stack, Get(operand, node));
      return as_sheet ? SheetOf(stack, node) : absl::StatusOr<Node*>(stack.images);
    }
    if (shape.size() < 2 && operand->tensor_type().num_elements() == 1) return operand;
    return operand->kind() == ir::NodeKind::kGetAttr ? ByChannelOrNull(operand, node) : nullptr;
  }

  // A constant of a value for each channel, or of a single one, as images broadcast it.
  absl::StatusOr<Node*> ByChannelOrNull(Node* constant, Node* before) {
    const TensorType& type = constant->tensor_type();
    const int axis = type.rank() - 4;  // Of the channels.
    if (axis < 0 || type.quant || type.num_elements() != type.shape[axis]) return nullptr;
    const Tensor& tensor = *graph_.FindParameterOrNull(constant->target())->tensor;
    auto flat = std::make_shared<Tensor>(TensorType{type.dtype, {type.shape[axis], 1, 1}, std::nullopt, type.layout});
    std::memcpy(flat->raw_data(), tensor.raw_data(), tensor.byte_size());
    return graph_.AddGetAttr(constant->name(), graph_.AddParameter(constant->target(), std::move(flat)), before);
  }

  // Where images lie as volumes do, a view of these is one of those.
  absl::Status View(Node* node) {
    const Stack stack = stacks_.at(node->operand(0));
    if (stack.frames > 1 && stack.dim(1) > 1) return absl::OkStatus();
    absl::StatusOr<Node*> view = Again(node, {stack.images});
    if (!view.ok()) return absl::OkStatus();
    if ((*view)->type() == node->type()) {
      node->ReplaceAllUsesWith(*view);
      graph_.Replace(node, *view);
    } else {
      graph_.Erase(*view);
    }
    return absl::OkStatus();
  }

  // --- Their parts.

  // Those of a value; made where it has none yet. What is read as dequantized codes stays so.
  absl::StatusOr<Stack> Get(Node* value, Node* before) {
    const auto it = stacks_.find(value);
    if (it != stacks_.end()) return it->second;
    Stack stack;
    if (value->IsOp("dequantize") && match::ConvertsAll(*value)) {
      ASSIGN_OR_RETURN(stack, StackOf(value->operand(0), before));
      ASSIGN_OR_RETURN(stack.images,
                       graph_.AddFunction(value->name(), "dequantize", {stack.images}, value->attributes(), before));
      stack.images->AddSources(value->SourcesOrSelf());
    } else {
      ASSIGN_OR_RETURN(stack, StackOf(value, before));
    }
    stacks_.emplace(value, stack);
    return stack;
  }

  static AttributeMap WithDefaults(const Node& node) {
    AttributeMap all;
    for (const ir::AttributeSpec& spec : node.op()->attributes) all.emplace(spec.name, node.attribute(spec.name));
    return all;
  }

  // Each in front of `node`, and with its sources.
  absl::StatusOr<Node*> Module(Node* node, const std::string& op, Node* operand, AttributeMap attributes) {
    const std::string path = graph_.UniqueModulePath(node->name());
    RETURN_IF_ERROR(graph_.AddModule(path, op, std::move(attributes), {}).status());
    ASSIGN_OR_RETURN(Node * call, graph_.AddModuleCall(node->name(), path, {operand}, node));
    call->AddSources(node->SourcesOrSelf());
    return call;
  }
  absl::StatusOr<Node*> Again(Node* node, std::vector<Node*> operands) {
    absl::StatusOr<Node*> call =
        node->module() != nullptr
            ? graph_.AddModuleCall(node->name(), node->module()->path, std::move(operands), node)
            : graph_.AddFunction(node->name(), node->op()->name, std::move(operands), node->attributes(), node);
    if (call.ok()) (*call)->AddSources(node->SourcesOrSelf());
    return call;
  }

  void Done(Node* node, Node* first, const Stack& stack) {
    stacks_[node] = stack;
    rewritten_.push_back({node, first, stack});
  }

  // Whoever still reads a volume gets one. From the end on, so that of what was rewritten nobody reads.
  absl::Status Finish() {
    for (auto it = rewritten_.rbegin(); it != rewritten_.rend(); ++it) {
      if (it->node->num_uses() > 0) {
        ASSIGN_OR_RETURN(Node * volume, VolumeOf(it->stack, it->node));
        it->node->ReplaceAllUsesWith(volume);
      }
      ir::Module* module = it->node->module();
      graph_.Replace(it->node, it->first);
      if (module == nullptr || !module->call_sites.empty()) continue;
      const std::string path = module->path;
      graph_.EraseModule(module);
      if (it->first->module() != nullptr) graph_.RenameModule(it->first->module(), path);
    }
    return absl::OkStatus();
  }

  ir::Graph& graph_;
  Remarks& remarks_;
  HashMap<const Node*, Stack> stacks_;  // Of volumes, by what they were.
  HashMap<const ir::Module*, std::string> modules_;
  std::vector<Rewritten> rewritten_;
};

}  // namespace

absl::StatusOr<bool> Volumes::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  return Rewriter(graph, remarks).Run();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<VolumesOptions>(
      [](const VolumesOptions&, const passes::PassEnvironment&) { return std::make_unique<Volumes>(); });
}

}  // namespace fuselage::volumes
