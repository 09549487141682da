// Each operator's forms by opset, and what the conformance data leaves out: signed, per-channel, strided, grouped.
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

using ::testing::HasSubstr;

TEST(Clip, AttributesThenInputs) {
  const Tensor x = F32({3}, {-5, 1, 5}), wanted = F32({3}, {-1, 1, 2});
  ModelBuilder old = Model(6, {3});
  old.Node("Clip", {"x"}, {"y"}).Float("min", -1).Float("max", 2);
  ExpectOutput(old, {x}, wanted);
  ModelBuilder inputs = Model(11, {3});
  inputs.Initializer("lo", Tensor::Scalar(-1.0f)).Initializer("hi", Tensor::Scalar(2.0f));
  inputs.Node("Clip", {"x", "lo", "hi"}, {"y"});
  ExpectOutput(inputs, {x}, wanted);
  ModelBuilder upper = Model(13, {3});
  upper.Initializer("hi", Tensor::Scalar(2.0f)).Node("Clip", {"x", "", "hi"}, {"y"});
  ExpectOutput(upper, {x}, F32({3}, {-5, 1, 2}));
  ModelBuilder wrong = Model(11, {3});
  wrong.Node("Clip", {"x"}, {"y"}, "clip").Float("min", 0);
  ExpectError(wrong, "node 'clip' (Clip): found bounds as attributes, wanted inputs from opset 11 on");
}

TEST(GlobalAveragePool, OfOneAxisIsAMean) {
  for (const auto& [shape, op] : {std::pair(Shape{1, 2, 2}, "mean"), std::pair(Shape{1, 2, 1, 2}, "global_avg_pool")}) {
    ModelBuilder model(13);
    model.Input("x", {shape.begin(), shape.end()}).Node("GlobalAveragePool", {"x"}, {"y"});
    model.Output("y");
    Shape wanted(shape.size(), 1);
    wanted[1] = 2;
    ExpectOutput(model, {F32(shape, {1, 2, 5, -3})}, F32(wanted, {1.5, 1}));
    const auto graph = Import(model);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE((*graph)->output()->operand(0)->IsOp(op));
  }
}

TEST(Squeeze, AttributesThenInputs) {
  const Tensor x = F32({1, 2, 1}, {1, 2});
  for (int opset : {7, 11}) {
    ModelBuilder model = Model(opset, {1, 2, 1});
    model.Node("Squeeze", {"x"}, {"y"}).Ints("axes", {2});
    ExpectOutput(model, {x}, F32({1, 2}, {1, 2}));
  }
  ModelBuilder input = Model(13, {1, 2, 1});
  input.Initializer("a", I64({-1})).Node("Squeeze", {"x", "a"}, {"y"});
  ExpectOutput(input, {x}, F32({1, 2}, {1, 2}));
  ModelBuilder all = Model(13, {1, 2, 1});
  all.Node("Squeeze", {"x"}, {"y"});
  ExpectOutput(all, {x}, F32({2}, {1, 2}));
  ModelBuilder wrong = Model(13, {1, 2, 1});
  wrong.Node("Squeeze", {"x"}, {"y"}).Ints("axes", {2});
  ExpectError(wrong, "found axes as an attribute, wanted an input from opset 13 on");
}

// The output's shape once the symbolic batch of 1 is 3.
Shape ShapeAtBatch3(const ModelBuilder& model) {
  const auto graph = Import(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const absl::Status status = (*graph)->SetBatch(3);
  EXPECT_TRUE(status.ok()) << status;
  return (*graph)->output()->operand(0)->tensor_type().shape;
}

TEST(SymbolicBatch, IsNotSqueezed) {
  ModelBuilder model = Model(13, {"N", 2, 1});
  model.Node("Relu", {"x"}, {"r"}).Node("Squeeze", {"r"}, {"y"});
  ExpectOutput(model, {F32({1, 2, 1}, {1, 2})}, F32({1, 2}, {1, 2}));
  EXPECT_EQ(ShapeAtBatch3(model), (Shape{3, 2}));
  ModelBuilder moved = Model(13, {"N", 2, 1});
  moved.Node("Transpose", {"x"}, {"t"}).Ints("perm", {2, 1, 0}).Node("Squeeze", {"t"}, {"y"});
  EXPECT_EQ(ShapeAtBatch3(moved), (Shape{2, 3}));
  ModelBuilder nothing = Model(13, {"N", 2, 2});
  nothing.Node("Squeeze", {"x"}, {"y"});
  EXPECT_EQ(ShapeAtBatch3(nothing), (Shape{3, 2, 2}));
}

TEST(SymbolicBatch, IsNoPartOfASoftmaxOfManyDimensions) {
  ModelBuilder model = Model(11, {"N", 2, 2});
  model.Node("Softmax", {"x"}, {"y"}).Int("axis", 1);
  EXPECT_EQ(ShapeAtBatch3(model), (Shape{3, 2, 2}));
}

// x.reshape(n * c, h, -1), x.reshape(h, n * c, w): what an exporter makes of sizes.
TEST(SymbolicBatch, GoesThroughTheArithmeticOfShapes) {
  const auto model = [](std::vector<std::string> sizes) {
    ModelBuilder made = Model(13, {"N", 2, 4, 5});
    made.Initializer("i0", Tensor::Scalar<int64_t>(0)).Initializer("i1", Tensor::Scalar<int64_t>(1));
    made.Initializer("rest", I64({-1})).Initializer("four", I64({4})).Initializer("five", I64({5}));
    made.Initializer("first", I64({0}));
    made.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "i0"}, {"n"}).Node("Gather", {"s", "i1"}, {"c"});
    made.Node("Mul", {"n", "c"}, {"nc"}).Node("Unsqueeze", {"nc", "first"}, {"nc1"});
    made.Node("Concat", std::move(sizes), {"shape"}).Int("axis", 0).Node("Reshape", {"x", "shape"}, {"y"});
    return made;
  };
  EXPECT_EQ(ShapeAtBatch3(model({"nc1", "four", "rest"})), (Shape{6, 4, 5}));
  EXPECT_EQ(ShapeAtBatch3(model({"four", "nc1", "five"})), (Shape{4, 6, 5}));
  std::vector<std::string> warnings;
  LoadOptions options;
  options.warnings = &warnings;
  ASSERT_TRUE(Parse(model({"nc1", "nc1", "rest"}).Bytes(), "m.onnx", Ops(), options).ok());
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("tensor 'shape' follows from the batch")));
}

