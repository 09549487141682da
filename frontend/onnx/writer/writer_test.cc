// What is written reads back as a graph with the same outputs.
#include "frontend/onnx/writer/writer.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/writer/operators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/random_graph.h"
#include "ir/text.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx::writer {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
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

schema::ModelProto Model(const std::string& bytes) {
  schema::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

std::string OpTypes(const schema::ModelProto& model) {
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

TEST(Writer, FunctionsBehindALayer) {
  EXPECT_EQ(RoundTrip(R"ir(
  param @w: f32[4,4] = seed(1)
  module @a = linear(activation="hardswish", weight=@w)
  module @b = linear(activation="leaky_relu(negative_slope=0.25)", weight=@w)
  module @c = linear(activation="tanh, clamp(min=-0.25, max=inf)", weight=@w)
  %x: f32[2,4] = placeholder
  %a: f32[2,4] = call_module @a(%x)
  %b: f32[2,4] = call_module @b(%a)
  %c: f32[2,4] = call_module @c(%b)
  output(%c)
)ir",
                      /*tolerance=*/1e-6),
            "Gemm HardSigmoid Mul Gemm LeakyRelu Gemm Tanh Clip");
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

TEST(Writer, AnOutputThatIsCalledAsAnInputIsNumbered) {
  const std::unique_ptr<ir::Graph> graph = Graph(R"(
  %x: f32[2,4] = placeholder
  %y: f32[2,4] = call_function relu(%x)
  output(%x, %y)
)");
  WriteOptions options;
  options.names = {{"in"}, {"in", "y"}};
  const auto bytes = Write(*graph, options);
  ASSERT_OK(bytes);
  Names names;
  LoadOptions load;
  load.names = &names;
  const auto read = Parse(*bytes, "written.onnx", Ops(), load);
  ASSERT_OK(read);
  EXPECT_THAT(names.inputs, ElementsAre("in"));
  EXPECT_THAT(names.outputs, ElementsAre("in_1", "y"));
  const std::vector<Tensor> wanted = OutputsOf(*graph), found = OutputsOf(**read);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << i;
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
  const schema::ModelProto model = Model(*bytes);
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

// onnxruntime fails on `axes` where it moves channels to the end; sizes that no factor gives need them.
TEST(Writer, ResizeByWholeFactorsHasNoAxes) {
  for (const int size : {8, 7}) {
    const std::unique_ptr<ir::Graph> graph = Graph(absl::StrCat(
        "%x: f32[1,2,4,4] = placeholder\n%y: f32[1,2,", size, ",", size,
        "] = call_function resize(%x, dims=[2, 3], mode=\"nearest\", sizes=[", size, ", ", size, "])\noutput(%y)"));
    const auto bytes = Write(*graph);
    ASSERT_OK(bytes);
    const schema::ModelProto model = Model(*bytes);
    const auto& attributes = model.graph().node(0).attribute();
    const bool has_axes =
        std::any_of(attributes.begin(), attributes.end(), [](const auto& a) { return a.name() == "axes"; });
    EXPECT_EQ(has_axes, size == 7);
  }
}

// Products of other ranks, and what gemm and addmm say in one.
TEST(Writer, Products) {
  EXPECT_EQ(RoundTrip(R"(
  param @w: f32[2,4] = seed(1)
  param @b: f32[2] = [1.0, 2.0]
  param @g: f32[3,4] = seed(2)
  param @m: f32[4,3] = seed(5)
  module @l = linear(activation="relu", bias=@b, weight=@w)
  %x: f32[2,3,4] = placeholder
  %z: f32[5,4] = placeholder
  %g: f32[3,4] = get_attr @g
  %m: f32[4,3] = get_attr @m
  %c: f32[3] = placeholder
  %y: f32[2,3,2] = call_module @l(%x)
  %e: f32[5,3] = call_function gemm(%z, %g, %c, activation="relu", alpha=0.5, beta=2.0, trans_b=true)
  %a: f32[5,3] = call_function addmm(%c, %z, %m, alpha=2.0)
  output(%y, %e, %a)
)",
                      /*tolerance=*/1e-6),
            "Transpose MatMul Add Relu Gemm Relu Gemm");
}

TEST(Writer, ViewsAndMoves) {
  EXPECT_EQ(RoundTrip(R"(
  %x: f32[2,4,3,1] = placeholder
  %f: f32[2,12,1] = call_function flatten(%x, start_dim=1, end_dim=2)
  %r: f32[2,6,2] = call_function reshape(%f, shape=[0, -1, 2])
  %s: f32[2,4,3] = call_function squeeze(%x)
  %u: f32[2,1,4,3] = call_function unsqueeze(%s, dims=[1])
  %p: f32[3,2,4] = call_function permute(%s, dims=[-1, 0, 1])
  %t: f32[2,3,4] = call_function transpose(%s, dim0=1, dim1=-1)
  %l: f32[2,2,3] = call_function slice(%s, axes=[1], ends=[4], starts=[0], steps=[2])
  %o: (f32[2,1,3], f32[2,3,3]) = call_function split(%s, dim=1, sizes=[1, 3])
  %i: f32[2,3,3] = call_function getitem(%o, index=-1)
  %d: f32[2,5,3] = call_function pad(%i, mode="reflect", pads=[0, 1, 0, 0, 1, 0])
  %e: f32[2,5,3] = call_function pad(%i, pads=[0, 1, 0, 0, 1, 0], value=2.5)
  %h: f64[2,5,3] = call_function to(%e, dtype=f64)
  %m: f32[2,3] = call_function mean(%s, dims=[1])
  output(%r, %u, %p, %t, %l, %d, %h, %m)
)"),
            "Reshape Reshape Squeeze Unsqueeze Transpose Transpose Slice Split Identity Pad Pad Cast ReduceMean");
}

TEST(Writer, IndexingAndResizes) {
  EXPECT_EQ(RoundTrip(R"(
  param @i: i64[2] = [2, -4]
  param @g: i64[1,2] = [1, 0]
  param @n: i64[2,1] = [1, 1]
  param @len: i64[2] = [3, 2]
  param @v: f32[2] = [-1, 4]
  %x: f32[2,4] = placeholder
  %src: f32[2,4] = placeholder
  %i: i64[2] = get_attr @i
  %gi: i64[1,2] = get_attr @g
  %n: i64[2,1] = get_attr @n
  %len: i64[2] = get_attr @len
  %v: f32[2] = get_attr @v
  %a: f32[2,2] = call_function index_select(%x, %i, dim=1)
  %b: f32[1,2] = call_function gather(%x, %gi, dim=-1)
  %c: f32[2,4] = call_function gather_nd(%x, %n)
  %d: f32[2,4] = call_function scatter_nd(%x, %n, %src, reduce="max")
  %e: f32[2,4] = call_function scatter(%x, %gi, %b, dim=1, reduce="add")
  %t: (f32[2,3], i64[2,3]) = call_function topk(%x, k=3, largest=false)
  %f: i64[2,3] = call_function getitem(%t, index=1)
  %g: f32[2,3,5] = call_function one_hot(%f, %v, num_classes=5)
  %h: f32[2,4] = call_function reverse_sequence(%x, %len, batch_dim=0, time_dim=1)
  %l: f32[2,4] = call_function tril(%x, diagonal=-1)
  %u: f32[2,4] = call_function triu(%x, diagonal=2)
  %r: f32[2,7] = call_function resize(%x, dims=[-1], mode="cubic", sizes=[7])
  %s: f32[2,6] = call_function resize(%x, coordinates="tf_crop_and_resize", dims=[1], extrapolation_value=3.0, mode="linear", roi=[0.5, 1.5], scales=[1.5], sizes=[6])
  %w: f32[2,8] = call_function resize(%x, dims=[1], mode="linear", sizes=[8])
  output(%a, %c, %d, %e, %g, %h, %l, %u, %r, %s, %w)
)"),
            "Gather GatherElements GatherND ScatterND ScatterElements TopK Identity OneHot ReverseSequence Trilu "
            "Trilu Resize Resize Resize");
}

TEST(Writer, Sampling) {
  EXPECT_EQ(RoundTrip(R"(
  param @batch: i64[3] = [1, 0, -1]
  %x: f32[2,3,6,5] = placeholder
  %grid: f32[2,4,3,2] = placeholder
  %boxes: f32[3,4] = placeholder
  %batch: i64[3] = get_attr @batch
  %g: f32[2,3,4,3] = call_function grid_sample(%x, %grid, mode="bicubic", padding_mode="reflection")
  %r: f32[3,3,2,1] = call_function roi_align(%x, %boxes, %batch, aligned=true, output_height=2, sampling_ratio=2, spatial_scale=0.5)
  %p: (f32[2,3,3,2], i64[2,3,3,2]) = call_function max_pool2d_with_indices(%x, kernel_size=[2, 3], padding=[0, 1, 0, 0], stride=[2, 2])
  %v: f32[2,3,3,2] = call_function getitem(%p, index=0)
  %i: i64[2,3,3,2] = call_function getitem(%p, index=1)
  output(%g, %r, %v, %i)
)"),
            "GridSample RoiAlign MaxPool Mod Identity Identity");
  EXPECT_EQ(RoundTrip(R"(
  %x: f32[1,2,3,6,5] = placeholder
  %grid: f32[1,4,3,2,3] = placeholder
  %g: f32[1,2,4,3,2] = call_function grid_sample(%x, %grid, align_corners=true)
  output(%g)
)"),
            "GridSample");
}

// Results of as many rows as there can be, and how many there are.
TEST(Writer, Selection) {
  EXPECT_EQ(RoundTrip(R"(
  %boxes: f32[2,6,4] = placeholder
  %scores: f32[2,3,6] = placeholder
  %n: (i64[36,3], i64[1]) = call_function nonzero(%scores)
  %positions: i64[36,3] = call_function getitem(%n, index=0)
  %found: i64[1] = call_function getitem(%n, index=1)
  %k: (i64[12,3], i64[1]) = call_function nms(%boxes, %scores, center_point_box=true, iou_threshold=0.5, max_output_boxes_per_class=2, score_threshold=0.25)
  %kept: i64[12,3] = call_function getitem(%k, index=0)
  %count: i64[1] = call_function getitem(%k, index=1)
  output(%positions, %found, %kept, %count)
)"),
            "NonZero Transpose Shape Slice Sub Concat Pad Identity Identity NonMaxSuppression Shape Slice Sub Concat Pad "
            "Identity Identity");
}

TEST(Writer, IntegerProducts) {
  EXPECT_EQ(RoundTrip(R"(
  param @b: i8[4,3] = seed(1)
  param @bz: i8[3] = [1, 2, 3]
  param @w: i8[2,1,3,3] = seed(2)
  param @wz: i8[2,1,1,1] = [4, 5]
  %x: f32[5,4] = placeholder
  %i: u8[1,1,4,4] = placeholder
  %b: i8[4,3] = get_attr @b
  %bz: i8[3] = get_attr @bz
  %w: i8[2,1,3,3] = get_attr @w
  %wz: i8[2,1,1,1] = get_attr @wz
  %q: (u8[5,4], f32[], u8[]) = call_function dynamic_quantize_asymmetric(%x)
  %c: u8[5,4] = call_function getitem(%q, index=0)
  %z: u8[] = call_function getitem(%q, index=2)
  %y: i32[5,3] = call_function matmul_integer(%c, %b, %z, %bz)
  %v: i32[1,2,2,2] = call_function conv_integer2d(%i, %w, %z, %wz)
  output(%y, %v)
)"),
            "DynamicQuantizeLinear Identity Identity MatMulInteger Reshape ConvInteger");
}

// Of all elements and of each row; weights with a scale for each group of features.
TEST(Writer, DynamicCodes) {
  EXPECT_EQ(RoundTrip(R"(
  %x: f32[5,4] = placeholder
  %q: (i8[5,4], f32[]) = call_function dynamic_quantize_symmetric(%x)
  %c: i8[5,4] = call_function getitem(%q, index=0)
  %s: f32[] = call_function getitem(%q, index=1)
  output(%c, %s)
)"),
            "Abs ReduceMax Div Less Where Div Round Clip Cast Identity Identity");
  EXPECT_EQ(RoundTrip(R"(
  param @w: i8[3,64] = seed(1)
  param @ws: f32[3,2] = seed(2)
  %x: f32[5,64] = placeholder
  %w: i8[3,64] = get_attr @w
  %ws: f32[3,2] = get_attr @ws
  %q: (i8[5,64], f32[5,1]) = call_function dynamic_quantize_symmetric(%x, dims=[-1])
  %c: i8[5,64] = call_function getitem(%q, index=0)
  %s: f32[5,1] = call_function getitem(%q, index=1)
  %f: f32[5,64] = call_function to(%c, dtype=f32)
  %r: f32[5,64] = call_function mul(%f, %s)
  %v: f32[3,64] = call_function dequantize_groups(%w, %ws)
  %y: f32[5,3] = call_function linear(%r, %v)
  output(%y)
)"),
            "Abs ReduceMax Div Less Where Div Round Clip Cast Identity Identity Cast Mul DequantizeLinear Gemm");
}

// One operator where another one (rms_norm) has made the model one of opset 23 anyway.
TEST(Writer, Attention) {
  const std::string operands = R"(
  %q: f32[2,4,3,8] = placeholder
  %k: f32[2,2,5,8] = placeholder
  %v: f32[2,2,5,6] = placeholder
)";
  const std::string call = "  %y: f32[2,4,3,6] = call_function scaled_dot_product_attention(%q, %k, %v";
  EXPECT_EQ(RoundTrip(operands + call + ", scale=0.3)\n  output(%y)\n", 1e-6),
            "Transpose Reshape MatMul Reshape Mul Softmax Reshape MatMul Reshape");
  const std::string masked = operands + "  %m: f32[3,5] = placeholder\n" + call + ", %m, scale=0.3, softcap=2.0";
  EXPECT_EQ(RoundTrip(masked + ", is_causal=true)\n  output(%y)\n", 1e-6),
            "Transpose Reshape MatMul Reshape Mul Div Tanh Mul Add Where Softmax Where Reshape MatMul Reshape");
  EXPECT_EQ(RoundTrip(masked + ", is_causal=true)\n"
                               "  %z: f32[2,4,3,6] = call_function rms_norm(%y, normalized_shape=[6])\n  output(%z)\n",
                      1e-6),
            "Attention RMSNormalization");
  EXPECT_EQ(RoundTrip(R"(
  %q: f32[3,8] = placeholder
  %k: f32[5,8] = placeholder
  %v: f32[5,6] = placeholder
  %m: bool[5] = placeholder
  %y: f32[3,6] = call_function scaled_dot_product_attention(%q, %k, %v, %m, scale=0.3)
  output(%y)
)",
                      1e-6),
            "Transpose MatMul Mul Where Softmax Where MatMul");
}

