#include "tools/peers/onednn_network.h"

#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"
#include "tools/peers/layer.h"

namespace fuselage::peers {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr int kPerChannel = 1 << 1;  // The mask of an output's dimension 1.

Type TypeOf(DType dtype) { return dtype == DType::kU8 ? Type::u8 : dtype == DType::kI8 ? Type::s8 : Type::f32; }

// Activations: NHWC, or rows of features.
Desc DescOf(const TensorType& type) {
  return Desc(type.shape, TypeOf(type.dtype), type.rank() == 4 ? Tag::nhwc : Tag::ab);
}

// On the result in steps of its scale.
absl::Status AppendActivation(const ir::Node& node, dnnl::post_ops& post_ops) {
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(node.attribute("activation").as_string()));
  if (activation.is_none()) return absl::OkStatus();
  if (!activation.is_clamp()) {
    return absl::UnimplementedError(absl::StrCat("activation ", ToString(activation), ", wanted a clamp"));
  }
  if (activation.is_relu()) {
    post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    return absl::OkStatus();
  }
  const float scale = ScaleOf(node.tensor_type()), most = std::numeric_limits<float>::max();
  post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, std::max(activation.min / scale, -most),
                          std::min(activation.max / scale, most));
  return absl::OkStatus();
}

Dims Ints(const ir::Node& node, absl::string_view name) { return node.attribute(name).as_ints(); }

}  // namespace

class OnednnNetwork::Builder {
 public:
  Builder(OnednnNetwork& network, Part part) : network_(network), part_(part), engine_(network.engine_) {}