// cat((token.expand(n, -1, -1), x), 1), as ViT has it; the sizes from Shape, by Where as PyTorch writes them.
TEST(SymbolicBatch, ConstantsAreRepeatedForIt) {
  const auto model = [](Shape token, bool new_axis) {
    ModelBuilder made = Model(13, {"N", 2, 3});
    made.Initializer("token", F32(std::move(token), {7, 8, 9}))
        .Initializer("i0", I64({0}))
        .Initializer("keep", I64({-1, -1}));
    made.Initializer("ones", I64({1, 1, 1})).Initializer("none", I64({-1, -1, -1}));
    made.Initializer("known", I64({1, 3})).Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "i0"}, {"n"});
    if (new_axis) {
      made.Node("Concat", {"n", "known"}, {"sizes"}).Int("axis", 0);
    } else {
      made.Node("Concat", {"n", "keep"}, {"wish"}).Int("axis", 0).Node("Equal", {"wish", "none"}, {"any"});
      made.Node("Where", {"any", "ones", "wish"}, {"sizes"});
    }
    made.Node("Expand", {"token", "sizes"}, {"tokens"});
    made.Node("Concat", {"tokens", "x"}, {"y"}).Int("axis", 1);
    return made;
  };
  for (const bool new_axis : {false, true}) {
    const ModelBuilder made = model(new_axis ? Shape{1, 3} : Shape{1, 1, 3}, new_axis);
    ExpectOutput(made, {F32({1, 2, 3}, {1, 2, 3, 4, 5, 6})}, F32({1, 3, 3}, {7, 8, 9, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(ShapeAtBatch3(made), (Shape{3, 3, 3}));
    std::vector<std::string> warnings;
    LoadOptions options;
    options.warnings = &warnings;
    ASSERT_TRUE(Parse(made.Bytes(), "m.onnx", Ops(), options).ok());
    EXPECT_THAT(warnings, ::testing::IsEmpty());
  }
  // Rows that differ follow from the batch, and no expand says so: arange(n).
  ModelBuilder range = Model(13, {"N", 3});
  range.Initializer("i0", I64({0}))
      .Initializer("zero", Tensor::Scalar<int64_t>(0))
      .Initializer("one", Tensor::Scalar<int64_t>(1));
  range.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"}).Node("Range", {"zero", "n", "one"}, {"r"});
  range.Node("Unsqueeze", {"r", "one"}, {"rows"})
      .Node("Cast", {"rows"}, {"f"})
      .Int("to", 1)
      .Node("Add", {"x", "f"}, {"y"});
  std::vector<std::string> warnings;
  LoadOptions options;
  options.warnings = &warnings;
  ASSERT_TRUE(Parse(range.Bytes(), "m.onnx", Ops(), options).ok());
  EXPECT_EQ(warnings.size(), 1u);
}

// Constants that are folded later are others, wherever they come to lie in memory.
TEST(SymbolicBatch, RepeatedConstantsStayApart) {
  ModelBuilder made = Model(13, {"N", 1, 3});
  made.Initializer("token", F32({1, 1, 3}, {7, 8, 9})).Initializer("i0", I64({0})).Initializer("keep", I64({1, 3}));
  made.Node("Shape", {"x"}, {"s"})
      .Node("Gather", {"s", "i0"}, {"n"})
      .Node("Concat", {"n", "keep"}, {"sizes"})
      .Int("axis", 0);
  made.Node("Expand", {"token", "sizes"}, {"tokens"}).Node("Add", {"x", "tokens"}, {"sum0"});
  constexpr int kConstants = 64;
  for (int i = 0; i < kConstants; ++i) {
    const std::string id = absl::StrCat(i), next = i + 1 == kConstants ? "y" : absl::StrCat("sum", i + 1);
    made.Initializer("k" + id, F32({1, 1, 3}, {-1, -2, -3}));
    made.Node("Neg", {"k" + id}, {"c" + id}).Node("Add", {"sum" + id, "c" + id}, {next});
  }
  ExpectOutput(made, {F32({1, 1, 3}, {0, 0, 0})}, F32({1, 1, 3}, {71, 136, 201}));
}

// x.reshape(n * n, -1): what is inferred changes with the batch, too.
TEST(SymbolicBatch, DecidesWhatIsInferred) {
  ModelBuilder model = Model(13, {"N", 2});
  model.Initializer("i0", I64({0})).Initializer("rest", I64({-1}));
  model.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "i0"}, {"n"}).Node("Mul", {"n", "n"}, {"nn"});
  model.Node("Concat", {"nn", "rest"}, {"shape"}).Int("axis", 0).Node("Reshape", {"x", "shape"}, {"y"});
  std::vector<std::string> warnings;
  LoadOptions options;
  options.warnings = &warnings;
  ASSERT_TRUE(Parse(model.Bytes(), "m.onnx", Ops(), options).ok());
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("tensor 'shape' follows from the batch")));
}