// An operator of a newer opset takes the others along.
TEST(Writer, TheOpsetIsTheNewestThatAnOperatorAsksFor) {
  const std::string tail = "%m: f32[2] = call_function mean(%y, dims=[1])\noutput(%m)\n";
  const auto old = Write(*Graph("%x: f32[2,4] = placeholder\n%y: f32[2,4] = call_function tanh(%x)\n" + tail));
  const auto now = Write(*Graph("%x: f32[2,4] = placeholder\n%y: f32[2,4] = call_function gelu(%x)\n" + tail));
  ASSERT_OK(old);
  ASSERT_OK(now);
  EXPECT_EQ(Model(*old).opset_import(0).version(), 13);
  EXPECT_EQ(Model(*old).graph().node(1).input_size(), 1);
  EXPECT_EQ(Model(*now).opset_import(0).version(), 20);
  EXPECT_EQ(Model(*now).graph().node(1).input_size(), 2);
}

TEST(Writer, EveryOpHasARow) {
  for (const ir::OpSchema* op : Ops().SortedByName()) {
    EXPECT_NE(WhyNotOrNull(op->name), nullptr)
        << op->name << ": give it a row in frontend/onnx/writer/operators, with its ONNX operator or why it has none";
  }
  EXPECT_STREQ(WhyNotOrNull("conv2d"), "");
  EXPECT_THAT(WhyNotOrNull("int8.conv2d"), HasSubstr("lowered"));
  EXPECT_EQ(WhyNotOrNull("no_such_op"), nullptr);
}

