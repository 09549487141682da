#include "harness/datasets/preprocess.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::datasets {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Preprocessed(const PreprocessOptions& options, const Image& image) {
  std::vector<float> out(options.channels * options.height * options.width);
  const auto preprocessor = Preprocessor::Create(options);
  EXPECT_TRUE(preprocessor.ok()) << preprocessor.status();
  const absl::Status status = preprocessor->Run(image, absl::MakeSpan(out));
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

PreprocessOptions Options(int height, int width, int channels) {
  PreprocessOptions options;
  options.height = height;
  options.width = width;
  options.channels = channels;
  return options;
}

// Centres of four outputs over two inputs lie at -0.25, 0.25, 0.75, 1.25: the ends clamp, the middle is 3:1 and 1:3.
TEST(Preprocess, UpsamplesAtHalfPixelCentres) {
  EXPECT_THAT(Preprocessed(Options(1, 4, 1), {1, 2, 1, {0, 255}}), ElementsAre(0.0f, 0.25f, 0.75f, 1.0f));
  EXPECT_THAT(Preprocessed(Options(4, 1, 1), {2, 1, 1, {0, 255}}), ElementsAre(0.0f, 0.25f, 0.75f, 1.0f));
}

// Half the size reads between the middle two of each pair; without antialiasing a third reads the centre alone.
TEST(Preprocess, DownsamplesWithoutAntialiasing) {
  EXPECT_THAT(Preprocessed(Options(1, 2, 1), {1, 4, 1, {0, 255, 255, 0}}), ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(Preprocessed(Options(1, 1, 1), {1, 3, 1, {0, 255, 0}}), ElementsAre(1.0f));
}

TEST(Preprocess, BilinearInBothDirections) {
  const std::vector<float> out = Preprocessed(Options(4, 4, 1), {2, 2, 1, {0, 255, 255, 255}});
  EXPECT_FLOAT_EQ(out[0], 0.0f);
  EXPECT_FLOAT_EQ(out[5], 1 - 0.75f * 0.75f);
  EXPECT_FLOAT_EQ(out[10], 1 - 0.25f * 0.25f);
  EXPECT_FLOAT_EQ(out[15], 1.0f);
}

TEST(Preprocess, NormalizesEachChannel) {
  PreprocessOptions options = Options(1, 1, 3);
  options.mean = {0.5f, 0.0f, 1.0f};
  options.std = {0.25f, 1.0f, 2.0f};
  EXPECT_THAT(Preprocessed(options, {1, 1, 3, {255, 0, 255}}), ElementsAre(2.0f, 0.0f, 0.0f));
}

TEST(Preprocess, GrayFillsAllChannels) {
  PreprocessOptions options = Options(1, 2, 3);
  options.mean = {0.0f, 0.5f, 1.0f};
  EXPECT_THAT(Preprocessed(options, {1, 2, 1, {0, 255}}), ElementsAre(0.0f, 1.0f, -0.5f, 0.5f, -1.0f, 0.0f));
}

TEST(Preprocess, InterleavedChannelsBecomePlanes) {
  EXPECT_THAT(Preprocessed(Options(1, 2, 3), {1, 2, 3, {0, 51, 102, 153, 204, 255}}),
              ElementsAre(0.0f, 0.6f, 0.2f, 0.8f, 0.4f, 1.0f));
}

TEST(Preprocess, RejectsWhatDoesNotFit) {
  std::vector<float> out(1);
  const auto one = Preprocessor::Create(Options(1, 1, 1));
  EXPECT_THAT(std::string(one->Run({1, 1, 3, {1, 2, 3}}, absl::MakeSpan(out)).message()),
              HasSubstr("1x1x3 (height, width, channels) does not fit a model with 1 input channels"));
  PreprocessOptions options = Options(1, 1, 3);
  options.std = {1, 2};
  EXPECT_THAT(std::string(Preprocessor::Create(options).status().message()), HasSubstr("preprocessing.std has 2"));
  options.std = {0};
  EXPECT_THAT(std::string(Preprocessor::Create(options).status().message()), HasSubstr("want > 0"));
  EXPECT_FALSE(Preprocessor::Create(Options(0, 1, 1)).ok());
}

}  // namespace
}  // namespace fuselage::datasets