TEST(Unsqueeze, AttributesThenInputs) {
  const Tensor x = F32({2}, {1, 2});
  ModelBuilder attribute = Model(11, {2});
  attribute.Node("Unsqueeze", {"x"}, {"y"}).Ints("axes", {-1, 0});
  ExpectOutput(attribute, {x}, F32({1, 2, 1}, {1, 2}));
  ModelBuilder input = Model(21, {2});
  input.Initializer("a", I64({2, 0})).Node("Unsqueeze", {"x", "a"}, {"y"});
  ExpectOutput(input, {x}, F32({1, 2, 1}, {1, 2}));
  ModelBuilder twice = Model(11, {2});
  twice.Node("Unsqueeze", {"x"}, {"y"}).Ints("axes", {0, -3});
  ExpectError(twice, "wanted each once");
}

TEST(ReduceMean, AttributesThenInputs) {
  const Tensor x = F32({2, 2}, {1, 3, 5, 9});
  ModelBuilder attribute = Model(13, {2, 2});
  attribute.Node("ReduceMean", {"x"}, {"y"}).Ints("axes", {1}).Int("keepdims", 0);
  ExpectOutput(attribute, {x}, F32({2}, {2, 7}));
  ModelBuilder input = Model(18, {2, 2});
  input.Initializer("a", I64({0})).Node("ReduceMean", {"x", "a"}, {"y"});
  ExpectOutput(input, {x}, F32({1, 2}, {3, 6}));
  ModelBuilder all = Model(18, {2, 2});
  all.Node("ReduceMean", {"x"}, {"y"});
  ExpectOutput(all, {x}, F32({1, 1}, {4.5}));
  ModelBuilder none = Model(18, {2, 2});
  none.Node("ReduceMean", {"x"}, {"y"}).Int("noop_with_empty_axes", 1);
  ExpectOutput(none, {x}, x);
}

TEST(Slice, AttributesThenInputs) {
  const Tensor x = F32({4}, {0, 1, 2, 3});
  ModelBuilder attribute = Model(9, {4});
  attribute.Node("Slice", {"x"}, {"y"}).Ints("starts", {1}).Ints("ends", {INT64_MAX});
  ExpectOutput(attribute, {x}, F32({3}, {1, 2, 3}));
  ModelBuilder input = Model(13, {4});
  input.Initializer("s", I64({-1})).Initializer("e", I64({INT64_MIN})).Initializer("a", I64({0}));
  input.Initializer("t", I64({-2})).Node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
  ExpectOutput(input, {x}, F32({2}, {3, 1}));
}

TEST(Split, SizesByOpset) {
  const Tensor x = F32({5}, {0, 1, 2, 3, 4});
  ModelBuilder attribute = Model(11, {5});
  attribute.Node("Split", {"x"}, {"y", "z"}).Ints("split", {2, 3}).Output("z");
  EXPECT_EQ(ToDoubles(Outputs(attribute, {x})[1]), (std::vector<double>{2, 3, 4}));
  ModelBuilder input = Model(13, {5});
  input.Initializer("s", I64({1, 4})).Node("Split", {"x", "s"}, {"y", "z"}).Output("z");
  EXPECT_EQ(ToDoubles(Outputs(input, {x})[1]), (std::vector<double>{1, 2, 3, 4}));
  ModelBuilder count = Model(18, {5});
  count.Node("Split", {"x"}, {"y", "z"}).Int("num_outputs", 2).Output("z");
  EXPECT_EQ(ToDoubles(Outputs(count, {x})[1]), (std::vector<double>{3, 4}));
  ModelBuilder unequal = Model(13, {5});
  unequal.Node("Split", {"x"}, {"y", "z"}, "s");
  ExpectError(unequal, "node 's' (Split): found 2 outputs, wanted a divisor of the dimension 5");
}