TEST(Writer, AnOpHasOneRow) {
  Operators operators;
  operators.Add({{"add", WriteSame, "Add"}});
  EXPECT_DEATH(operators.Add({{"add", WriteSame, "Sum"}}), "inserted");
}

// Random graphs say the same after writing and reading; what is not written names an op whose row says why, or the form
// of it that ONNX does not have.
TEST(Writer, RandomGraphsRoundTrip) {
  const std::vector<std::string> forms = {"batch_norm with the statistics of the batch",
                                          "batch_norm in training",
                                          "max_pool",
                                          "adaptive_avg_pool",
                                          "dequantize_groups whose groups do not divide the features",
                                          "dynamic_quantize_asymmetric along axes",
                                          "matmul_integer with zero points",
                                          "remainder of floats",
                                          "bitwise_left_shift of signed integers",
                                          "bitwise_right_shift of signed integers",
                                          "threshold with a value other than 0"};
  int written = 0;
  std::map<std::string, int> declined;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    fuselage::testing::RandomGraphOptions options;
    options.calls = 10;
    options.quantized = seed % 2 == 0;
    const std::unique_ptr<ir::Graph> graph = fuselage::testing::RandomGraph(seed, Ops(), options);
    const auto bytes = Write(*graph);
    if (!bytes.ok()) {
      EXPECT_EQ(bytes.status().code(), absl::StatusCode::kUnimplemented) << bytes.status();
      const std::string message(bytes.status().message());
      const std::string what = message.substr(message.find(": ") + 2), op = what.substr(0, what.find(' '));
      const char* why = WhyNotOrNull(op);
      const bool form = std::any_of(forms.begin(), forms.end(), [&](const std::string& known) {
        return what.compare(0, known.size(), known) == 0;
      });
      EXPECT_TRUE(form || (why != nullptr && *why != '\0')) << "seed " << seed << ": " << message;
      ++declined[op.substr(0, 5) == "int8." ? "int8.*" : op];
      continue;
    }
    const auto read = Parse(*bytes, "written.onnx", Ops());
    // The reader knows a QuantizeLinear's result as codes, which nothing computes with as with other integers.
    if (!read.ok() && absl::StrContains(read.status().message(), "found quantized codes")) {
      ++declined["not read"];
      continue;
    }
    ASSERT_OK(read) << "seed " << seed << "\n" << ir::Print(*graph);
    ++written;
    const std::vector<Tensor> wanted = OutputsOf(*graph), found = OutputsOf(**read);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(found[i].dtype(), wanted[i].dtype()) << "seed " << seed << " output " << i;
      ASSERT_EQ(found[i].shape(), wanted[i].shape()) << "seed " << seed << " output " << i;
      double largest = 1;
      for (double value : ToDoubles(wanted[i])) largest = std::max(largest, std::abs(value));
      ASSERT_THAT(ToDoubles(found[i]), Pointwise(DoubleNear(1e-5 * largest), ToDoubles(wanted[i])))
          << "seed " << seed << " output " << i << "\n"
          << ir::Print(*graph);
    }
  }
  std::cout << "written " << written;
  for (const auto& [op, count] : declined) std::cout << ", " << op << " " << count;
  std::cout << "\n";
  EXPECT_GE(written, 150);
}

