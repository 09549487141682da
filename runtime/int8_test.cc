// Lowered graphs on the INT8 kernels give the bits that the interpreter gives: for every instruction set that this
// machine has, any number of threads, in whichever layouts the codes lie.
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

using Ints = std::vector<int64_t>;
using ir::Node;

TensorType Codes(DType dtype, Shape shape, float scale, int zero_point) {
  return {dtype, std::move(shape), PerTensor(scale, zero_point), Layout::kRowMajor};
}

// Operators on codes of one element type. Unsigned codes have zero point 128 before a ReLU and 0 after; signed codes
// -3 and -128.
class CodeBuilder : public GraphBuilder {
 public:
  CodeBuilder(const ir::OpRegistry& ops, DType dtype) : GraphBuilder(ops), dtype_(dtype) {}

  AttributeMap Out(float scale, bool relu = false) const {
    const bool is_signed = dtype_ == DType::kI8;
    const int zero_point = relu ? (is_signed ? -128 : 0) : (is_signed ? -3 : 128);
    return {{"out_dtype", dtype_}, {"out_scale", double{scale}}, {"out_zero_point", zero_point}};
  }
  static AttributeMap FloatOut() { return {{"out_dtype", DType::kF32}}; }

  Node* Quantized(Shape shape) { return Quantize(Input(std::move(shape))); }
  Node* Quantize(Node* x) { return Call("int8.quantize", {x}, Out(1.0f / 128)); }
  Node* Dequantize(Node* x) { return Call("int8.dequantize", {x}); }

