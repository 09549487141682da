// What the inputs of a file become: their shapes, and constants in their places.
#include <string>
#include <vector>

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<ir::Graph>> ImportWith(const ModelBuilder& model, const LoadOptions& options) {
  return Parse(model.Bytes(), "m.onnx", Ops(), options);
}

// Of the input with this index; a graph that does not load fails the test.
Shape ShapeOf(const ModelBuilder& model, const LoadOptions& options, int input) {
  const auto graph = ImportWith(model, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? (*graph)->placeholders()[input]->tensor_type().shape : Shape{};
}

TEST(Shapes, ASymbolicBatchIsOneAndOthersAreAsked) {
  ModelBuilder model;
  model.Input("image", {"N", 3, "H", "W"}).Node("Relu", {"image"}, {"y"}).Output("y");
  const auto unbound = ImportWith(model, {});
  ASSERT_FALSE(unbound.ok());
  EXPECT_TRUE(IsUsageError(unbound.status()));
  EXPECT_THAT(std::string(unbound.status().message()), HasSubstr("image:1,3,<H>,<W>"));

  LoadOptions options;
  options.shapes["image"] = {2, 3, 5, 6};
  EXPECT_EQ(ShapeOf(model, options, 0), (Shape{2, 3, 5, 6}));

  options.shapes["image"] = {2, 3, 5};
  const auto shorter = ImportWith(model, options);
  EXPECT_TRUE(IsUsageError(shorter.status()));
  EXPECT_THAT(std::string(shorter.status().message()), HasSubstr("wanted one of as many dimensions as [N,3,H,W]"));
  options.shapes = {{"imge", {1}}};
  const auto misspelt = ImportWith(model, options);
  EXPECT_TRUE(IsUsageError(misspelt.status()));
  EXPECT_THAT(std::string(misspelt.status().message()), HasSubstr("wanted one of the inputs 'image'"));
}

// An exporter fixes what its example had.
TEST(Shapes, AGivenShapeReplacesWhatTheFileFixes) {
  ModelBuilder model;
  model.Input("x", {10, 3, 32}).Node("Relu", {"x"}, {"y"}).Output("y", {10, 3, 32}, DType::kF32);
  LoadOptions options;
  options.shapes["x"] = {1, 4, 48};
  EXPECT_EQ(ShapeOf(model, options, 0), (Shape{1, 4, 48}));
}

TEST(Shapes, ASymbolIsOneDimensionWhereNoShapeIsGiven) {
  ModelBuilder model;
  model.Input("a", {"N", "L"}).Input("b", {"N", "L"}).Node("Add", {"a", "b"}, {"y"}).Output("y");
  LoadOptions options;
  options.shapes["a"] = {4, 7};
  EXPECT_EQ(ShapeOf(model, options, 1), (Shape{4, 7}));
  options.shapes["b"] = {4, 1};
  EXPECT_EQ(ShapeOf(model, options, 1), (Shape{4, 1}));
  model.Input("c", {"N", "L"}).Node("Add", {"y", "c"}, {"z"});
  const auto unknown = ImportWith(model, options);
  EXPECT_TRUE(IsUsageError(unknown.status()));
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("c:4,<L>"));
}

// Eight sequences of 7; one dimension is left open, which their own shapes say.
TEST(Shapes, SamplesSayWhatIsLeftOpen) {
  ModelBuilder model;
  model.Input("a", {"N", "L", "?"}).Input("b", {"N", "L", 3}).Node("Add", {"a", "b"}, {"y"}).Output("y");
  LoadOptions options;
  options.sample_shapes = {{"a", {8, 7, 3}}, {"b", {8, 7, 3}}};
  EXPECT_EQ(ShapeOf(model, options, 0), (Shape{1, 7, 3}));
  EXPECT_EQ(ShapeOf(model, options, 1), (Shape{1, 7, 3}));
  // A given shape comes first.
  options.shapes["a"] = {2, 5, 3};
  EXPECT_EQ(ShapeOf(model, options, 1), (Shape{2, 5, 3}));
  options.shapes.clear();
  // Eight whole inputs of two sequences each.
  options.sample_shapes = {{"a", {8, 2, 7, 3}}, {"b", {8, 2, 7, 3}}};
  EXPECT_EQ(ShapeOf(model, options, 0), (Shape{2, 7, 3}));
  options.sample_shapes = {{"a", {8, 7}}, {"b", {8, 7, 3}}};
  EXPECT_THAT(std::string(ImportWith(model, options).status().message()), HasSubstr("a:1,<L>,<?>"));
}