void ExpectDeclined(const std::string& body, const std::string& node, const std::string& what) {
  EXPECT_THAT(Write(*Graph(body)), StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr(node), HasSubstr(what))));
}

TEST(Writer, DeclinesWhatOnnxDoesNotSay) {
  ExpectDeclined(
      "%x: f32[1,2,4,4] = placeholder\n"
      "%y: f32[1,2,3,3] = call_function adaptive_avg_pool2d(%x, output_size=[3, 3])\noutput(%y)\n",
      "%y", "[1,2,3,3]");
  ExpectDeclined(
      "%x: f32[4] = placeholder\n%y: f32[5] = call_function resize(%x, dims=[0], scales=[1.5], "
      "sizes=[5])\noutput(%y)\n",
      "%y", "of 4 elements to 5 by the scale 1.5");
  ExpectDeclined("%x: f32[2,4] = placeholder\n%y: f32[2,4] = call_function batch_norm(%x, training=true)\noutput(%y)\n",
                 "%y", "statistics of the batch");
  ExpectDeclined(
      "%x: i8[2,40] = placeholder\n%s: f32[2,2] = placeholder\n"
      "%y: f32[2,40] = call_function dequantize_groups(%x, %s)\noutput(%y)\n",
      "%y", "whose groups do not divide the features");
  ExpectDeclined(
      "%x: f32[2,4] = placeholder\n"
      "%y: u8[2,4]<scale=0.1> = call_function int8.quantize(%x, out_scale=0.1)\noutput(%y)\n",
      "%y", "int8.quantize");
}

}  // namespace
}  // namespace fuselage::onnx::writer
