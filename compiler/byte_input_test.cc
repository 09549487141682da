#include "compiler/byte_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/compiler.h"
#include "frontend/onnx/model_builder.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

const ByteInput kImageNet = {true, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

std::string ConvFile() {
  onnx::ModelBuilder model;
  model.Input("image", {"N", 3, 8, 6}).Initializer("w", onnx::Seeded({4, 3, 3, 3}, 1));
  model.Node("Conv", {"image", "w"}, {"y"}, "conv").Output("y");
  const std::string path = ::testing::TempDir() + "/conv.onnx";
  std::ofstream(path, std::ios::binary) << model.Bytes();
  return path;
}

// What a caller would have made of bytes in [n, h, w, c] or [n, c, h, w].
Tensor Normalized(const Tensor& bytes, const ByteInput& input) {
  const int64_t n = bytes.dim(0), pixels = bytes.num_elements() / n / 3;
  const int64_t height = input.pixels ? bytes.dim(1) : bytes.dim(2);
  Tensor floats(DType::kF32, {n, 3, height, pixels / height});
  for (int64_t i = 0; i < floats.num_elements(); ++i) {
    const int64_t image = i / pixels / 3, c = i / pixels % 3, pixel = i % pixels;
    const auto byte = bytes.data<uint8_t>()[input.pixels ? (image * pixels + pixel) * 3 + c : i];
    floats.data<float>()[i] = (static_cast<float>(byte) / 255 - input.mean[c]) / input.std[c];
  }
  return floats;
}

TEST(ByteInput, ANetworkTakesWhatItsCallerHadNormalized) {
  ASSERT_OK_AND_ASSIGN(const Model floats, Load(ConvFile()));
  ByteInput planes = kImageNet;
  planes.pixels = false;
  for (const ByteInput& input : {kImageNet, planes}) {
    LoadOptions options;
    options.bytes = input;
    ASSERT_OK_AND_ASSIGN(const Model model, Load(ConvFile(), options));
    ASSERT_EQ(model.inputs().size(), 1);
    EXPECT_EQ(model.inputs()[0].name, "image");
    const Shape shape = input.pixels ? Shape{1, 8, 6, 3} : Shape{1, 3, 8, 6};
    EXPECT_EQ(model.inputs()[0].type, (TensorType{DType::kU8, shape, std::nullopt, Layout::kRowMajor}));
    const Tensor image = SeededTensor(model.inputs()[0].type, 5);
    ASSERT_OK_AND_ASSIGN(const auto wanted,
                         interpreter::Run(floats.graph(), std::vector<Tensor>{Normalized(image, input)}));
    ASSERT_OK_AND_ASSIGN(const auto found, interpreter::Run(model.graph(), std::vector<Tensor>{image}));
    EXPECT_TRUE(found[0].SameBytes(wanted[0]));
  }
}

// In INT8 the bytes become codes by a table, and no float is made: the codes are those of the normalized floats.
TEST(ByteInput, InInt8ATableHasTheCodes) {
  LoadOptions options;
  options.bytes = kImageNet;
  ASSERT_OK_AND_ASSIGN(const Model network, Load(ConvFile(), options));
  ASSERT_OK_AND_ASSIGN(const Model floats, Load(ConvFile()));
  const Tensor samples = onnx::Seeded({16, 8, 6, 3}, 3, DType::kU8), images = onnx::Seeded({2, 8, 6, 3}, 4, DType::kU8);
  ASSERT_OK_AND_ASSIGN(const Model int8, Compile(network, {{"image", samples}}));
  ASSERT_OK_AND_ASSIGN(const Model from_floats, Compile(floats, {{"image", Normalized(samples, kImageNet)}}));
  const std::string text = ir::Print(int8.graph());
  EXPECT_THAT(text, HasSubstr("int8.lookup("));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("fused_elementwise")));
  SessionOptions two;
  two.batch = 2;
  Tensor found, wanted;
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(int8, two));
  ASSERT_OK_AND_ASSIGN(Session reference, Prepare(from_floats, two));
  EXPECT_THAT(session.Run({{"image", images}}, {{"y", &found}}), IsOk());
  EXPECT_THAT(reference.Run({{"image", Normalized(images, kImageNet)}}, {{"y", &wanted}}), IsOk());
  EXPECT_TRUE(found.SameBytes(wanted));

  const std::string path = ::testing::TempDir() + "/bytes.fuse";
  EXPECT_THAT(Save(int8, path), IsOk());
  EXPECT_THAT(Load(path, options).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stays as it is")));
}

TEST(ByteInput, SaysWhatDoesNotFit) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const auto error = [&](const std::string& inputs, const ByteInput& input) {
    const auto graph = ir::Parse("graph @g {\n" + inputs + "  output(%x)\n}", ops);
    EXPECT_THAT(graph, IsOk());
    return std::string(compiler::TakeBytes(input, graph->get()).message());
  };
  const std::string image = "  %x: f32[1,3,4,4] = placeholder\n";
  EXPECT_THAT(error(image + "  %y: f32[1] = placeholder\n", {}), HasSubstr("the model has 2 inputs"));
  EXPECT_THAT(error("  %x: f32[1,3] = placeholder\n", {}), HasSubstr("input %x is f32[1,3], want f32 [batch"));
  EXPECT_THAT(error("  %x: u8[1,3,4,4] = placeholder\n", {}), HasSubstr("input %x is u8[1,3,4,4]"));
  EXPECT_THAT(error(image, {false, {1, 2}, {}}), HasSubstr("mean has 2 values, want 1 or one for each of 3 channels"));
  EXPECT_THAT(error(image, {false, {NAN}, {}}), HasSubstr("mean is nan, want a finite number"));
  EXPECT_THAT(error(image, {false, {}, {0}}), HasSubstr("std is 0, want > 0"));
}

}  // namespace
}  // namespace fuselage