TEST(Pad, AttributesThenInputsThenAxes) {
  const Tensor x = F32({1, 2}, {1, 2}), wanted = F32({1, 4}, {7, 1, 2, 7});
  ModelBuilder attribute = Model(7, {1, 2});
  attribute.Node("Pad", {"x"}, {"y"}).Ints("pads", {0, 1, 0, 1}).Float("value", 7);
  ExpectOutput(attribute, {x}, wanted);
  ModelBuilder input = Model(13, {1, 2});
  input.Initializer("p", I64({0, 1, 0, 1})).Initializer("v", Tensor::Scalar(7.0f));
  input.Node("Pad", {"x", "p", "v"}, {"y"});
  ExpectOutput(input, {x}, wanted);
  ModelBuilder axes = Model(18, {1, 2});
  axes.Initializer("p", I64({1, 1})).Initializer("v", Tensor::Scalar(7.0f)).Initializer("a", I64({-1}));
  axes.Node("Pad", {"x", "p", "v", "a"}, {"y"});
  ExpectOutput(axes, {x}, wanted);
}

TEST(Softmax, FlattensBeforeOpset13) {
  const Tensor x = F32({1, 2, 2}, {0, 0, 0, 0});
  ModelBuilder old = Model(11, {1, 2, 2});
  old.Node("Softmax", {"x"}, {"y"});
  ExpectOutput(old, {x}, F32({1, 2, 2}, {0.25, 0.25, 0.25, 0.25}));
  ModelBuilder now = Model(13, {1, 2, 2});
  now.Node("Softmax", {"x"}, {"y"});
  ExpectOutput(now, {x}, F32({1, 2, 2}, {0.5, 0.5, 0.5, 0.5}));
  ModelBuilder nothing = Model(11, {2, 0, 3, 4});
  nothing.Node("Softmax", {"x"}, {"y"}).Int("axis", 2);
  ExpectOutput(nothing, {F32({2, 0, 3, 4}, {})}, F32({2, 0, 3, 4}, {}));
}

TEST(Dropout, IsInference) {
  const Tensor x = F32({2}, {1, 2});
  ModelBuilder attribute = Model(7, {2});
  attribute.Node("Dropout", {"x"}, {"y", "mask"}).Float("ratio", 0.9f).Output("mask");
  EXPECT_EQ(ToDoubles(Outputs(attribute, {x})[1]), (std::vector<double>{1, 1}));
  ModelBuilder training = Model(13, {2});
  training.Initializer("r", Tensor::Scalar(0.5f)).Initializer("t", Tensor::Scalar(true));
  training.Node("Dropout", {"x", "r", "t"}, {"y"}, "drop");
  ExpectError(training, "node 'drop' (Dropout): found training_mode = true");
}

TEST(BatchNormalization, OnlyInference) {
  const auto model = [](int opset, const char* attribute, int value) {
    ModelBuilder made(opset);
    made.Input("x", {1, 1, 1, 1}).Output("y");
    made.Initializer("one", F32({1}, {2})).Initializer("var", F32({1}, {3}));
    made.Node("BatchNormalization", {"x", "one", "one", "one", "var"}, {"y"}, "bn").Float("epsilon", 1);
    made.Int(attribute, value);
    return made;
  };
  ExpectOutput(model(7, "spatial", 1), {F32({1, 1, 1, 1}, {6})}, F32({1, 1, 1, 1}, {6}));  // (6-2)/sqrt(3+1)*2+2
  ExpectError(model(7, "spatial", 0), "found spatial = 0");
  ExpectError(model(15, "training_mode", 1), "found training_mode = 1");
  ModelBuilder outputs = model(9, "spatial", 1);
  outputs.last_node().add_output("");
  ExpectOutput(outputs, {F32({1, 1, 1, 1}, {6})}, F32({1, 1, 1, 1}, {6}));
  outputs.last_node().add_output("running");
  ExpectError(outputs, "node 'bn' (BatchNormalization): found 2 outputs, which before opset 14 says training");
}

// PyTorch's function of that name with training=True, on a constant.
TEST(BatchNormalization, StandardizesWeights) {
  ModelBuilder model = Model(13, {1, 2, 2});
  model.Initializer("w", F32({1, 2, 2}, {1, 3, 7, 5})).Initializer("s", F32({2}, {2, 4}));
  model.Initializer("b", F32({2}, {0, 1})).Initializer("m", F32({2}, {0, 0})).Initializer("v", F32({2}, {1, 1}));
  model.Node("BatchNormalization", {"w", "s", "b", "m", "v"}, {"z", "m1", "v1", "m2", "v2"}).Float("epsilon", 3);
  model.Node("Add", {"x", "z"}, {"y"});
  ExpectOutput(model, {Tensor(DType::kF32, {1, 2, 2})}, F32({1, 2, 2}, {-1, 1, 3, -1}));
}

