// What is written reads back as a graph with the same outputs.
#include "frontend/onnx/writer/writer.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/onnx/onnx.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx::writer {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

std::unique_ptr<ir::Graph> Graph(const std::string& body) {
  auto graph = ir::Parse(absl::StrCat("graph @g {\n", body, "}\n"), Ops());
  EXPECT_OK(graph);
  return *std::move(graph);
}

std::vector<Tensor> OutputsOf(const ir::Graph& graph) {
  std::vector<Tensor> inputs;
  for (const ir::Node* placeholder : graph.placeholders()) {
    inputs.push_back(SeededTensor(placeholder->tensor_type(), 7 + inputs.size()));
  }
  auto outputs = interpreter::Run(graph, inputs);
  EXPECT_OK(outputs);
  return *std::move(outputs);
}

::onnx::ModelProto Model(const std::string& bytes) {
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

std::string OpTypes(const ::onnx::ModelProto& model) {
  std::string types;
  for (const auto& node : model.graph().node()) absl::StrAppend(&types, types.empty() ? "" : " ", node.op_type());
  return types;
}

// Writes the graph, reads it again, and compares all outputs. Returns the operators written.
std::string RoundTrip(const std::string& body, double tolerance = 0) {
  const std::unique_ptr<ir::Graph> graph = Graph(body);
  const auto bytes = Write(*graph);
  EXPECT_OK(bytes);
  if (!bytes.ok()) return "";
  const auto read = Parse(*bytes, "written.onnx", Ops());
  EXPECT_OK(read);
  if (!read.ok()) return "";
  const std::vector<Tensor> wanted = OutputsOf(*graph), found = OutputsOf(**read);
  EXPECT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size() && i < found.size(); ++i) {
    EXPECT_EQ(found[i].shape(), wanted[i].shape());
    EXPECT_THAT(ToDoubles(found[i]), Pointwise(DoubleNear(tolerance), ToDoubles(wanted[i]))) << "output " << i;
  }
  return OpTypes(Model(*bytes));
}

constexpr char kQuantizedLayer[] = R"(
  param @c.b: f32[3] = [0.3, -0.2, 0.11]
  param @c.w: i8[3,2,3,3]<axis=0, scale=[0.01, 0.02, 0.005]> = seed(3)
  module @c = conv2d(activation="relu", padding=[1, 0, 1, 2], stride=[2, 1], bias=@c.b, weight=@c.w)
  %x: f32[1,2,6,5] = placeholder
  %q: u8[1,2,6,5]<scale=0.01, zp=100> = call_function quantize(%x, scales=[0.01], zero_points=[100])
  %d: f32[1,2,6,5] = call_function dequantize(%q)
  %y: f32[1,3,3,5] = call_module @c(%d)
  %yq: u8[1,3,3,5]<scale=0.05> = call_function quantize(%y, scales=[0.05])
  output(%yq, %y)
)";

TEST(Writer, AQuantizedLayer) {
  EXPECT_EQ(RoundTrip(kQuantizedLayer), "QuantizeLinear DequantizeLinear DequantizeLinear Conv Relu QuantizeLinear");
}

// The sum in one call is rounded once; Conv and Add round one after the other.
TEST(Writer, AResidualBeforeTheActivation) {
  EXPECT_EQ(RoundTrip(R"(
  param @c.w: f32[2,1,3,3] = seed(3)
  module @c = conv2d(activation="relu", dilation=[2, 2], groups=2, padding=[2, 2, 2, 2], weight=@c.w)
  %x: f32[2,2,6,5] = placeholder
  %r: f32[2,2,6,5] = placeholder
  %y: f32[2,2,6,5] = call_module @c(%x, %r)
  output(%y)
)",
                      /*tolerance=*/1e-6),
            "Conv Add Relu");
}

