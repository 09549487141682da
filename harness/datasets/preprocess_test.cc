#include "harness/datasets/preprocess.h"

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/datasets/resample.h"

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

TEST(Preprocess, BytesAreTheNearest) {
  PreprocessOptions options = Options(1, 4, 3);
  options.bytes = true;
  const Image gray{1, 2, 1, {0, 201}}, colours{1, 4, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  std::vector<uint8_t> out(12);
  const auto run = [&](const Image& image) {
    EXPECT_TRUE(Preprocessor::Create(options)->Run(image, absl::MakeSpan(out)).ok());
    return out;
  };
  EXPECT_THAT(run(gray), ElementsAre(0, 50, 151, 201, 0, 50, 151, 201, 0, 50, 151, 201));
  EXPECT_THAT(run(colours), ElementsAre(1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12));
  options.pixels = true;
  EXPECT_THAT(run(gray), ElementsAre(0, 0, 0, 50, 50, 50, 151, 151, 151, 201, 201, 201));
  EXPECT_EQ(run(colours), colours.pixels);
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

// The same bytes as testdata/pillow.py makes.
Image Pattern(int height, int width, int channels) {
  Image image{height, width, channels, {}};
  uint32_t state = 1;
  for (int i = 0; i < height * width * channels; ++i) {
    state = state * 1664525 + 1013904223;
    image.pixels.push_back(state >> 24);
  }
  return image;
}

TEST(Preprocess, ResampleHasPillowsBits) {
  std::ifstream file("harness/datasets/testdata/pillow.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    std::istringstream numbers(line);
    int height, width, channels, shorter_side, crop_height, crop_width, value;
    numbers >> height >> width >> channels >> shorter_side >> crop_height >> crop_width;
    std::vector<int> wanted;
    while (numbers >> value) wanted.push_back(value);
    const Image image = Pattern(height, width, channels);
    const Image found = Resample(image, CenterOf(image, shorter_side, crop_height, crop_width));
    EXPECT_EQ(found.height, crop_height);
    EXPECT_EQ(found.width, crop_width);
    EXPECT_EQ(std::vector<int>(found.pixels.begin(), found.pixels.end()), wanted) << line.substr(0, 30);
  }
  EXPECT_EQ(cases, 7);
}

TEST(Preprocess, ShorterSideCropsTheCenter) {
  PreprocessOptions options = Options(2, 2, 3);
  options.shorter_side = 2;
  options.mean = {0.5f};
  options.std = {0.25f};
  // Two pixels become one; of the four columns that are left, the middle two are kept.
  const Image gray{4, 8, 1, {0, 0, 10, 10, 30, 30, 0, 0, 0, 0, 10, 10, 30, 30, 0, 0,
                             0, 0, 10, 10, 30, 30, 0, 0, 0, 0, 10, 10, 30, 30, 0, 0}};
  const Image cropped = Resample(gray, CenterOf(gray, 2, 2, 2));
  const std::vector<float> out = Preprocessed(options, gray);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(out[i], (cropped.pixels[i % 4] / 255.0f - 0.5f) / 0.25f) << i;
  EXPECT_LT(cropped.pixels[0], cropped.pixels[1]);

  options.shorter_side = 1;
  EXPECT_THAT(std::string(Preprocessor::Create(options).status().message()),
              HasSubstr("preprocessing.shorter_side is 1, want at least 2: 2x2 are cropped from it"));
}

// A panorama whose resized size no int holds: only the window is computed.
TEST(Preprocess, ALineOfPixels) {
  PreprocessOptions options = Options(64, 64, 1);
  options.shorter_side = 4096;
  Image line{1, 1 << 20, 1, {}};
  line.pixels.assign(1 << 20, 255);
  EXPECT_THAT(Preprocessed(options, line), ::testing::Each(1.0f));
}

}  // namespace
}  // namespace fuselage::datasets