TEST(Gemm, AFullyConnectedLayerIsLinear) {
  ModelBuilder model = Model(13, {1, 2});
  model.Initializer("w", F32({2, 3}, {1, 2, 3, 4, 5, 6})).Initializer("b", F32({1, 3}, {10, 20, 30}));
  model.Node("Gemm", {"x", "w", "b"}, {"y"}, "fc");
  EXPECT_EQ((*Import(model))->FindNodeOrNull("fc")->target(), "linear");
  ExpectOutput(model, {F32({1, 2}, {1, 1})}, F32({1, 3}, {15, 27, 39}));
  ModelBuilder scaled = Model(13, {1, 2});
  scaled.Initializer("w", F32({2, 1}, {1, 2})).Node("Gemm", {"x", "w"}, {"y"}, "fc").Float("alpha", 2);
  EXPECT_EQ((*Import(scaled))->FindNodeOrNull("fc")->target(), "gemm");
  ExpectOutput(scaled, {F32({1, 2}, {1, 1})}, F32({1, 1}, {6}));
}

TEST(Conv, AutoPadGroupsAndRanks) {
  const auto shape_of = [](std::vector<Dim> dims, Shape weight, const std::string& auto_pad, int group) {
    ModelBuilder model = Model(11, std::move(dims));
    model.Initializer("w", Seeded(weight, 1)).Node("Conv", {"x", "w"}, {"y"}, "c");
    model.Ints("strides", std::vector<int64_t>(weight.size() - 2, 2)).String("auto_pad", auto_pad).Int("group", group);
    const auto graph = Import(model);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? (*graph)->FindNodeOrNull("c")->tensor_type().shape : Shape();
  };
  EXPECT_EQ(shape_of({1, 4, 7, 8}, {6, 2, 3, 3}, "SAME_UPPER", 2), (Shape{1, 6, 4, 4}));
  EXPECT_EQ(shape_of({1, 4, 7, 8}, {4, 1, 3, 3}, "SAME_LOWER", 4), (Shape{1, 4, 4, 4}));
  EXPECT_EQ(shape_of({1, 4, 7}, {2, 4, 3}, "VALID", 1), (Shape{1, 2, 3}));
  EXPECT_EQ(shape_of({1, 1, 5, 5, 5}, {1, 1, 3, 3, 3}, "SAME_UPPER", 1), (Shape{1, 1, 3, 3, 3}));
  ModelBuilder both = Model(11, {1, 1, 4, 4});
  both.Initializer("w", F32({1, 1, 1, 1}, {1})).Node("Conv", {"x", "w"}, {"y"}, "c");
  both.String("auto_pad", "VALID").Ints("pads", {1, 1, 1, 1});
  ExpectError(both, "found auto_pad VALID beside pads [1,1,1,1]");
}

TEST(Identity, OfAWeightIsTheSameParameter) {
  ModelBuilder model = Model(13, {2});
  model.Initializer("w", F32({2}, {1, 2})).Node("Identity", {"w"}, {"tied"}).Node("Add", {"x", "w"}, {"s"});
  model.Node("Mul", {"s", "tied"}, {"y"});
  EXPECT_EQ((*Import(model))->parameters().size(), 1);
  ExpectOutput(model, {F32({2}, {3, 4})}, F32({2}, {4, 12}));
}

// The odd cell of SAME padding: behind (UPPER) or in front (LOWER).
TEST(Conv, SameUpperAndLower) {
  for (const char* auto_pad : {"SAME_UPPER", "SAME_LOWER"}) {
    ModelBuilder model = Model(11, {1, 1, 3});
    model.Initializer("w", F32({1, 1, 2}, {1, 10})).Node("Conv", {"x", "w"}, {"y"}).String("auto_pad", auto_pad);
    const bool upper = std::string(auto_pad) == "SAME_UPPER";
    ExpectOutput(model, {F32({1, 1, 3}, {1, 2, 3})},
                 F32({1, 1, 3}, upper ? std::vector<float>{21, 32, 3} : std::vector<float>{10, 21, 32}));
  }
}

TEST(ConvTranspose, OutputShapeSetsThePads) {
  ModelBuilder model = Model(11, {1, 1, 3});
  model.Initializer("w", F32({1, 1, 3}, {1, 1, 1})).Node("ConvTranspose", {"x", "w"}, {"y"});
  model.Ints("strides", {2}).Ints("output_shape", {6}).String("auto_pad", "SAME_UPPER");
  // Whole: 1 1 3 2 5 3 3 (7 cells); one too many, cut at the end.
  ExpectOutput(model, {F32({1, 1, 3}, {1, 2, 3})}, F32({1, 1, 6}, {1, 1, 3, 2, 5, 3}));
}