TEST(Writer, AClassifier) {
  EXPECT_EQ(RoundTrip(R"(
  param @bn.b: f32[2] = [0.5, -1.0]
  param @bn.m: f32[2] = [0.1, 0.2]
  param @bn.v: f32[2] = [2.0, 0.5]
  param @bn.w: f32[2] = [1.5, 0.5]
  param @fc.b: f32[3] = [1.0, 2.0, 3.0]
  param @fc.w: f32[3,2] = seed(4)
  module @bn = batch_norm(eps=0.001, bias=@bn.b, running_mean=@bn.m, running_var=@bn.v, weight=@bn.w)
  module @fc = linear(activation="relu", bias=@fc.b, weight=@fc.w)
  %x: f32[2,2,7,7] = placeholder
  %n: f32[2,2,7,7] = call_module @bn(%x)
  %m: f32[2,2,4,4] = call_function max_pool2d(%n, kernel_size=[3, 3], padding=[1, 1, 1, 1], stride=[2, 2])
  %a: f32[2,2,2,2] = call_function avg_pool2d(%m, count_include_pad=true, kernel_size=[2, 2], stride=[2, 2])
  %g: f32[2,2,1,1] = call_function adaptive_avg_pool2d(%a, output_size=[1, 1])
  %f: f32[2,2] = call_function flatten(%g)
  %y: f32[2,3] = call_module @fc(%f)
  output(%y)
)"),
            "BatchNormalization MaxPool AveragePool GlobalAveragePool Flatten Gemm Relu");
}

TEST(Writer, ElementwiseAndCat) {
  EXPECT_EQ(RoundTrip(R"(
  param @k: f32[4] = [1.0, 2.0, 3.0, 4.0]
  %x: f32[2,4] = placeholder
  %k: f32[4] = get_attr @k
  %m: f32[2,4] = call_function mul(%x, %k)
  %a: f32[2,4] = call_function add(%m, %x, activation="relu")
  %s: f32[2,4] = call_function sigmoid(%a)
  %t: f32[2,4] = call_function sub(%s, %x)
  %c: f32[2,8] = call_function cat(%t, %a, dim=1)
  output(%c, %x, %c)
)"),
            "Mul Add Relu Sigmoid Sub Concat Identity Identity");
}

TEST(Writer, Activations) {
  EXPECT_EQ(RoundTrip(R"(
  %x: f32[2,40] = placeholder
  %c: f32[2,40] = call_function clamp(%x, max=0.5, min=-0.25)
  %u: f32[2,40] = call_function clamp(%x, max=0.5)
  %r: f32[2,40] = call_function relu6(%x)
  %l: f32[2,40] = call_function leaky_relu(%x, negative_slope=0.25)
  %g: f32[2,40] = call_function hardsigmoid(%x, alpha=0.25)
  %s: f32[2,40] = call_function silu(%x)
  %h: f32[2,40] = call_function hardswish(%x)
  output(%c, %u, %r, %l, %g, %s, %h)
)",
                      /*tolerance=*/1e-7),
            "Clip Clip Clip LeakyRelu HardSigmoid Sigmoid Mul HardSigmoid Mul");
}

TEST(Writer, StepsOfAFusedChain) {
  EXPECT_EQ(RoundTrip(R"ir(
  %x: f32[2,40] = placeholder
  %y: f32[2,1] = placeholder
  %z: f32[2,40] = call_function fused_elementwise(%x, %y, steps=["add(0, 1)", "silu(2)", "mul(2, 3)", "clamp(4, max=1.5)"])
  output(%z)
)ir",
                      /*tolerance=*/1e-6),
            "Add Sigmoid Mul Mul Clip");
}