  absl::Status Build(const ir::Graph& graph) {
    for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
      for (const ir::Node* operand : node->operands()) last_use_[operand] = node;
    }
    for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
      try {
        RETURN_IF_ERROR(Annotate(Add(*node), absl::StrCat("%", node->name())));
      } catch (const dnnl::error& error) {
        return absl::UnimplementedError(absl::StrCat("%", node->name(), ": oneDNN: ", error.what()));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Add(const ir::Node& node);
  absl::Status AddCall(const ir::Node& node);
  absl::Status AddConvolution(const ir::Node& node);
  absl::Status AddLinear(const ir::Node& node);
  absl::Status AddMaxPool(const ir::Node& node);
  absl::Status AddGlobalPool(const ir::Node& node);
  absl::Status AddQuantize(const ir::Node& node);
  absl::Status AddFlatten(const ir::Node& node);

  // Memory that outlives the building; every page is touched.
  dnnl::memory NewBuffer(const Desc& desc) {
    dnnl::memory memory(desc, engine_);
    std::memset(memory.get_data_handle(), 1, desc.get_size());
    network_.buffers_.push_back(memory);
    return memory;
  }
  // The value's memory. What no step computes (of the convolutions alone) gets it here.
  const dnnl::memory& Of(const ir::Node* node) {
    const auto [it, inserted] = memories_.try_emplace(node);
    if (inserted) it->second = NewBuffer(DescOf(node->tensor_type()));
    return it->second;
  }
  // Memory for a result: a buffer of about its size that no later step reads, or a new one.
  const dnnl::memory& Result(const ir::Node& node) {
    const Desc desc = DescOf(node.tensor_type());
    const auto free = free_.lower_bound(desc.get_size());
    if (free == free_.end() || free->first > 2 * desc.get_size()) return memories_[&node] = NewBuffer(desc);
    dnnl::memory memory(desc, engine_, free->second);
    free_.erase(free);
    return memories_[&node] = memory;
  }
  // Memory for a result that is added to the residual, which lies in it before: the residual's own if nothing else
  // reads that, or else a copy.
  dnnl::memory ResultOver(const ir::Node& node, const ir::Node& residual);
  // Lends the buffers of operands that nothing reads after `node`.
  void Release(const ir::Node& node) {
    const void* result = memories_.contains(&node) ? memories_.at(&node).get_data_handle() : nullptr;
    HashSet<void*> released;
    for (const ir::Node* operand : node.operands()) {
      if (operand == nullptr || last_use_.at(operand) != &node || !memories_.contains(operand)) continue;
      const dnnl::memory& memory = memories_.at(operand);
      void* const buffer = memory.get_data_handle();
      if (buffer == result || viewed_.contains(buffer) || !released.insert(buffer).second) continue;
      free_.emplace(memory.get_desc().get_size(), buffer);
    }
  }
  // `values` reordered into memory of the network's own.
  dnnl::memory Packed(const Desc& from, const void* values, const Desc& to) {
    dnnl::memory source(from, engine_, const_cast<void*>(values)), target(to, engine_);
    dnnl::reorder(source, target).execute(network_.stream_, source, target);
    network_.stream_.wait();
    return target;
  }
  dnnl::memory Vector(const std::vector<float>& values) {
    const Desc desc({static_cast<int64_t>(values.size())}, Type::f32, Tag::a);
    return Packed(desc, values.data(), desc);
  }
  void Step(dnnl::primitive primitive, std::unordered_map<int, dnnl::memory> arguments) {
    network_.steps_.push_back({std::move(primitive), std::move(arguments)});
  }

  OnednnNetwork& network_;
  const Part part_;
  const dnnl::engine engine_;
  HashMap<const ir::Node*, const ir::Node*> last_use_;
  HashMap<const ir::Node*, dnnl::memory> memories_;
  std::multimap<size_t, void*> free_;
  HashSet<void*> viewed_;  // Buffers with several names: never lent.
};

absl::Status OnednnNetwork::Builder::Add(const ir::Node& node) {
  switch (node.kind()) {
    case ir::NodeKind::kPlaceholder:
      if (part_ == Part::kConvolutions) return absl::OkStatus();
      if (node.tensor_type().rank() != 4 || node.tensor_type().dtype != DType::kF32) {
        return absl::UnimplementedError(absl::StrCat("found ", ToString(node.type()), ", wanted f32 images"));
      }
      network_.input_ = NewBuffer(Desc(node.tensor_type().shape, Type::f32, Tag::nchw));
      memories_[&node] = network_.input_;
      viewed_.insert(network_.input_.get_data_handle());
      return absl::OkStatus();
    case ir::NodeKind::kOutput:
      if (part_ == Part::kConvolutions) return absl::OkStatus();
      network_.output_ = memories_.at(node.operand(0));
      network_.output_type_ = node.operand(0)->tensor_type();
      return absl::OkStatus();
    case ir::NodeKind::kGetAttr: return absl::UnimplementedError("found get_attr, wanted parameters in modules");
    default: break;
  }
  if (node.IsOp("int8.conv2d")) {
    RETURN_IF_ERROR(AddConvolution(node));
  } else if (part_ == Part::kNetwork) {
    RETURN_IF_ERROR(AddCall(node));
  } else {
    return absl::OkStatus();
  }
  Release(node);
  return absl::OkStatus();
}

absl::Status OnednnNetwork::Builder::AddCall(const ir::Node& node) {
  if (node.IsOp("int8.linear")) return AddLinear(node);
  if (node.IsOp("int8.max_pool2d")) return AddMaxPool(node);
  if (node.IsOp("int8.global_avg_pool")) return AddGlobalPool(node);
  if (node.IsOp("int8.quantize")) return AddQuantize(node);
  if (node.IsOp("flatten")) return AddFlatten(node);
  return absl::UnimplementedError(absl::StrCat(node.op()->name, " has no oneDNN primitive here"));
}

dnnl::memory OnednnNetwork::Builder::ResultOver(const ir::Node& node, const ir::Node& residual) {
  const TensorType &type = node.tensor_type(), &added = residual.tensor_type();
  if (&residual != node.operand(0) && last_use_.at(&residual) == &node && added.shape == type.shape &&
      added.byte_size() == type.byte_size() && !viewed_.contains(Of(&residual).get_data_handle())) {
    return memories_[&node] = dnnl::memory(DescOf(type), engine_, Of(&residual).get_data_handle());
  }
  const dnnl::memory output = Result(node);
  if (part_ == Part::kNetwork) {
    const dnnl::memory from = Of(&residual), to(from.get_desc(), engine_, output.get_data_handle());
    Step(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }
  return output;
}

absl::Status OnednnNetwork::Builder::AddConvolution(const ir::Node& node) {
  ASSIGN_OR_RETURN(Layer layer, Layer::Of(node));
  const ir::Node* residual = node.num_operands() > 1 ? node.operand(1) : nullptr;
  dnnl::primitive_attr attributes;
  dnnl::post_ops post_ops;
  if (residual != nullptr) {
    const TensorType& type = residual->tensor_type();
    post_ops.append_sum(ScaleOf(type) / ScaleOf(layer.output), 0, TypeOf(type.dtype));
    // oneDNN sums codes: their zero point goes into the bias.
    for (size_t c = 0; c < layer.addends.size(); ++c) {
      layer.addends[c] -= ScaleOf(type) / ScaleOf(layer.output) * ZeroPointOf(type) / layer.scales[c];
    }
  }
  RETURN_IF_ERROR(AppendActivation(node, post_ops));
  attributes.set_post_ops(post_ops);
  attributes.set_output_scales(kPerChannel, layer.scales);
  if (ZeroPointOf(layer.input) != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {ZeroPointOf(layer.input)});
  if (ZeroPointOf(layer.output) != 0) attributes.set_zero_points(DNNL_ARG_DST, 0, {ZeroPointOf(layer.output)});

  Dims weight_dims = layer.weight->shape(), dilation = Ints(node, "dilation");
  for (int64_t& step : dilation) --step;  // oneDNN counts the gaps.
  const int64_t groups = node.attribute("groups").as_int();
  if (groups > 1) {
    weight_dims[0] /= groups;
    weight_dims.insert(weight_dims.begin(), groups);
  }
  const Dims padding = Ints(node, "padding");
  const Desc source = DescOf(layer.input), bias({layer.weight->dim(0)}, Type::f32, Tag::a);
  const Desc target = DescOf(layer.output);
  const dnnl::convolution_forward::primitive_desc description({dnnl::prop_kind::forward_inference,
                                                               dnnl::algorithm::convolution_direct,
                                                               source,
                                                               Desc(weight_dims, Type::s8, Tag::any),
                                                               bias,
                                                               target,
                                                               Ints(node, "stride"),
                                                               dilation,
                                                               {padding.begin(), padding.begin() + 2},
                                                               {padding.begin() + 2, padding.end()}},
                                                              attributes, engine_);
  const dnnl::memory weights = Packed(Desc(weight_dims, Type::s8, groups > 1 ? Tag::goihw : Tag::oihw),
                                      layer.weight->raw_data(), description.weights_desc());
  const dnnl::memory input = Of(node.operand(0)), output = residual ? ResultOver(node, *residual) : Result(node);
  Step(dnnl::convolution_forward(description), {{DNNL_ARG_SRC, input},
                                                {DNNL_ARG_WEIGHTS, weights},
                                                {DNNL_ARG_BIAS, Vector(layer.addends)},
                                                {DNNL_ARG_DST, output}});
  return absl::OkStatus();
}

absl::Status OnednnNetwork::Builder::AddLinear(const ir::Node& node) {
  ASSIGN_OR_RETURN(Layer layer, Layer::Of(node));
  if (layer.input.rank() != 2) return absl::UnimplementedError("found an input that is no matrix");
  if (node.num_operands() > 1) return absl::UnimplementedError("found a scale for each row");
  // Without padding, the input's zero point is a constant for each output: -z_x * sum w.
  const int64_t features = layer.weight->dim(1);
  for (int64_t c = 0; c < layer.weight->dim(0); ++c) {
    const int8_t* row = layer.weight->data<int8_t>() + c * features;
    layer.addends[c] -= static_cast<float>(ZeroPointOf(layer.input) * std::accumulate(row, row + features, int64_t{0}));
  }
  dnnl::primitive_attr attributes;
  dnnl::post_ops post_ops;
  RETURN_IF_ERROR(AppendActivation(node, post_ops));
  // It has no zero point of its own for the result.
  if (ZeroPointOf(layer.output) != 0) {
    post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, 1.0f, ZeroPointOf(layer.output));
  }
  attributes.set_post_ops(post_ops);
  attributes.set_output_scales(kPerChannel, layer.scales);
  const dnnl::inner_product_forward::primitive_desc description(
      {dnnl::prop_kind::forward_inference, DescOf(layer.input), Desc(layer.weight->shape(), Type::s8, Tag::any),
       Desc({layer.weight->dim(0)}, Type::f32, Tag::a), DescOf(layer.output)},
      attributes, engine_);
  const dnnl::memory weights =
      Packed(Desc(layer.weight->shape(), Type::s8, Tag::ab), layer.weight->raw_data(), description.weights_desc());
  const dnnl::memory input = Of(node.operand(0));
  Step(dnnl::inner_product_forward(description), {{DNNL_ARG_SRC, input},
                                                  {DNNL_ARG_WEIGHTS, weights},
                                                  {DNNL_ARG_BIAS, Vector(layer.addends)},
                                                  {DNNL_ARG_DST, Result(node)}});
  return absl::OkStatus();
}

absl::Status OnednnNetwork::Builder::AddMaxPool(const ir::Node& node) {
  if (Ints(node, "dilation") != Dims{1, 1}) return absl::UnimplementedError("found a dilation, wanted none");
  const Dims padding = Ints(node, "padding");
  const dnnl::pooling_forward::primitive_desc description({dnnl::prop_kind::forward_inference,
                                                           dnnl::algorithm::pooling_max,
                                                           DescOf(node.operand(0)->tensor_type()),
                                                           DescOf(node.tensor_type()),
                                                           Ints(node, "stride"),
                                                           Ints(node, "kernel_size"),
                                                           {padding.begin(), padding.begin() + 2},
                                                           {padding.begin() + 2, padding.end()}},
                                                          engine_);
  const dnnl::memory input = Of(node.operand(0));
  Step(dnnl::pooling_forward(description), {{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, Result(node)}});
  return absl::OkStatus();
}

absl::Status OnednnNetwork::Builder::AddGlobalPool(const ir::Node& node) {
  const TensorType &input = node.operand(0)->tensor_type(), &output = node.tensor_type();
  const float scale = ScaleOf(input) / ScaleOf(output);
  dnnl::primitive_attr attributes;
  dnnl::post_ops post_ops;
  post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, scale,
                          ZeroPointOf(output) - scale * ZeroPointOf(input));
  attributes.set_post_ops(post_ops);
  // As a pool: oneDNN's reduction has no fast form on codes.
  const dnnl::pooling_forward::primitive_desc description({dnnl::prop_kind::forward_inference,
                                                           dnnl::algorithm::pooling_avg_exclude_padding,
                                                           DescOf(input),
                                                           DescOf(output),
                                                           {1, 1},
                                                           {input.shape[2], input.shape[3]},
                                                           {0, 0},
                                                           {0, 0}},
                                                          attributes, engine_);
  const dnnl::memory source = Of(node.operand(0));
  Step(dnnl::pooling_forward(description), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, Result(node)}});
  return absl::OkStatus();
}

