// Operators that index, repeat, reorder or resize: their forms by opset, shapes that fold, a batch that stays symbolic.
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"

namespace fuselage::onnx {
namespace {

using ::testing::HasSubstr;

void ExpectDeclined(const ModelBuilder& model, const std::string& message,
                    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const auto graph = Import(model);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), code);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr(message));
}

// The targets of the graph's calls.
std::vector<std::string> Calls(const ModelBuilder& model) {
  const auto graph = Import(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> calls;
  for (const ir::Node* node = graph.ok() ? (*graph)->first() : nullptr; node != nullptr; node = node->next()) {
    if (node->is_call()) calls.push_back(node->op()->name);
  }
  return calls;
}

// The output's shape once the symbolic batch of 1 is 3, or the error.
std::string ShapeAtBatch3(const ModelBuilder& model) {
  const auto graph = Import(model);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return "";
  const absl::Status status = (*graph)->SetBatch(3);
  return status.ok() ? ToString((*graph)->output()->operand(0)->tensor_type().shape) : std::string(status.message());
}

// Token ids come in as an input.
TEST(Gather, Embedding) {
  ModelBuilder model = Model(13, {"N", 2}, DType::kI64);
  model.Initializer("table", F32({3, 2}, {0, 1, 2, 3, 4, 5})).Node("Gather", {"table", "x"}, {"y"});
  ExpectOutput(model, {Tensor::Of<int64_t>({1, 2}, {2, -3})}, F32({1, 2, 2}, {4, 5, 0, 1}));
  EXPECT_EQ(ShapeAtBatch3(model), "[3,2,2]");
}

TEST(Gather, OfAConstantRunIsASlice) {
  const Tensor x = F32({1, 3}, {7, 8, 9});
  ModelBuilder one = Model(13, {"N", 3});
  one.Initializer("i", Tensor::Scalar<int64_t>(-1)).Node("Gather", {"x", "i"}, {"y"}).Int("axis", 1);
  ExpectOutput(one, {x}, F32({1}, {9}));
  EXPECT_THAT(Calls(one), ::testing::ElementsAre("slice", "squeeze"));
  ModelBuilder run = Model(13, {"N", 3});
  run.Initializer("i", I64({-2, -1})).Node("Gather", {"x", "i"}, {"y"}).Int("axis", 1);
  ExpectOutput(run, {x}, F32({1, 2}, {8, 9}));
  EXPECT_THAT(Calls(run), ::testing::ElementsAre("slice"));
  for (const auto& [list, wanted] : std::vector<std::pair<std::vector<int64_t>, std::vector<float>>>{
           {{1, 0}, {8, 7}}, {{-1, 0}, {9, 7}}, {{0, 2}, {7, 9}}}) {
    ModelBuilder other = Model(13, {"N", 3});
    other.Initializer("i", I64(list)).Node("Gather", {"x", "i"}, {"y"}).Int("axis", 1);
    ExpectOutput(other, {x}, F32({1, 2}, wanted));
    EXPECT_THAT(Calls(other), ::testing::ElementsAre("index_select"));
  }
  const std::vector<std::pair<Shape, Shape>> shapes = {{{1, 1}, {1, 1, 1}}, {{1, 2}, {1, 1, 2}}, {{2, 1, 1}, {1, 2, 1, 1}}};
  for (const auto& [shape, wanted] : shapes) {
    ModelBuilder more = Model(13, {"N", 3});
    const bool two = shape != Shape{1, 1};
    more.Initializer("i", two ? Tensor::Of<int64_t>(shape, {1, 2}) : Tensor::Of<int64_t>(shape, {1}));
    more.Node("Gather", {"x", "i"}, {"y"}).Int("axis", 1);
    ExpectOutput(more, {x}, two ? F32(wanted, {8, 9}) : F32(wanted, {8}));
    EXPECT_THAT(Calls(more), ::testing::ElementsAre("slice", "unsqueeze"));
  }
  ModelBuilder beyond = Model(13, {1, 3});
  beyond.Initializer("i", I64({3})).Node("Gather", {"x", "i"}, {"y"}).Int("axis", 1);
  const auto graph = Import(beyond);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(std::string(interpreter::Run(**graph, {{x}}).status().message()), HasSubstr("found index 3"));
}

TEST(TopK, AttributeThenInput) {
  const Tensor x = F32({1, 3}, {1, 3, 2});
  ModelBuilder old = Model(9, {1, 3});
  old.Node("TopK", {"x"}, {"y", "i"}).Int("k", 2);
  ExpectOutput(old, {x}, F32({1, 2}, {3, 2}));
  ModelBuilder input(11);
  input.Input("x", {1, 3}).Initializer("k", I64({2})).Node("TopK", {"x", "k"}, {"v", "y"}).Int("largest", 0);
  input.Output("y", DType::kI64);
  ExpectOutput(input, {x}, Tensor::Of<int64_t>({1, 2}, {0, 2}));
  ModelBuilder wrong = Model(11, {1, 3});
  wrong.Node("TopK", {"x"}, {"y", "i"}).Int("k", 2);
  ExpectDeclined(wrong, "wanted k as an attribute before opset 10");
}

TEST(Expand, BroadcastsBothWays) {
  ModelBuilder model = Model(13, {"N", 1, 2});
  model.Initializer("s", I64({3, 1})).Node("Expand", {"x", "s"}, {"y"});
  ExpectOutput(model, {F32({1, 1, 2}, {1, 2})}, F32({1, 3, 2}, {1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(ShapeAtBatch3(model), "[3,3,2]");
  ModelBuilder wrong = Model(13, {2});
  wrong.Initializer("s", I64({3})).Node("Expand", {"x", "s"}, {"y"}, "e");
  ExpectDeclined(wrong, "node 'e' (Expand)");
}

// A target that repeats the input's shape follows the batch; one that stretches to it does not.
TEST(Expand, ToAShapeThatFollowsTheBatch) {
  ModelBuilder own = Model(13, {"N", 1});
  own.Initializer("z", I64({0})).Initializer("o", I64({1})).Initializer("four", I64({4}));
  own.Node("Shape", {"x"}, {"s"}).Node("Slice", {"s", "z", "o"}, {"n"});
  own.Node("Concat", {"n", "four"}, {"t"}).Int("axis", 0).Node("Expand", {"x", "t"}, {"y"});
  EXPECT_EQ(ShapeAtBatch3(own), "[3,4]");
  ModelBuilder token = Model(13, {"N", 2});
  token.Initializer("c", F32({1, 2}, {5, 6})).Node("Shape", {"x"}, {"s"}).Node("Expand", {"c", "s"}, {"y"});
  std::vector<std::string> warnings;
  EXPECT_TRUE(Import(token, &warnings).ok());
  EXPECT_THAT(warnings, ::testing::IsEmpty());
  EXPECT_EQ(ShapeAtBatch3(token), "[3,2]");
}

TEST(Tile, RepeatsAxes) {
  ModelBuilder model = Model(13, {"N", 2});
  model.Initializer("r", I64({1, 2})).Node("Tile", {"x", "r"}, {"y"});
  ExpectOutput(model, {F32({1, 2}, {1, 2})}, F32({1, 4}, {1, 2, 1, 2}));
  EXPECT_EQ(ShapeAtBatch3(model), "[3,4]");
  ModelBuilder batch = Model(13, {2, 1});
  batch.Initializer("r", I64({2, 1})).Node("Tile", {"x", "r"}, {"y"});
  ExpectOutput(batch, {F32({2, 1}, {1, 2})}, F32({4, 1}, {1, 2, 1, 2}));
  ModelBuilder none = Model(13, {2, 1});
  none.Initializer("r", I64({1, 0})).Node("Tile", {"x", "r"}, {"y"});
  ExpectOutput(none, {F32({2, 1}, {1, 2})}, Tensor(DType::kF32, {2, 0}));
  ModelBuilder wrong = Model(13, {2, 3});
  wrong.Initializer("r", I64({1, INT64_MAX})).Node("Tile", {"x", "r"}, {"y"});
  ExpectDeclined(wrong, "wanted a number >= 0 that fits");
}

TEST(DepthToSpace, KeepsTheBatchAndThereAndBack) {
  ModelBuilder model = Model(13, {"N", 8, 2, 3});
  model.Node("DepthToSpace", {"x"}, {"d"}).Int("blocksize", 2).Node("SpaceToDepth", {"d"}, {"y"}).Int("blocksize", 2);
  const Tensor x = Seeded({1, 8, 2, 3}, 1);
  ExpectOutput(model, {x}, x);
  EXPECT_EQ(ShapeAtBatch3(model), "[3,8,2,3]");
  ModelBuilder wrong = Model(13, {1, 6, 2, 2});
  wrong.Node("DepthToSpace", {"x"}, {"y"}).Int("blocksize", 2);
  ExpectDeclined(wrong, "wanted a multiple of 4 channels");
  ModelBuilder zero = Model(13, {1, 6, 2, 2});
  zero.Node("SpaceToDepth", {"x"}, {"y"}).Int("blocksize", 0);
  ExpectDeclined(zero, "attribute 'blocksize': found 0");
}

TEST(CenterCropPad, CropsAndPads) {
  ModelBuilder model = Model(18, {5, 1});
  model.Initializer("s", I64({2, 4})).Node("CenterCropPad", {"x", "s"}, {"y"});
  ExpectOutput(model, {F32({5, 1}, {1, 2, 3, 4, 5})}, F32({2, 4}, {0, 2, 0, 0, 0, 3, 0, 0}));
}

// What follows from shapes is a constant.
TEST(Fold, ShapesAndRanges) {
  ModelBuilder model = Model(13, {2, 3});
  model.Initializer("z", Tensor::Scalar<int64_t>(0)).Initializer("one", Tensor::Scalar<int64_t>(1));
  model.Node("Size", {"x"}, {"n"}).Node("Range", {"z", "n", "one"}, {"y"});
  ExpectOutput(model, {Tensor(DType::kF32, {2, 3})}, I64({0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(Calls(model).empty());
  ModelBuilder eye = Model(13, {2, 3});
  eye.Node("EyeLike", {"x"}, {"e"}).Int("k", 1).Int("dtype", 7).Node("NonZero", {"e"}, {"y"});
  ExpectOutput(eye, {Tensor(DType::kF32, {2, 3})}, Tensor::Of<int64_t>({2, 2}, {0, 1, 1, 2}));
  for (const int64_t k : {INT64_MIN, INT64_MAX}) {
    ModelBuilder beyond = Model(13, {2, 3});
    beyond.Node("EyeLike", {"x"}, {"y"}).Int("k", k);
    ExpectOutput(beyond, {Tensor(DType::kF32, {2, 3})}, Tensor(DType::kF32, {2, 3}));
  }
  ModelBuilder endless = Model(13, {2, 3});
  endless.Initializer("z", Tensor::Scalar<int64_t>(0)).Initializer("one", Tensor::Scalar<int64_t>(1));
  endless.Node("Range", {"z", "one", "z"}, {"y"});
  ExpectDeclined(endless, "wanted a finite one");
}

TEST(Compress, ByAConstantCondition) {
  ModelBuilder model = Model(13, {"N", 3});
  model.Initializer("c", Tensor::Of<bool>({3}, {true, false, true}));
  model.Node("Compress", {"x", "c"}, {"y"}).Int("axis", 1);
  ExpectOutput(model, {F32({1, 3}, {1, 2, 3})}, F32({1, 2}, {1, 3}));
  EXPECT_EQ(ShapeAtBatch3(model), "[3,2]");
}

// --- Resize.

TEST(Resize, ByOpset) {
  const Tensor x = F32({1, 1, 1, 2}, {1, 2}), wanted = F32({1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2});
  const Tensor scales = F32({4}, {1, 1, 2, 2});
  ModelBuilder seven = Model(7, {"N", 1, 1, 2});
  seven.Node("Upsample", {"x"}, {"y"});
  auto* attribute = seven.last_node().add_attribute();
  attribute->set_name("scales");
  attribute->set_type(schema::AttributeProto::FLOATS);
  for (const float scale : scales.values<float>()) attribute->add_floats(scale);
  ModelBuilder nine = Model(9, {"N", 1, 1, 2}), ten = Model(10, {"N", 1, 1, 2}), eleven = Model(11, {"N", 1, 1, 2});
  nine.Initializer("s", scales).Node("Upsample", {"x", "s"}, {"y"});
  ten.Initializer("s", scales).Node("Resize", {"x", "s"}, {"y"});
  eleven.Initializer("s", scales).Initializer("roi", F32({0}, {}));
  eleven.Node("Resize", {"x", "roi", "s"}, {"y"}).String("coordinate_transformation_mode", "asymmetric");
  ModelBuilder eighteen = Model(18, {"N", 1, 1, 2});
  eighteen.Initializer("s", I64({2, 4})).Node("Resize", {"x", "", "", "s"}, {"y"}).Ints("axes", {-2, 3});
  for (const ModelBuilder& model : {seven, nine, ten, eleven, eighteen}) {
    ExpectOutput(model, {x}, wanted);
    EXPECT_EQ(ShapeAtBatch3(model), "[3,1,2,4]");
  }
}

TEST(Resize, ToASizeThatFollowsTheBatch) {
  ModelBuilder model = Model(13, {"N", 1, 1, 2});
  model.Initializer("z", I64({0})).Initializer("two", I64({2})).Initializer("hw", I64({3, 4}));
  model.Node("Shape", {"x"}, {"s"}).Node("Slice", {"s", "z", "two"}, {"nc"});
  model.Node("Concat", {"nc", "hw"}, {"t"}).Int("axis", 0);
  model.Node("Resize", {"x", "", "", "t"}, {"y"}).String("mode", "linear");
  EXPECT_EQ(ShapeAtBatch3(model), "[3,1,3,4]");
}

TEST(Resize, KeepsTheAspectRatio) {
  for (const auto& [policy, wanted] : {std::make_pair("not_larger", Shape{4, 6}), {"not_smaller", {6, 9}}}) {
    ModelBuilder model = Model(19, {2, 3});
    model.Initializer("s", I64({6, 6})).Node("Resize", {"x", "", "", "s"}, {"y"});
    model.String("keep_aspect_ratio_policy", policy);
    const auto graph = Import(model);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ((*graph)->output()->operand(0)->tensor_type().shape, wanted);
  }
}

TEST(Resize, Declines) {
  ModelBuilder both = Model(13, {2, 3});
  both.Initializer("s", I64({6, 6})).Initializer("f", F32({2}, {3, 2})).Node("Resize", {"x", "", "f", "s"}, {"y"});
  ExpectDeclined(both, "found both scales and sizes, wanted one");
  ModelBuilder neither = Model(13, {2, 3});
  neither.Node("Resize", {"x"}, {"y"});
  ExpectDeclined(neither, "found neither scales nor sizes");
  ModelBuilder mode = Model(13, {2, 3});
  mode.Initializer("s", I64({6, 6})).Node("Resize", {"x", "", "", "s"}, {"y"}).String("mode", "area");
  ExpectDeclined(mode, "attribute 'mode': found 'area', wanted one of nearest, linear, cubic");
  for (const float scale : {0.0f, -1.0f, 1e30f}) {
    ModelBuilder scales = Model(13, {2, 3});
    scales.Initializer("f", F32({2}, {1, scale})).Node("Resize", {"x", "", "f"}, {"y"});
    ExpectDeclined(scales, "wanted one > 0 that gives a size below 2^31");
  }
  ModelBuilder computed(13);
  computed.Input("x", {2, 3}).Input("s", {2}, DType::kI64).Node("Resize", {"x", "", "", "s"}, {"y"}, "r").Output("y");
  ExpectDeclined(computed, "node 'r' (Resize): input 3: found the computed value 's', wanted a constant",
                 absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::onnx