// Signed codes, per-channel weights, a bias, stride and groups: against the same arithmetic by hand.
TEST(QLinearConv, SignedPerChannel) {
  ModelBuilder model(13);
  model.Input("x", {1, 2, 2, 2}, DType::kI8).Output("y", DType::kI8);
  model.Initializer("xs", Tensor::Scalar(0.5f)).Initializer("xz", Tensor::Scalar<int8_t>(-2));
  model.Initializer("w", Tensor::Of<int8_t>({2, 1, 1, 1}, {3, -5}));
  model.Initializer("ws", F32({2}, {0.25, 0.125})).Initializer("wz", Tensor::Of<int8_t>({2}, {1, 0}));
  model.Initializer("ys", Tensor::Scalar(1.0f)).Initializer("yz", Tensor::Scalar<int8_t>(4));
  model.Initializer("b", Tensor::Of<int32_t>({2}, {8, -16}));
  model.Node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, {"y"}, "qconv");
  model.Int("group", 2).Ints("strides", {2, 2});
  // Channel 0: (10+2)*0.5 * (3-1)*0.25 + 8*0.125 = 4, code 8.
  // Channel 1: (6+2)*0.5 * -5*0.125 - 16*0.0625 = -3.5, half to even -4, code 0.
  const Tensor x = Tensor::Of<int8_t>({1, 2, 2, 2}, {10, 0, 0, 0, 6, 0, 0, 0});
  Tensor wanted = Tensor::Of<int8_t>({1, 2, 1, 1}, {8, 0});
  wanted.set_type({DType::kI8, {1, 2, 1, 1}, PerTensor(1, 4), Layout::kRowMajor});
  ExpectOutput(model, {x}, wanted);
  const auto graph = Import(model);
  const ir::Node* conv = (*graph)->FindNodeOrNull("qconv.conv");
  ASSERT_NE(conv, nullptr);
  ASSERT_TRUE(conv->operand(1)->IsOp("dequantize"));
  EXPECT_EQ(conv->operand(1)->operand(0)->tensor_type().quant->scales, (std::vector<float>{0.25, 0.125}));
  EXPECT_EQ(conv->operand(2)->operand(0)->tensor_type().quant->scales, (std::vector<float>{0.125, 0.0625}));
  *model.graph().mutable_initializer(0) = ToProto("xs", F32({2}, {0.5, 0.25}));
  ExpectError(model, "node 'qconv' (QLinearConv): found x_scale f32[2], wanted a scalar");
}

TEST(DequantizeLinear, OfAWeightIsAParameterWithQuantParams) {
  ModelBuilder model = Model(13, {1, 1, 2, 2});
  model.Initializer("w", Tensor::Of<int8_t>({2, 1, 1, 1}, {3, -5})).Initializer("s", F32({2}, {0.5, 2}));
  model.Initializer("z", Tensor::Of<int8_t>({2}, {0, 0}));
  model.Node("DequantizeLinear", {"w", "s", "z"}, {"wf"}, "dq").Int("axis", 0).Node("Conv", {"x", "wf"}, {"y"}, "c");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const ir::Node* dequantize = (*graph)->FindNodeOrNull("c")->operand(1);
  EXPECT_TRUE(dequantize->IsOp("dequantize"));
  EXPECT_TRUE(dequantize->attributes().empty());
  EXPECT_EQ(dequantize->num_operands(), 1);
  EXPECT_EQ(dequantize->operand(0)->tensor_type().quant, PerAxis(0, {0.5, 2}));
  EXPECT_EQ((*graph)->parameters().size(), 1);
}