absl::Status OnednnNetwork::Builder::AddQuantize(const ir::Node& node) {
  const TensorType& type = node.tensor_type();
  dnnl::primitive_attr attributes;
  attributes.set_output_scales(0, {1.0f / ScaleOf(type)});
  if (ZeroPointOf(type) != 0) attributes.set_zero_points(DNNL_ARG_DST, 0, {ZeroPointOf(type)});
  const dnnl::memory input = Of(node.operand(0)), output = Result(node);
  const dnnl::reorder::primitive_desc description(engine_, input.get_desc(), engine_, output.get_desc(), attributes);
  Step(dnnl::reorder(description), {{DNNL_ARG_FROM, input}, {DNNL_ARG_TO, output}});
  return absl::OkStatus();
}

absl::Status OnednnNetwork::Builder::AddFlatten(const ir::Node& node) {
  const Shape& shape = node.operand(0)->tensor_type().shape;
  if (node.tensor_type().rank() != 2 || shape.size() != 4 || shape[2] * shape[3] != 1) {
    return absl::UnimplementedError(absl::StrCat("found ", ToString(shape), ", wanted one pixel a channel"));
  }
  void* const buffer = Of(node.operand(0)).get_data_handle();
  viewed_.insert(buffer);
  memories_[&node] = dnnl::memory(DescOf(node.tensor_type()), engine_, buffer);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OnednnNetwork>> OnednnNetwork::Create(const ir::Graph& graph, Part part) {
  std::unique_ptr<OnednnNetwork> network(new OnednnNetwork);
  RETURN_IF_ERROR(Builder(*network, part).Build(graph));
  if (network->steps_.empty()) return absl::InvalidArgumentError("the graph has nothing for oneDNN to do");
  return network;
}

void OnednnNetwork::SetInput(const Tensor& input) {
  if (!input_) return;
  FUSELAGE_CHECK(static_cast<int64_t>(input_.get_desc().get_size()) == input.byte_size());
  std::memcpy(input_.get_data_handle(), input.raw_data(), input.byte_size());
}

absl::Status OnednnNetwork::Run() {
  try {
    for (const OnednnNetwork::Step& step : steps_) step.primitive.execute(stream_, step.arguments);
    stream_.wait();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
  }
  return absl::OkStatus();
}

std::optional<Tensor> OnednnNetwork::Output() const {
  if (!output_ || output_type_.rank() != 2) return std::nullopt;
  Tensor output(output_type_);
  std::memcpy(output.raw_data(), output_.get_data_handle(), output.byte_size());
  return output;
}

}  // namespace fuselage::peers
