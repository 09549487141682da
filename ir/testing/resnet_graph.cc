#include "ir/testing/resnet_graph.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::testing {
namespace {

using ir::Node;

constexpr int64_t kChannels = 4;

class ResNet {
 public:
  ResNet(int64_t nodes, const ir::OpRegistry& ops) : graph_(std::make_unique<ir::Graph>("resnet", ops)) {
    Node* x = Checked(graph_->AddPlaceholder("x", F32({1, kChannels, 2, 2})));
    for (int block = 0; graph_->num_nodes() < nodes; ++block) {
      x = block % 2 == 0 ? TracedBlock(absl::StrCat("layer", block), x) : OnnxBlock(absl::StrCat("layer", block), x);
    }
    x = Checked(graph_->AddFunction("pool", "global_avg_pool", {x}));
    x = Checked(graph_->AddFunction("flatten", "torch.flatten", {x}));
    x = CallModule("fc", "linear", x, {}, {{"weight", Weight("fc.weight", {10, kChannels})}});
    Checked(graph_->AddOutput({x}));
  }

  std::unique_ptr<ir::Graph> Take() { return std::move(graph_); }

 private:
  using Parameters = std::map<std::string, std::string>;

  template <typename T>
  static T Checked(absl::StatusOr<T> value) {
    FUSELAGE_CHECK(value.ok());
    return *std::move(value);
  }
  static TensorType F32(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

  std::string Weight(const std::string& name, Shape shape) {
    const uint64_t seed = ++seed_;
    return graph_->AddParameter(name, std::make_shared<const Tensor>(SeededTensor(F32(std::move(shape)), seed)), seed);
  }
  std::string Vector(const std::string& name, float value) {
    Tensor tensor(DType::kF32, {kChannels});
    for (int64_t c = 0; c < kChannels; ++c) tensor.data<float>()[c] = value + static_cast<float>(c) / 8;
    return graph_->AddParameter(name, std::make_shared<const Tensor>(std::move(tensor)));
  }
  Parameters ConvParameters(const std::string& name) {
    return {{"weight", Weight(name + ".weight", {kChannels, kChannels, 3, 3})}};
  }
  Parameters BatchNormParameters(const std::string& name) {
    return {{"weight", Vector(name + ".weight", 0.25f)},
            {"bias", Vector(name + ".bias", -0.25f)},
            {"running_mean", Vector(name + ".running_mean", 0)},
            {"running_var", Vector(name + ".running_var", 1)}};
  }
  static AttributeMap Padding() { return {{"padding", std::vector<int64_t>{1, 1, 1, 1}}}; }

  Node* CallModule(const std::string& path, absl::string_view op, Node* x, AttributeMap attributes,
                   Parameters parameters) {
    Checked(graph_->AddModule(path, op, std::move(attributes), std::move(parameters)));
    return Checked(graph_->AddModuleCall(path, path, {x}));
  }
  Node* TracedConvBn(const std::string& name, const std::string& index, Node* x) {
    const std::string conv = absl::StrCat(name, ".conv", index), bn = absl::StrCat(name, ".bn", index);
    x = CallModule(conv, "conv2d", x, Padding(), ConvParameters(conv));
    return CallModule(bn, "batch_norm", x, {}, BatchNormParameters(bn));
  }
  Node* TracedBlock(const std::string& name, Node* x) {
    Node* y = TracedConvBn(name, "1", x);
    y = Checked(graph_->AddMethod(name + ".relu", "relu", {y}));
    y = TracedConvBn(name, "2", y);
    y = Checked(graph_->AddFunction(name + ".add", "operator.iadd", {y, x}));
    return Checked(graph_->AddMethod(name + ".relu", "relu", {y}));
  }

  Node* CallFunction(const std::string& name, absl::string_view op, Node* x, AttributeMap attributes,
                     const Parameters& parameters) {
    std::vector<Node*> operands = {x};
    for (const ir::OperandSpec& spec : graph_->ops().FindOrNull(op)->operands) {
      const auto it = parameters.find(spec.name);
      if (it != parameters.end()) operands.push_back(Checked(graph_->AddGetAttr(it->second, it->second)));
    }
    return Checked(graph_->AddFunction(name, op, std::move(operands), std::move(attributes)));
  }
  Node* OnnxConvBn(const std::string& name, const std::string& index, Node* x) {
    const std::string conv = absl::StrCat(name, ".conv", index), bn = absl::StrCat(name, ".bn", index);
    x = CallFunction(conv, "conv2d", x, Padding(), ConvParameters(conv));
    return CallFunction(bn, "batch_norm", x, {}, BatchNormParameters(bn));
  }
  Node* OnnxBlock(const std::string& name, Node* x) {
    Node* y = OnnxConvBn(name, "1", x);
    y = Checked(graph_->AddFunction(name + ".relu", "relu", {y}));
    y = OnnxConvBn(name, "2", y);
    y = Checked(graph_->AddFunction(name + ".add", "add", {y, x}));
    return Checked(graph_->AddFunction(name + ".relu", "relu", {y}));
  }

  std::unique_ptr<ir::Graph> graph_;
  uint64_t seed_ = 0;
};

}  // namespace

std::unique_ptr<ir::Graph> ResNetGraph(int64_t nodes, const ir::OpRegistry& ops) { return ResNet(nodes, ops).Take(); }

}  // namespace fuselage::testing
