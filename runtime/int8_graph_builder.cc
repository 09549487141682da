#include "runtime/int8_graph_builder.h"

#include <algorithm>

namespace fuselage::runtime {

using Ints = std::vector<int64_t>;
using ir::Node;

AttributeMap Int8GraphBuilder::Out(float scale, bool relu) const {
  const bool is_signed = dtype_ == DType::kI8;
  const int zero_point = relu ? (is_signed ? -128 : 0) : (is_signed ? -3 : 128);
  return {{"out_dtype", dtype_}, {"out_scale", double{scale}}, {"out_zero_point", zero_point}};
}

AttributeMap Int8GraphBuilder::ConvAttributes(const ConvParams& p) const {
  AttributeMap attributes = p.float_output ? FloatOut() : Out(0.05f, p.relu);
  attributes.insert({{"stride", Ints{p.stride, p.stride}},
                     {"padding", Ints(4, p.padding)},
                     {"dilation", Ints{p.dilation, p.dilation}},
                     {"groups", p.groups},
                     {"activation", p.relu ? "relu" : "none"}});
  return attributes;
}

std::vector<std::pair<std::string, Tensor>> Int8GraphBuilder::ConvParameters(Node* x, const ConvParams& p) {
  return Parameters({p.channels, x->tensor_type().shape[1] / p.groups, p.kernel, p.kernel}, p.bias);
}

Node* Int8GraphBuilder::Conv(Node* x, const ConvParams& p, Node* residual) {
  std::vector<Node*> operands = {x};
  if (residual != nullptr) operands.push_back(residual);
  return CallModule("int8.conv2d", operands, ConvAttributes(p), ConvParameters(x, p));
}

Node* Int8GraphBuilder::ConvMaxPool(Node* x, const ConvParams& p) {
  AttributeMap attributes = ConvAttributes(p);
  attributes.insert({{"pool_kernel_size", Ints{3, 3}}, {"pool_stride", Ints{2, 2}}, {"pool_padding", Ints(4, 1)}});
  return CallModule("int8.conv2d_max_pool2d", {x}, std::move(attributes), ConvParameters(x, p));
}

Node* Int8GraphBuilder::GlobalAveragePoolLinear(Node* x, int64_t outputs, bool float_output) {
  AttributeMap attributes = float_output ? FloatOut() : Out(0.1f);
  for (const auto& [name, value] : Out(0.02f)) attributes.emplace("pool_" + name, value);
  return CallModule("int8.global_avg_pool_linear", {x}, std::move(attributes),
                    Parameters({outputs, x->tensor_type().shape[1]}, true));
}

Node* Int8GraphBuilder::Linear(Node* x, int64_t outputs, bool float_output) {
  return CallModule("int8.linear", {x}, float_output ? FloatOut() : Out(0.1f),
                    Parameters({outputs, x->tensor_type().shape.back()}, true));
}

Node* Int8GraphBuilder::Add(Node* a, Node* b, bool relu) {
  AttributeMap attributes = Out(0.08f, relu);
  attributes.insert({"activation", relu ? "relu" : "none"});
  return Call("int8.add", {a, b}, std::move(attributes));
}

Node* Int8GraphBuilder::MaxPool(Node* x) {
  return Call("int8.max_pool2d", {x},
              {{"kernel_size", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
}

Node* Int8GraphBuilder::AveragePool(Node* x) {
  AttributeMap attributes = Out(0.04f);
  attributes.insert({{"kernel_size", Ints{2, 2}}, {"stride", Ints{2, 2}}, {"padding", Ints{0, 0, 0, 0}}});
  return Call("int8.avg_pool2d", {x}, std::move(attributes));
}

Node* Int8GraphBuilder::ResNet18(int64_t batch, int64_t classes) {
  Node* x = Quantized({batch, 3, 224, 224});
  x = MaxPool(Conv(x, {.channels = 64, .kernel = 7, .stride = 2, .padding = 3, .relu = true}));
  return Linear(Call("flatten", {GlobalAveragePool(ResNet18Blocks(x))}), classes, true);
}

Node* Int8GraphBuilder::ResNet18Blocks(Node* x) {
  for (const int64_t channels : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      const int64_t stride = channels > 64 && block == 0 ? 2 : 1;
      Node* shortcut = stride == 1 ? x : Conv(x, {.channels = channels, .kernel = 1, .stride = stride, .padding = 0});
      Node* y = Conv(x, {.channels = channels, .stride = stride, .relu = true});
      x = Conv(y, {.channels = channels, .relu = true}, shortcut);
    }
  }
  return x;
}

std::vector<std::pair<std::string, Tensor>> Int8GraphBuilder::Parameters(Shape shape, bool bias) {
  const int64_t channels = shape[0];
  std::vector<float> scales;
  for (int64_t i = 0; i < channels; ++i) scales.push_back(0.002f + 0.0003f * (i % 7));
  TensorType weight{DType::kI8, std::move(shape), PerAxis(0, std::move(scales)), Layout::kRowMajor};
  Tensor codes = SeededTensor(weight, ++seed_);
  for (int64_t i = 0; i < codes.num_elements(); ++i) codes.Set(i, std::max(codes.At(i), -127.0));  // Symmetric.
  std::vector<std::pair<std::string, Tensor>> parameters;
  parameters.emplace_back("weight", std::move(codes));
  if (bias) {
    parameters.emplace_back("bias", SeededTensor({DType::kF32, {channels}, std::nullopt, Layout::kRowMajor}, ++seed_));
  }
  return parameters;
}

}  // namespace fuselage::runtime