TEST(DequantizeLinear, Blocks) {
  ModelBuilder model(21);
  model.Output("y").Initializer("w", Tensor::Of<int8_t>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  model.Initializer("s", F32({2, 2}, {1, 10, 0.5, 2})).Initializer("z", Tensor::Of<int8_t>({2, 2}, {1, 0, 5, 6}));
  model.Node("DequantizeLinear", {"w", "s", "z"}, {"y"}, "dq").Int("axis", 1).Int("block_size", 2);
  ExpectOutput(model, {}, F32({2, 4}, {0, 1, 30, 40, 0, 0.5, 2, 4}));
  model.last_node().mutable_attribute(1)->set_i(3);
  ExpectError(model, "node 'dq' (DequantizeLinear): attribute 'block_size': found 3, wanted a divisor of 4");
  model.last_node().mutable_attribute(1)->set_i(4);
  ExpectError(model, "found scales f32[2,2] and zero points i8[2,2], wanted shape [2,1]");
}

// Types that the IR lacks: packed int4 weights, and float8 values that a scale multiplies.
TEST(DequantizeLinear, NarrowTypes) {
  const auto model = [](int type, Shape shape, const std::string& bytes, const Tensor& scale) {
    ModelBuilder made(21);
    made.Output("y").Initializer("s", scale);
    auto* codes = made.graph().add_initializer();
    codes->set_name("w");
    codes->set_data_type(type);
    for (int64_t dim : shape) codes->add_dims(dim);
    codes->set_raw_data(bytes);
    made.Node("DequantizeLinear", {"w", "s"}, {"y"}, "dq").Int("axis", 0);
    return made;
  };
  ExpectOutput(model(22, {3}, std::string("\xf1\x08", 2), Tensor::Scalar(0.5f)), {}, F32({3}, {0.5, -0.5, -4}));
  ExpectOutput(model(17, {2, 1}, "\x38\xb8", F32({2}, {3, 5})), {}, F32({2, 1}, {3, -5}));
  ModelBuilder quantize = Model(21, {2});
  quantize.Initializer("s", Tensor::Scalar(0.5f)).Node("QuantizeLinear", {"x", "s", "z"}, {"y"}, "q");
  auto* zero_point = quantize.graph().add_initializer();
  zero_point->set_name("z");
  zero_point->set_data_type(22);
  zero_point->set_raw_data(std::string(1, 0));
  ExpectError(quantize, "node 'q' (QuantizeLinear): input 2 'z': found a zero point of a type that is read as i8[]");
}

// The codes of symmetric weights are signed, whichever way the file has them.
TEST(DequantizeLinear, UnsignedCodesAround128) {
  ModelBuilder model = Model(13, {1, 2});
  model.Initializer("w", Tensor::Of<uint8_t>({2, 2}, {0, 255, 128, 130}));
  model.Initializer("s", F32({2}, {0.5, 2})).Initializer("z", Tensor::Of<uint8_t>({2}, {128, 128}));
  model.Node("DequantizeLinear", {"w", "s", "z"}, {"wf"}, "dq").Int("axis", 0).Node("Gemm", {"x", "wf"}, {"y"}, "fc");
  model.Int("transB", 1);
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const TensorType& codes = (*graph)->FindNodeOrNull("fc")->operand(1)->operand(0)->tensor_type();
  EXPECT_EQ(codes.dtype, DType::kI8);
  EXPECT_EQ(codes.quant, PerAxis(0, {0.5, 2}));
  ExpectOutput(model, {F32({1, 2}, {1, 10})}, F32({1, 2}, {-64 + 635, 40}));
}

// ONNX knows integers where the IR has codes with their scale: constants are codes beside others, casts of codes
// integers.
TEST(QuantizeLinear, CodesAreIntegersToo) {
  ModelBuilder model(13);
  model.Input("x", {2}).Output("y").Output("n", DType::kI32);
  model.Initializer("s", Tensor::Scalar(0.5f)).Initializer("z", Tensor::Scalar<int8_t>(-3));
  model.Initializer("first", Tensor::Of<int8_t>({1}, {7}));
  model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"}).Node("Cast", {"q"}, {"n"}).Int("to", 6);
  model.Node("Concat", {"first", "q"}, {"all"}).Int("axis", 0).Node("DequantizeLinear", {"all", "s", "z"}, {"y"});
  const std::vector<Tensor> found = Outputs(model, {F32({2}, {1, -40})});
  EXPECT_EQ(found[0].values<float>(), (std::vector<float>{5, 1, -40}));
  EXPECT_EQ(found[1].values<int32_t>(), (std::vector<int32_t>{-1, -83}));
}

TEST(QuantizeLinear, ThenDequantizeRepeatsNoParameters) {
  ModelBuilder model = Model(13, {2});
  model.Initializer("s", Tensor::Scalar(0.5f)).Initializer("z", Tensor::Scalar<uint8_t>(7));
  model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"}, "q").Node("DequantizeLinear", {"q", "s", "z"}, {"y"}, "d");
  const auto graph = Import(model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->FindNodeOrNull("d")->attributes().empty());
  ExpectOutput(model, {F32({2}, {1.25, -100})}, F32({2}, {1, -3.5}));
}

// Zero points by row of a and by column of b.
TEST(MatMulInteger, PerRowAndPerColumn) {
  ModelBuilder model(13);
  model.Input("x", {2, 2}, DType::kU8).Output("y", DType::kI32);
  model.Initializer("b", Tensor::Of<int8_t>({2, 2}, {1, 2, 3, 4}));
  model.Initializer("az", Tensor::Of<uint8_t>({2}, {1, 10})).Initializer("bz", Tensor::Of<int8_t>({2}, {1, 2}));
  model.Node("MatMulInteger", {"x", "b", "az", "bz"}, {"y"});
  // a - az = [[0, 1], [-7, -6]]; b - bz = [[0, 0], [2, 2]].
  ExpectOutput(model, {Tensor::Of<uint8_t>({2, 2}, {1, 2, 3, 4})}, Tensor::Of<int32_t>({2, 2}, {2, 2, -12, -12}));
}

TEST(ConvInteger, WeightZeroPointPerChannel) {
  ModelBuilder model(13);
  model.Input("x", {1, 1, 1, 1}, DType::kU8).Output("y", DType::kI32);
  model.Initializer("w", Tensor::Of<uint8_t>({2, 1, 1, 1}, {10, 20})).Initializer("xz", Tensor::Scalar<uint8_t>(3));
  model.Initializer("wz", Tensor::Of<uint8_t>({2}, {4, 30})).Node("ConvInteger", {"x", "w", "xz", "wz"}, {"y"});
  ExpectOutput(model, {Tensor::Of<uint8_t>({1, 1, 1, 1}, {5})}, Tensor::Of<int32_t>({1, 2, 1, 1}, {12, -20}));
}

// y = x + 10 y, whatever comes first: steps or sequences.
TEST(Recurrent, LayoutsAndActivations) {
  for (const int layout : {0, 1}) {
    ModelBuilder model = Model(14, layout == 0 ? std::vector<Dim>{3, 2, 1} : std::vector<Dim>{2, 3, 1});
    model.Initializer("w", F32({1, 1, 1}, {1})).Initializer("r", F32({1, 1, 1}, {10}));
    model.Initializer("h", F32(layout == 0 ? Shape{1, 2, 1} : Shape{2, 1, 1}, {0, 1}));
    model.Node("RNN", {"x", "w", "r", "", "", "h"}, {"y", "last"}, "rnn").Output("last").Int("layout", layout);
    model.Int("hidden_size", 1).Strings("activations", {"affine"}).Floats("activation_alpha", {2});
    const Tensor x = layout == 0 ? F32({3, 2, 1}, {1, 4, 2, 5, 3, 6}) : F32({2, 3, 1}, {1, 2, 3, 4, 5, 6});
    const std::vector<Tensor> found = Outputs(model, {x});
    ASSERT_EQ(found.size(), 2);
    EXPECT_EQ(found[0].shape(), layout == 0 ? (Shape{3, 1, 2, 1}) : (Shape{2, 3, 1, 1}));
    // Doubled in each step: 2, 2*(2 + 20), 2*(3 + 440); 2*(4 + 10), 2*(5 + 280), 2*(6 + 5700).
    EXPECT_EQ(ToDoubles(found[0]), layout == 0 ? (std::vector<double>{2, 28, 44, 570, 886, 11412})
                                               : (std::vector<double>{2, 44, 886, 28, 570, 11412}));
    EXPECT_EQ(found[1].shape(), layout == 0 ? (Shape{1, 2, 1}) : (Shape{2, 1, 1}));
    EXPECT_EQ(ToDoubles(found[1]), (std::vector<double>{886, 11412}));
    model.last_node().mutable_attribute(0)->set_i(1 - layout);
    EXPECT_FALSE(Import(model).ok());
  }
}

TEST(Recurrent, WhatIsDeclined) {
  const auto model = [] {
    ModelBuilder made = Model(14, {3, 2, 1});
    made.Initializer("w", F32({1, 1, 1}, {1})).Initializer("r", F32({1, 1, 1}, {10}));
    made.Node("RNN", {"x", "w", "r"}, {"y"}, "rnn");
    return made;
  };
  ExpectError(model().Strings("activations", {"Softplus"}),
              "node 'rnn' (RNN): attribute 'activations': found 'Softplus', wanted Affine");
  ExpectError(model().Int("hidden_size", 2), "found hidden_size 2 and weights f32[1,1,1]");
  ExpectError(model().Strings("activations", {"Tanh"}).Floats("activation_alpha", {1}),
              "found 1 activation_alpha and 0 activation_beta, wanted 0 and 0");
}

TEST(Reshape, ByConstantTarget) {
  ModelBuilder model = Model(14, {2, 0});
  model.Initializer("s", I64({0, 3})).Node("Reshape", {"x", "s"}, {"y"}).Int("allowzero", 1);
  ExpectOutput(model, {Tensor(DType::kF32, {2, 0})}, Tensor(DType::kF32, {0, 3}));
  ModelBuilder wrong = Model(14, {2, 3});
  wrong.Initializer("s", I64({4, 2})).Node("Reshape", {"x", "s"}, {"y"}, "r");
  ExpectError(wrong, "node 'r' (Reshape): ");
}

TEST(Constants, GatherShapeAndConstantOfShape) {
  ModelBuilder model = Model(15, {2, 3, 5});
  model.Node("Shape", {"x"}, {"s"}).Int("start", -2).Node("ConstantOfShape", {"s"}, {"c"});
  model.Value("value", Tensor::Of<int32_t>({1}, {9})).Initializer("i", Tensor::Of<int64_t>({1, 2}, {-1, 0}));
  model.Node("Gather", {"c", "i"}, {"y"}).Int("axis", 1);
  ExpectOutput(model, {Tensor(DType::kF32, {2, 3, 5})}, Tensor::Of<int32_t>({3, 1, 2}, {9, 9, 9, 9, 9, 9}));
  ModelBuilder range(13);
  range.Initializer("d", I64({1, 2})).Initializer("i", I64({2})).Node("Gather", {"d", "i"}, {"y"}, "g").Output("y");
  ExpectError(range, "node 'g' (Gather): index_select: found index 2, wanted one in [-2, 2)");
}

}  // namespace
}  // namespace fuselage::onnx