// PaddlePaddle's name for any dimension that it does not know.
TEST(Shapes, AQuestionMarkIsAnyDimension) {
  ModelBuilder model;
  model.Input("x", {"?", 3, "?", "?"}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(std::string(ImportWith(model, {}).status().message()), HasSubstr("x:1,3,<?>,<?>"));
  LoadOptions options;
  options.shapes["x"] = {2, 3, 48, 192};
  EXPECT_EQ(ShapeOf(model, options, 0), (Shape{2, 3, 48, 192}));
}

TEST(Shapes, ParseShape) {
  const auto flag = ParseShape("a:b:1,3,224,224");
  ASSERT_TRUE(flag.ok());
  EXPECT_EQ(flag->first, "a:b");
  EXPECT_EQ(flag->second, (Shape{1, 3, 224, 224}));
  EXPECT_EQ(ParseShape("scalar:")->second, Shape{});
  for (const char* bad : {"", "x", ":1", "x:1,", "x:-1", "x:1,y", "x:99999999999999999999"}) {
    EXPECT_TRUE(IsUsageError(ParseShape(bad).status())) << bad;
  }
}

// As TensorFlow's converters write them.
TEST(Shapes, MinusOneIsOpen) {
  ModelBuilder model;
  model.Input("x", {-1, 3, -1}).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto unbound = ImportWith(model, {});
  EXPECT_TRUE(IsUsageError(unbound.status()));
  EXPECT_THAT(std::string(unbound.status().message()), HasSubstr("x:1,3,<?>"));
  LoadOptions options;
  options.shapes["x"] = {2, 3, 7};
  EXPECT_EQ(ShapeOf(model, options, 0), (Shape{2, 3, 7}));
}

TEST(Constants, ParseConstant) {
  const auto rate = ParseConstant("a:b:16000");
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->first, "a:b");
  EXPECT_TRUE(rate->second.SameBytes(Tensor::Of<double>({1}, {16000})));
  EXPECT_TRUE(ParseConstant("x:-1,2.5")->second.SameBytes(Tensor::Of<double>({2}, {-1, 2.5})));
  for (const char* bad : {"", "x", "x:", ":1", "x:1,", "x:y"}) {
    EXPECT_TRUE(IsUsageError(ParseConstant(bad).status())) << bad;
  }
}

// Numbers become the input's type and shape.
TEST(Constants, TakeAnInputsPlace) {
  ModelBuilder model;
  model.Input("x", {2}).Input("rate", {}, DType::kI64).Input("scales", {1, 2}).Input("any", {"n"}, DType::kI64);
  model.Node("Cast", {"rate"}, {"r"}).Int("to", 1).Node("Mul", {"x", "r"}, {"a"}).Node("Mul", {"a", "scales"}, {"b"});
  model.Node("Reshape", {"b", "any"}, {"y"}).Output("y");
  const auto import = [&](const std::vector<std::string>& texts) {
    LoadOptions options;
    for (const std::string& text : texts) options.constants.insert(*ParseConstant(text));
    return ImportWith(model, options);
  };
  const auto graph = import({"rate:3", "scales:1,2", "any:2,1"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ((*graph)->placeholders().size(), 1);
  const auto found = interpreter::Run(**graph, std::vector<Tensor>{Tensor::Of<float>({2}, {1, 10})});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE((*found)[0].SameBytes(Tensor::Of<float>({2, 1}, {3, 60})));

  const auto error = [&](const std::string& text) {
    const absl::Status status = import({text}).status();
    EXPECT_TRUE(IsUsageError(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error("rate:0.5"), HasSubstr("input 'rate': found the value 0.5, wanted one of type i64"));
  EXPECT_THAT(error("rate:1,2"), HasSubstr("input 'rate': found 2 values, wanted as many as [] has in the file"));
  EXPECT_THAT(error("scales:1"), HasSubstr("input 'scales': found 1 values, wanted as many as [1,2] has"));
  EXPECT_THAT(error("rat:1"), HasSubstr("found a constant for 'rat', no input"));

  // Of the input's own type, in another shape.
  ModelBuilder fill;
  fill.Input("x", {1}).Input("value", {}, DType::kF64).Input("shape", {2}, DType::kI64);
  fill.Node("Expand", {"value", "shape"}, {"y"}).Output("y", DType::kF64).Output("x");
  LoadOptions options;
  options.constants.insert(*ParseConstant("value:7"));
  options.constants.emplace("shape", Tensor::Of<int64_t>({1, 2}, {1, 2}));
  const auto filled = ImportWith(fill, options);
  ASSERT_TRUE(filled.ok()) << filled.status();
  const auto values = interpreter::Run(**filled, std::vector<Tensor>{Tensor::Of<float>({1}, {1})});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE((*values)[0].SameBytes(Tensor::Of<double>({1, 2}, {7, 7})));
  options.constants.insert_or_assign("shape", Tensor::Of<int64_t>({1}, {1}));
  EXPECT_THAT(ImportWith(fill, options).status().message(), HasSubstr("found 1 values, wanted as many as [2] has"));
}

}  // namespace
}  // namespace fuselage::onnx