  struct ConvParams {
    int64_t channels = 8, kernel = 3, stride = 1, padding = 1, dilation = 1, groups = 1;
    bool bias = true, relu = false, float_output = false;
  };
  Node* Conv(Node* x, const ConvParams& p, Node* residual = nullptr) {
    std::vector<Node*> operands = {x};
    if (residual != nullptr) operands.push_back(residual);
    return CallModule("int8.conv2d", operands, ConvAttributes(p), ConvParameters(x, p));
  }
  Node* ConvMaxPool(Node* x, const ConvParams& p) {
    AttributeMap attributes = ConvAttributes(p);
    attributes.insert({{"pool_kernel_size", Ints{3, 3}}, {"pool_stride", Ints{2, 2}}, {"pool_padding", Ints(4, 1)}});
    return CallModule("int8.conv2d_max_pool2d", {x}, std::move(attributes), ConvParameters(x, p));
  }
  Node* GlobalAveragePoolLinear(Node* x, int64_t outputs, bool float_output) {
    AttributeMap attributes = float_output ? FloatOut() : Out(0.1f);
    for (const auto& [name, value] : Out(0.02f)) attributes.emplace("pool_" + name, value);
    return CallModule("int8.global_avg_pool_linear", {x}, std::move(attributes),
                      Parameters({outputs, x->tensor_type().shape[1]}, true));
  }
  Node* Linear(Node* x, int64_t outputs, bool float_output) {
    return CallModule("int8.linear", {x}, float_output ? FloatOut() : Out(0.1f),
                      Parameters({outputs, x->tensor_type().shape.back()}, true));
  }
  Node* Add(Node* a, Node* b, bool relu = false) {
    AttributeMap attributes = Out(0.08f, relu);
    attributes.insert({"activation", relu ? "relu" : "none"});
    return Call("int8.add", {a, b}, std::move(attributes));
  }
  Node* MaxPool(Node* x) {
    return Call("int8.max_pool2d", {x},
                {{"kernel_size", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
  }
  Node* AveragePool(Node* x) {
    AttributeMap attributes = Out(0.04f);
    attributes.insert({{"kernel_size", Ints{2, 2}}, {"stride", Ints{2, 2}}, {"padding", Ints{0, 0, 0, 0}}});
    return Call("int8.avg_pool2d", {x}, std::move(attributes));
  }
  Node* GlobalAveragePool(Node* x) { return Call("int8.global_avg_pool", {x}, Out(0.02f)); }
  Node* Relu(Node* x) { return Call("int8.relu", {x}, Out(0.03f, true)); }

  DType dtype() const { return dtype_; }

 private:
  AttributeMap ConvAttributes(const ConvParams& p) const {
    AttributeMap attributes = p.float_output ? FloatOut() : Out(0.05f, p.relu);
    attributes.insert({{"stride", Ints{p.stride, p.stride}},
                       {"padding", Ints(4, p.padding)},
                       {"dilation", Ints{p.dilation, p.dilation}},
                       {"groups", p.groups},
                       {"activation", p.relu ? "relu" : "none"}});
    return attributes;
  }
  std::vector<std::pair<std::string, Tensor>> ConvParameters(Node* x, const ConvParams& p) {
    return Parameters({p.channels, x->tensor_type().shape[1] / p.groups, p.kernel, p.kernel}, p.bias);
  }
  std::vector<std::pair<std::string, Tensor>> Parameters(Shape shape, bool bias) {
    const int64_t channels = shape[0];
    std::vector<float> scales;
    for (int64_t i = 0; i < channels; ++i) scales.push_back(0.002f + 0.0003f * (i % 7));
    TensorType weight{DType::kI8, std::move(shape), PerAxis(0, std::move(scales)), Layout::kRowMajor};
    Tensor codes = SeededTensor(weight, ++seed_);
    for (int64_t i = 0; i < codes.num_elements(); ++i) codes.Set(i, std::max(codes.At(i), -127.0));  // Symmetric.
    std::vector<std::pair<std::string, Tensor>> parameters;
    parameters.emplace_back("weight", std::move(codes));
    if (bias) {
      parameters.emplace_back("bias",
                              SeededTensor({DType::kF32, {channels}, std::nullopt, Layout::kRowMajor}, ++seed_));
    }
    return parameters;
  }

  const DType dtype_;
  uint64_t seed_ = 1000;
};

struct Case {
  std::string name;
  std::function<std::vector<Node*>(CodeBuilder&)> build;
};

std::vector<Case> Cases() {
  return {
      {"residual_network",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({2, 3, 21, 19}),
                          {.channels = 16, .kernel = 7, .stride = 2, .padding = 3, .relu = true});
         x = g.MaxPool(x);
         Node* y = g.Conv(x, {.channels = 16, .relu = true});
         x = g.Conv(y, {.channels = 16, .relu = true}, x);
         Node* shortcut = g.Conv(x, {.channels = 40, .kernel = 1, .stride = 2, .padding = 0});
         y = g.Conv(x, {.channels = 40, .stride = 2, .relu = true});
         x = g.Conv(y, {.channels = 40, .relu = true}, shortcut);
         return {g.Linear(g.Call("flatten", {g.GlobalAveragePool(x)}), 10, true)};
       }},
      {"layers_with_their_pools",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.ConvMaxPool(g.Quantized({2, 3, 41, 19}),
                                 {.channels = 16, .kernel = 7, .stride = 2, .padding = 3, .relu = true});
         return {g.GlobalAveragePoolLinear(x, 10, true),
                 g.GlobalAveragePoolLinear(g.Conv(x, {.channels = 7}), 9, false),
                 g.ConvMaxPool(x, {.channels = 6, .dilation = 2, .groups = 2})};
       }},
      {"add_and_pools",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({1, 5, 12, 10});
         Node* sum = g.Add(g.Conv(x, {.channels = 5}), x, true);
         return {g.Dequantize(g.AveragePool(sum)), g.MaxPool(sum), g.Relu(g.Add(sum, x))};
       }},
      {"convolutions",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({1, 24, 11, 13});
         return {g.Conv(x, {.channels = 24, .groups = 24, .relu = true}),
                 g.Conv(x, {.channels = 12, .padding = 2, .dilation = 2, .groups = 3}),
                 g.Conv(x, {.channels = 7, .kernel = 1, .padding = 0, .bias = false}),
                 g.Conv(x, {.channels = 33, .kernel = 5, .stride = 3, .padding = 0, .float_output = true})};
       }},
      {"flatten_of_pictures",  // NHWC codes must become row-major before a linear layer reads them.
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({3, 3, 6, 5}), {.channels = 9});
         return {g.Linear(g.Call("flatten", {x}), 13, true), g.Linear(g.Call("flatten", {x}), 6, false)};
       }},
      {"views_between_convolutions",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({1, 3, 8, 6}), {.channels = 4});
         x = g.Call("reshape", {x}, {{"shape", Ints{1, 8, 4, 6}}});
         return {g.Conv(g.Call("identity", {x}), {.channels = 4}), x};
       }},
      {"codes_as_inputs_and_outputs",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Input(Codes(g.dtype(), {2, 6, 5, 7}, 0.02f, 11));
         return {x, g.MaxPool(x), g.Conv(x, {.channels = 6}, x), g.Dequantize(x)};
       }},
      {"reference_steps_on_codes",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({1, 4, 6, 6});
         Node* joined = g.Call("cat", {x, g.Quantized({1, 2, 6, 6})}, {{"dim", 1}});
         return {g.Conv(joined, {.channels = 5}), g.Call("permute", {g.MaxPool(x)}, {{"dims", Ints{0, 2, 3, 1}}})};
       }},
      {"elementwise",  // One pass over codes, in whichever layout they lie; a gate for each channel.
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({2, 3, 6, 7}), {.channels = 5});
         AttributeMap steps = g.Out(0.03f);
         steps.insert({"steps", std::vector<std::string>{"sigmoid(0)", "mul(1, 2)", "add(3, 1)", "tanh(4)"}});
         Node* fused = g.Call("int8.fused_elementwise", {g.GlobalAveragePool(x), x}, std::move(steps));
         return {g.Conv(fused, {.channels = 4}), g.Call("int8.hardswish", {x}, g.Out(0.02f)),
                 g.Call("int8.mul", {x, g.Quantized({2, 5, 6, 7})}, g.Out(0.02f))};
       }},
      {"other_ranks",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Quantized({5, 37});
         return {g.Dequantize(g.Relu(g.Add(x, g.Quantized({5, 37})))), g.Linear(x, 3, false)};
       }},
      {"requantize_float_in_nhwc",
       [](CodeBuilder& g) -> std::vector<Node*> {
         Node* x = g.Conv(g.Quantized({1, 3, 9, 9}), {.channels = 10, .float_output = true});
         return {g.Conv(g.Quantize(x), {.channels = 4}), x};
       }},
  };
}

class Int8Test : public ::testing::TestWithParam<DType> {};

TEST_P(Int8Test, BitIdenticalToTheInterpreter) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  for (const Case& c : Cases()) {
    CodeBuilder builder(ops, GetParam());
    const ir::Graph& graph = builder.Output(c.build(builder));
    const std::vector<Tensor> inputs = SeededInputs(graph);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
    for (kernels::Isa isa :
         {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512Vnni, kernels::Isa::kAmx}) {
      if (!kernels::CpuSupports(isa)) continue;
      for (int threads : {1, 2, 3}) {
        SCOPED_TRACE(c.name + ", " + std::string(kernels::IsaName(isa)) + ", " + std::to_string(threads) + " threads");
        ThreadPool pool(threads);
        ExecutableOptions options;
        options.isa = isa;
        ASSERT_OK_AND_ASSIGN(auto executable, Executable::Create(graph, kernels, &pool, options));
        for (int round = 0; round < 2; ++round) {
          ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(*executable, inputs));
          for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << "output " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, Int8Test, ::testing::Values(DType::kU8, DType::kI8),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

}  // namespace
}  // namespace fuselage::runtime
