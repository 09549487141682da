// What a network's sources are: testdata/small.h, small.cc and small.weights, which small_test runs. After a change, in
// the tree's root:
//   bazel build //compiler/standalone:generate && S=compiler/standalone/testdata/small
//   bazel-bin/compiler/standalone/generate $S.ir small 1 $S.h $S.h $S.cc $S.weights
#include "compiler/standalone/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_replace.h"
#include "compiler/compiler.h"
#include "compiler/standalone/small_logits.h"
#include "ir/testing/matchers.h"

namespace fuselage::standalone {
namespace {

const std::string kSmall = "compiler/standalone/testdata/small";

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST(GenerateTest, SourcesAreThoseOfTheTree) {
  ASSERT_OK_AND_ASSIGN(const Model model, Load(kSmall + ".ir"));
  GenerateOptions options;
  options.name = "small";
  options.header_path = kSmall + ".h";
  options.weights_path = kSmall + ".weights";
  ASSERT_OK_AND_ASSIGN(const Sources sources, Generate(model, options));
  EXPECT_EQ(sources.header, ReadBytes(kSmall + ".h"));
  EXPECT_EQ(sources.source, ReadBytes(kSmall + ".cc"));
  EXPECT_TRUE(sources.weights == ReadBytes(kSmall + ".weights"));
}

TEST(GenerateTest, SmallLogitsAreTheReferences) {
  ASSERT_OK_AND_ASSIGN(const Model model, Load(kSmall + ".ir"));
  SessionOptions options;
  options.device = "reference";
  ASSERT_OK_AND_ASSIGN(Session session, Prepare(model, options));
  const std::string input = model.inputs()[0].name, output = model.outputs()[0].name;
  Tensor logits;
  ASSERT_OK(session.Run({{input, SeededTensor(model.inputs()[0].type, 1)}}, {{output, &logits}}));
  EXPECT_THAT(logits.values<float>(), ::testing::ElementsAreArray(kSmallLogits));
}

// A build that knows the file of the weights by what the compiler read would else keep the old ones.
TEST(GenerateTest, OtherWeightsAreAnotherSource) {
  std::string text = ReadBytes(kSmall + ".ir");
  ASSERT_EQ(
      absl::StrReplaceAll({{"param @stem.bias: f32[20] = seed(4)", "param @stem.bias: f32[20] = seed(104)"}}, &text),
      1);
  const std::string path = ::testing::TempDir() + "/other.ir";
  std::ofstream(path) << text;
  GenerateOptions options;
  options.name = "small";
  ASSERT_OK_AND_ASSIGN(const Model model, Load(kSmall + ".ir"));
  ASSERT_OK_AND_ASSIGN(const Model other, Load(path));
  ASSERT_OK_AND_ASSIGN(const Sources a, Generate(model, options));
  ASSERT_OK_AND_ASSIGN(const Sources b, Generate(other, options));
  EXPECT_NE(a.source, b.source);
}

TEST(GenerateTest, NamesKernelsOfTheInstructionSetsThatItIsFor) {
  ASSERT_OK_AND_ASSIGN(const Model model, Load(kSmall + ".ir"));
  GenerateOptions options;
  options.name = "small";
  ASSERT_OK_AND_ASSIGN(const Sources all, Generate(model, options));
  options.isas = {kernels::Isa::kScalar};
  ASSERT_OK_AND_ASSIGN(const Sources scalar, Generate(model, options));
  for (const char* name : {"Isa::kAvx2", "int8::conv2d::kVariants[1]", "int8::linear::kVariants[1]"}) {
    EXPECT_THAT(all.source, ::testing::HasSubstr(name));
    EXPECT_THAT(scalar.source, ::testing::Not(::testing::HasSubstr(name)));
  }
  // Its weights have eight bits, and "avx2 pairs" takes seven.
  EXPECT_THAT(all.source, ::testing::Not(::testing::HasSubstr("int8::linear::kVariants[2]")));
}

}  // namespace
}  // namespace fuselage::standalone
