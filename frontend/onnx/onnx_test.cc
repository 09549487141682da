// What every model must satisfy: structure, shapes, limits, and the errors that name what is wrong.
#include "frontend/onnx/onnx.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/model_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/text.h"

namespace fuselage::onnx {
namespace {

using ::testing::HasSubstr;

const ir::OpRegistry& Ops() {
  static const auto* registry = [] {
    auto* created = new ir::OpRegistry;
    ops::RegisterAll(*created);
    return created;
  }();
  return *registry;
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Import(ModelBuilder& model, const LoadOptions& options = {}) {
  return Parse(model.Bytes(), "m.onnx", Ops(), options);
}

void ExpectError(ModelBuilder& model, absl::StatusCode code, const std::string& message,
                 const LoadOptions& options = {}) {
  const auto graph = Import(model, options);
  ASSERT_FALSE(graph.ok()) << ir::Print(**graph);
  EXPECT_EQ(graph.status().code(), code) << graph.status();
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("m.onnx: "));
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

ModelBuilder OneRelu() {
  ModelBuilder model;
  model.Input("x", {2, 3}).Node("Relu", {"x"}, {"y"}, "act").Output("y");
  return model;
}

ModelBuilder OneConv(int opset = 13) {
  ModelBuilder model(opset);
  model.Input("x", {1, 3, 8, 8})
      .Initializer("conv.weight", Seeded({4, 3, 3, 3}, 1))
      .Initializer("conv.bias", Seeded({4}, 2))
      .Node("Conv", {"x", "conv.weight", "conv.bias"}, {"y"}, "conv")
      .Output("y");
  return model;
}

TEST(Import, ConvWithItsWeights) {
  ModelBuilder model = OneConv();
  model.Ints("pads", {1, 1, 1, 1}).Ints("strides", {2, 2});
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const ir::Node* conv = (*graph)->FindNodeOrNull("conv");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->kind(), ir::NodeKind::kCallFunction);
  EXPECT_EQ(conv->target(), "conv2d");
  EXPECT_EQ(conv->tensor_type().shape, (Shape{1, 4, 4, 4}));
  EXPECT_EQ(conv->operand(1)->kind(), ir::NodeKind::kGetAttr);
  EXPECT_EQ(conv->operand(1)->target(), "conv.weight");
  EXPECT_EQ(conv->operand(2)->target(), "conv.bias");
  EXPECT_TRUE((*graph)->Verify().ok());
}

TEST(Import, ConstantsFoldAndKeepTheirOutputsName) {
  ModelBuilder model;
  model.Input("x", {1, 4})
      .Initializer("fc.weight.fp16", Cast(Seeded({2, 4}, 3), DType::kF16))
      .Node("Cast", {"fc.weight.fp16"}, {"fc.weight"}, "cast")
      .Int("to", 1)
      .Node("Gemm", {"x", "fc.weight"}, {"y"}, "fc")
      .Int("transB", 1)
      .Output("y");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->num_nodes(), 4);  // x, fc.weight, fc, output.
  EXPECT_EQ((*graph)->parameters().size(), 1);
  const ir::Parameter* weight = (*graph)->FindParameterOrNull("fc.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->tensor->dtype(), DType::kF32);
  EXPECT_EQ((*graph)->FindNodeOrNull("fc")->target(), "linear");
}

// The usual way out of a convolutional stack: x.view(x.size(0), -1).
TEST(Import, ShapeArithmeticFoldsAndTheBatchStaysFree) {
  ModelBuilder model;
  model.Input("x", {"N", 3, 4, 4})
      .Node("Shape", {"x"}, {"shape"})
      .Initializer("zero", Tensor::Scalar<int64_t>(0))
      .Node("Gather", {"shape", "zero"}, {"n"})
      .Initializer("axes", Tensor::Of<int64_t>({1}, {0}))
      .Node("Unsqueeze", {"n", "axes"}, {"n1"})
      .Node("Constant", {}, {"rest"})
      .Value("value", Tensor::Of<int64_t>({1}, {-1}))
      .Node("Concat", {"n1", "rest"}, {"target"})
      .Int("axis", 0)
      .Node("Reshape", {"x", "target"}, {"y"}, "view")
      .Output("y");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->num_nodes(), 3);
  EXPECT_EQ((*graph)->FindNodeOrNull("view")->tensor_type().shape, (Shape{1, 48}));
  ASSERT_TRUE((*graph)->SetBatch(5).ok());
  EXPECT_EQ((*graph)->FindNodeOrNull("view")->tensor_type().shape, (Shape{5, 48}));
}

TEST(Import, OutputsKeepTheirOrderAndMayBeConstantsOrInputs) {
  ModelBuilder model;
  model.Input("x", {2}).Initializer("c", Tensor::Of<float>({1}, {7})).Node("Relu", {"x"}, {"y"});
  model.Output("c").Output("y").Output("x");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto outputs = interpreter::Run(**graph, {Tensor::Of<float>({2}, {-1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), 3);
  EXPECT_EQ(ToDoubles((*outputs)[0]), (std::vector<double>{7}));
  EXPECT_EQ(ToDoubles((*outputs)[1]), (std::vector<double>{0, 2}));
  EXPECT_EQ(ToDoubles((*outputs)[2]), (std::vector<double>{-1, 2}));
}

TEST(Import, NodesOutOfOrderAreSorted) {
  ModelBuilder model;
  model.Input("x", {2}).Node("Tanh", {"a"}, {"y"}).Node("Relu", {"x"}, {"a"}).Output("y");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
}

TEST(Import, AnInitializerMayRepeatAnInputAsItsDefault) {
  ModelBuilder model;
  model.Input("x", {2}).Input("w", {2}).Initializer("w", Tensor::Of<float>({2}, {1, 2}));
  model.Node("Add", {"x", "w"}, {"y"}).Output("y");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->placeholders().size(), 1);
}

TEST(Structure, NamesAreDefinedOnceAndBeforeUse) {
  ModelBuilder undefined = OneRelu();
  undefined.Node("Relu", {"nowhere"}, {"z"}, "second").Output("z");
  ExpectError(undefined, kInvalid, "node 'second' (Relu): found the undefined input 'nowhere'");

  ModelBuilder twice = OneRelu();
  twice.Node("Tanh", {"x"}, {"y"}, "again");
  ExpectError(twice, kInvalid, "node 'again' (Tanh): found a second definition of 'y'");

  ModelBuilder inputs = OneRelu();
  inputs.Input("x", {1});
  ExpectError(inputs, kInvalid, "found two graph inputs 'x'");

  ModelBuilder initializers = OneRelu();
  initializers.Initializer("w", Tensor::Scalar(1.0f)).Initializer("w", Tensor::Scalar(1.0f));
  ExpectError(initializers, kInvalid, "found two initializers 'w'");

  ModelBuilder output = OneRelu();
  output.Output("absent");
  ExpectError(output, kInvalid, "found the undefined graph output 'absent'");

  ModelBuilder none;
  none.Input("x", {2});
  ExpectError(none, kInvalid, "found no graph output");
}

TEST(Structure, Cycles) {
  ModelBuilder model;
  model.Input("x", {2}).Node("Add", {"x", "b"}, {"a"}, "first").Node("Relu", {"a"}, {"b"}, "second").Output("b");
  ExpectError(model, kInvalid, "node 'first' (Add): found a cycle");
}

TEST(Structure, Arity) {
  ModelBuilder few;
  few.Input("x", {2}).Node("Add", {"x"}, {"y"}, "sum").Output("y");
  ExpectError(few, kInvalid, "node 'sum' (Add): found 1 inputs, wanted 2");

  ModelBuilder many;
  many.Input("x", {2})
      .Initializer("s", Tensor::Scalar(1.0f))
      .Node("DequantizeLinear", {"x", "s", "", "s"}, {"y"}, "dq");
  many.Output("y");
  ExpectError(many, kInvalid, "node 'dq' (DequantizeLinear): found 4 inputs, wanted 2 to 3");

  ModelBuilder absent;
  absent.Input("x", {2}).Node("Add", {"x", ""}, {"y"}, "sum").Output("y");
  ExpectError(absent, kInvalid, "node 'sum' (Add): found input 1 absent");

  ModelBuilder outputs;
  outputs.Input("x", {2}).Node("Relu", {"x"}, {"y", "z"}, "act").Output("y");
  ExpectError(outputs, kInvalid, "node 'act' (Relu): found 2 outputs, wanted 1");

  ModelBuilder constants;
  constants.Input("x", {2}).Node("Constant", {}, {"y", "z"}, "c").Value("value", Tensor::Scalar(1.0f)).Output("y");
  ExpectError(constants, kInvalid, "node 'c' (Constant): found 2 outputs, wanted 1");
}

TEST(Structure, UnsupportedOperatorsAreAllListed) {
  ModelBuilder model;
  model.Input("x", {2}).Node("Det", {"x"}, {"a"}, "e1").Node("Det", {"a"}, {"b"}, "e2");
  model.Node("BertTokenizer", {"b"}, {"c"}, "f");
  model.last_node().set_domain("com.microsoft");
  model.Node("If", {"c"}, {"d"}, "branch").Output("d");
  auto* branch = model.last_node().add_attribute();
  branch->set_name("then_branch");
  branch->set_type(schema::AttributeProto::GRAPH);
  auto* inner = branch->mutable_g()->add_node();
  inner->set_op_type("Bernoulli");
  inner->set_name("inner");
  ExpectError(model, kUnimplemented,
              "found 3 unsupported operators:\n  'Bernoulli': 1 node, first 'inner'\n  'Det': 2 nodes, first 'e1'\n"
              "  'com.microsoft.BertTokenizer': 1 node, first 'f'");
}

TEST(Structure, ANodeWithoutOperator) {
  ModelBuilder model = OneRelu();
  model.Node("", {"x"}, {"z"}, "blank").Output("z");
  ExpectError(model, kUnimplemented, "'(no operator)': 1 node, first 'blank'");
}

TEST(Structure, Opsets) {
  ModelBuilder old(5);
  old.Input("x", {2}).Node("Add", {"x", "x"}, {"y"}, "sum").Output("y");
  ExpectError(old, kUnimplemented, "'Add of opset 5 (supported from 6 on)': 1 node, first 'sum'");

  ModelBuilder early(9);
  early.Input("x", {2}).Node("HardSwish", {"x"}, {"y"}, "act").Output("y");
  ExpectError(early, kUnimplemented, "HardSwish of opset 9");

  ModelBuilder future(26);
  future.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y");
  ExpectError(future, kUnimplemented, "found opset 26, wanted 7 to 25");

  ModelBuilder two = OneRelu();
  *two.proto().add_opset_import() = two.proto().opset_import(0);
  ExpectError(two, kInvalid, "found two opset_import");

  ModelBuilder none = OneRelu();
  none.proto().clear_opset_import();
  ExpectError(none, kInvalid, "found no opset_import");
}

TEST(Structure, TooManyNodesOrSubgraphs) {
  ModelBuilder many;
  for (int i = 0; i <= 1 << 20; ++i) many.graph().add_node();
  ExpectError(many, kExhausted, "more than 1048576 nodes");

  ModelBuilder deep;
  schema::GraphProto* graph = &deep.graph();
  for (int i = 0; i < 9; ++i) graph = graph->add_node()->add_attribute()->mutable_g();
  ExpectError(deep, kExhausted, "subgraphs nested deeper than 8");
}

TEST(Attributes, AreCheckedAgainstTheOperator) {
  ModelBuilder unknown = OneConv();
  unknown.Int("activation", 1);
  ExpectError(unknown, kUnimplemented, "node 'conv' (Conv): found attribute 'activation'");

  ModelBuilder type = OneConv();
  type.Int("pads", 1);
  ExpectError(type, kInvalid, "node 'conv' (Conv): attribute 'pads': found INT, wanted INTS");

  ModelBuilder twice = OneConv();
  twice.Int("group", 1).Int("group", 1);
  ExpectError(twice, kInvalid, "node 'conv' (Conv): found attribute 'group' twice");

  ModelBuilder length = OneConv();
  length.Ints("pads", {1, 1});
  ExpectError(length, kInvalid, "node 'conv' (Conv): attribute 'pads': found [1,1], wanted 4 values");

  ModelBuilder stride = OneConv();
  stride.Ints("strides", {1, 0});
  ExpectError(stride, kInvalid, "attribute 'strides': found [1,0], wanted 2 values in [1, ");

  ModelBuilder kernel = OneConv();
  kernel.Ints("kernel_shape", {5, 5});
  ExpectError(kernel, kInvalid, "attribute 'kernel_shape': found [5,5], wanted [3,3]");

  ModelBuilder pad = OneConv();
  pad.String("auto_pad", "SAME");
  ExpectError(pad, kInvalid, "attribute 'auto_pad': found 'SAME'");

  ModelBuilder groups = OneConv();
  groups.Int("group", 2);
  ExpectError(groups, kInvalid, "node 'conv' (Conv): ");

  ModelBuilder flag;
  flag.Input("x", {2, 2}).Node("Gemm", {"x", "x"}, {"y"}, "fc").Int("transA", 2).Output("y");
  ExpectError(flag, kInvalid, "node 'fc' (Gemm): attribute 'transA': found 2, wanted 0 or 1");
}

TEST(Limits, OverflowAndMemory) {
  ModelBuilder overflow;
  overflow.Input("x", {int64_t{1} << 40, int64_t{1} << 40}).Node("Relu", {"x"}, {"y"}).Output("y");
  ExpectError(overflow, kInvalid, "input 'x': shape [1099511627776,1099511627776] overflows");

  ModelBuilder negative;
  negative.Input("x", {-4}).Node("Relu", {"x"}, {"y"}).Output("y");
  ExpectError(negative, kInvalid, "input 'x': found the dimension -4");

  LoadOptions small;
  small.max_memory_bytes = 100000;
  ModelBuilder constant;
  constant.Initializer("shape", Tensor::Of<int64_t>({2}, {1 << 20, 1 << 20}))
      .Node("ConstantOfShape", {"shape"}, {"y"}, "fill")
      .Output("y");
  ExpectError(constant, kExhausted, "node 'fill' (ConstantOfShape): its constant result needs 4398046511104 bytes",
              small);

  ModelBuilder value;
  value.Input("x", {1 << 10}).Initializer("s", Tensor::Of<int64_t>({2}, {1 << 10, 1}));
  value.Node("Reshape", {"x", "s"}, {"column"}).Node("Add", {"x", "column"}, {"y"}, "outer").Output("y");
  ExpectError(value, kExhausted, "node 'outer' (Add): its result f32[1024,1024] needs 4194304 bytes", small);

  ModelBuilder rows;
  rows.Initializer("w", Seeded({1, 1000}, 1)).Initializer("i", Tensor::Of<int64_t>({100}, std::vector<int64_t>(100)));
  rows.Node("Gather", {"w", "i"}, {"y"}, "rows").Output("y");
  ExpectError(rows, kExhausted, "node 'rows' (Gather): its constant result needs 400000 bytes", small);

  // 400 KB as a tensor; 800 KB as the doubles that are summed.
  ModelBuilder fold;
  fold.Initializer("w", Seeded({100000}, 1)).Node("ReduceMean", {"w"}, {"y"}, "mean").Output("y");
  LoadOptions medium;
  medium.max_memory_bytes = 1100000;
  ExpectError(fold, kExhausted, "node 'mean' (ReduceMean): a copy of its operand needs 800000 bytes", medium);
  medium.max_memory_bytes = 1300000;
  EXPECT_TRUE(Parse(fold.Bytes(), "m.onnx", Ops(), medium).ok());

  ModelBuilder file = OneRelu();
  file.proto().set_doc_string(std::string(1 << 17, ' '));
  ExpectError(file, kExhausted, "the parsed file needs ", small);
}

TEST(Outputs, AreChosen) {
  ModelBuilder model;
  model.Input("x", {1, 2, 4}).Node("Relu", {"x"}, {"boxes"}, "act").Node("Sigmoid", {"x"}, {"scores"}, "soft");
  model.Node("Unique", {"boxes"}, {"kept"}, "unique").Node("Det", {"kept"}, {"y"}, "det").Output("y");
  LoadOptions options;
  options.outputs = {"kept"};
  ExpectError(model, kUnimplemented,
              "node 'unique' (Unique): found a result whose shape depends on data, wanted shapes", options);
  Names names;
  options.names = &names;
  options.outputs = {"scores", "boxes"};
  const auto graph = Import(model, options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(names.outputs, options.outputs);
  ASSERT_EQ((*graph)->output()->operands().size(), 2);
  EXPECT_EQ((*graph)->output()->operands()[0]->name(), "soft");
  options.outputs = {"scores"};
  ASSERT_TRUE(Import(model, options).ok());
  EXPECT_EQ((*Import(model, options))->FindNodeOrNull("act"), nullptr);
  options.outputs = {"boxs"};
  const absl::Status misspelt = Import(model, options).status();
  EXPECT_TRUE(IsUsageError(misspelt));
  EXPECT_THAT(std::string(misspelt.message()),
              HasSubstr("output 'boxs': found no node that computes it; did you mean \"boxes\"?"));
}

TEST(Values, NonFiniteWeights) {
  ModelBuilder model;
  model.Input("x", {2}).Initializer("w", Tensor::Of<float>({2}, {1, std::nanf("")}));
  model.Node("Add", {"x", "w"}, {"y"}).Output("y");
  ExpectError(model, kInvalid, "tensor 'w': found nan as element 1, wanted finite values");
  LoadOptions options;
  options.allow_nonfinite = true;
  std::vector<std::string> warnings;
  options.warnings = &warnings;
  EXPECT_TRUE(Import(model, options).ok());
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_THAT(warnings[0], HasSubstr("tensor 'w': found nan"));

  const auto scalar = [](float value) {
    ModelBuilder made;
    made.Input("x", {2}).Initializer("w", Tensor::Scalar(value)).Node("Max", {"x", "w"}, {"y"}).Output("y");
    return made;
  };
  ModelBuilder mask = scalar(-std::numeric_limits<float>::infinity()), broken = scalar(std::nanf(""));
  EXPECT_TRUE(Import(mask).ok()) << "as the value of a mask is";
  ExpectError(broken, kInvalid, "tensor 'w': found nan as element 0");
}

TEST(Values, ScalesAndZeroPoints) {
  const auto model = [](float scale, int zero_point) {
    ModelBuilder made;
    made.Input("x", {2}).Initializer("s", Tensor::Scalar(scale)).Initializer("z", Tensor::Scalar<int8_t>(zero_point));
    made.Node("QuantizeLinear", {"x", "s", "z"}, {"q"}, "quant").Output("q", DType::kI8);
    return made;
  };
  ModelBuilder good = model(0.5f, 3);
  const auto graph = Import(good);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->FindNodeOrNull("quant")->tensor_type().quant, PerTensor(0.5f, 3));
  for (float scale : {0.0f, -1.0f, 1e-40f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    ModelBuilder bad = model(scale, 0);
    ExpectError(bad, kInvalid, "node 'quant' (QuantizeLinear): quantization by 's' and 'z': scale ");
  }
  ModelBuilder range;
  range.Input("x", {2}, DType::kI32).Initializer("s", Tensor::Scalar(1.0f));
  range.Initializer("z", Tensor::Scalar<int8_t>(0)).Node("DequantizeLinear", {"x", "s", "z"}, {"y"}, "d").Output("y");
  ExpectError(range, kInvalid, "found a zero point i8[], wanted the codes' type i32");
}

TEST(Inputs, TypesThatAreNoTensorsOfNumbers) {
  ModelBuilder sequence = OneRelu();
  sequence.graph().mutable_input(0)->mutable_type()->mutable_sequence_type();
  ExpectError(sequence, kUnimplemented, "input 'x': found a sequence, map, optional or sparse tensor");
  ModelBuilder text = OneRelu();
  text.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(schema::TensorProto::STRING);
  ExpectError(text, kUnimplemented, "input 'x': found STRING");
  ModelBuilder none = OneRelu();
  none.graph().mutable_input(0)->clear_type();
  ExpectError(none, kInvalid, "input 'x': found no type");
}

TEST(Inputs, ComputedWhereAConstantIsNeeded) {
  ModelBuilder model;
  model.Input("x", {2, 3}).Input("shape", {1}, DType::kI64).Node("Reshape", {"x", "shape"}, {"y"}, "r").Output("y");
  ExpectError(model, kUnimplemented,
              "node 'r' (Reshape): input 1: found the computed value 'shape', wanted a constant");
  LoadOptions options;
  options.constants.emplace("shape", Tensor::Of<int64_t>({1}, {6}));
  const auto graph = Import(model, options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->placeholders().size(), 1);
}

TEST(Names, BecomeIdentifiersAndAreEscapedInMessages) {
  ModelBuilder model;
  model.Input("input:0", {2}).Node("Relu", {"input:0"}, {"out put"}, "a b:c").Output("out put");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_NE((*graph)->FindNodeOrNull("input_0"), nullptr);
  EXPECT_NE((*graph)->FindNodeOrNull("a_b_c"), nullptr);
  ModelBuilder control;
  control.Input("x", {2}).Node("Relu", {"\x1b[31mred"}, {"y"}, "a\nb").Output("y");
  ExpectError(control, kInvalid, "node 'a\\nb' (Relu): found the undefined input '\\x1b[31mred'");
}

TEST(File, MissingOrNotAModel) {
  EXPECT_EQ(Load("/nonexistent/m.onnx", Ops()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Load("/", Ops()).status().code(), kInvalid);
  EXPECT_EQ(Parse("", "m.onnx", Ops()).status().code(), kInvalid);
  const auto text = Parse("# just some text\n", "m.onnx", Ops());
  EXPECT_EQ(text.status().code(), kInvalid);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("at byte"));
}

// Field numbers are 1 to 2^29 - 1 (protobuf, "Encoding").
TEST(Structure, FieldNumbersThatProtobufHasNot) {
  const std::string zero("\x00\x00", 2), beyond("\x80\x80\x80\x80\x10\x00", 6);
  EXPECT_THAT(std::string(Parse(zero, "m.onnx", Ops()).status().message()),
              HasSubstr("found field number 0 at byte 0"));
  EXPECT_THAT(std::string(Parse(beyond, "m.onnx", Ops()).status().message()),
              HasSubstr("found field number 536870912 at byte 0"));
}

}  // namespace
}  // namespace fuselage::onnx