// A node that has the output's name gives it up.
TEST(Writer, InputsAndOutputsHaveTheModelsNames) {
  const std::unique_ptr<ir::Graph> graph = Graph(R"(
  param @k: f32[4] = [1.0, 2.0, 3.0, 4.0]
  %x: f32[2,4] = placeholder
  %k: f32[4] = get_attr @k
  %logits: f32[2,4] = call_function relu(%x)
  %y: f32[2,4] = call_function mul(%logits, %k)
  output(%y, %x, %y)
)");
  WriteOptions options;
  options.names = {{"input:0"}, {"logits", "k", "again"}};
  const auto bytes = Write(*graph, options);
  ASSERT_OK(bytes);
  Names names;
  LoadOptions load;
  load.names = &names;
  const auto read = Parse(*bytes, "written.onnx", Ops(), load);
  ASSERT_OK(read);
  EXPECT_EQ(names.inputs, options.names.inputs);
  EXPECT_EQ(names.outputs, options.names.outputs);
  const std::vector<Tensor> wanted = OutputsOf(*graph), found = OutputsOf(**read);
  ASSERT_EQ(found.size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << i;
}

TEST(Writer, TheBatchIsASymbol) {
  WriteOptions options;
  options.batch = "N";
  const auto bytes = Write(*Graph(kQuantizedLayer), options);
  ASSERT_OK(bytes);
  LoadOptions load;
  load.shapes["x"] = {5, 2, 6, 5};
  const auto graph = Parse(*bytes, "written.onnx", Ops(), load);
  ASSERT_OK(graph);
  EXPECT_EQ((*graph)->output()->operand(0)->tensor_type().shape, (Shape{5, 3, 3, 5}));
}

// A code of the bias is worth 0.01 * 0.01 in the first channel: half of it is the largest change.
TEST(Writer, AnIntegerBiasIsTheNearestCode) {
  WriteOptions options;
  options.bias = WriteOptions::Bias::kInt32;
  const std::unique_ptr<ir::Graph> graph = Graph(kQuantizedLayer);
  const auto bytes = Write(*graph, options);
  ASSERT_OK(bytes);
  const ::onnx::ModelProto model = Model(*bytes);
  bool found = false;
  for (const auto& initializer : model.graph().initializer()) {
    if (initializer.name() != "y:bias:codes") continue;
    found = true;
    const auto codes = ParseTensor(initializer.SerializeAsString(), "bias");
    ASSERT_OK(codes);
    EXPECT_EQ(ToDoubles(*codes), (std::vector<double>{3000, -1000, 2200}));
  }
  EXPECT_TRUE(found);
  const auto read = Parse(*bytes, "written.onnx", Ops());
  ASSERT_OK(read);
  const std::vector<Tensor> wanted = OutputsOf(*graph), values = OutputsOf(**read);
  for (int64_t i = 0; i < wanted[1].num_elements(); ++i) {
    EXPECT_NEAR(values[1].At(i), wanted[1].At(i), 0.5 * 0.01 * 0.02);
  }
}

void ExpectDeclined(const std::string& body, const std::string& node, const std::string& what) {
  EXPECT_THAT(Write(*Graph(body)), StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr(node), HasSubstr(what))));
}

TEST(Writer, DeclinesWhatOnnxDoesNotSay) {
  ExpectDeclined("%x: f32[2,4] = placeholder\n%y: f32[2,4] = call_function gelu(%x)\noutput(%y)\n", "%y", "gelu");
  ExpectDeclined("%x: f32[2,4] = placeholder\n%y: f32[2,4] = call_function add(%x, %x, alpha=2.0)\noutput(%y)\n", "%y",
                 "alpha");
  ExpectDeclined(
      "%x: f32[2,3,4] = placeholder\n%y: f32[6,4] = call_function flatten(%x, start_dim=0, end_dim=1)\n"
      "output(%y)\n",
      "%y", "axes 0 to 1");
  ExpectDeclined(
      "%x: f32[1,2,4,4] = placeholder\n"
      "%y: f32[1,2,2,2] = call_function adaptive_avg_pool2d(%x, output_size=[2, 2])\noutput(%y)\n",
      "%y", "[1,2,2,2]");
  ExpectDeclined(
      "param @w: f32[2,4] = seed(1)\nmodule @l = linear(weight=@w)\n%x: f32[2,3,4] = placeholder\n"
      "%y: f32[2,3,2] = call_module @l(%x)\noutput(%y)\n",
      "%y", "rank 3");
  ExpectDeclined(
      "%x: f32[2,4] = placeholder\n"
      "%y: u8[2,4]<scale=0.1> = call_function int8.quantize(%x, out_scale=0.1)\noutput(%y)\n",
      "%y", "int8.quantize");
}

}  // namespace
}  // namespace fuselage::onnx::writer
