#include "ir/ops/sampling/sampling.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"

namespace fuselage::ops::sampling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Floats(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.num_elements()};
}

class SamplingTest : public ::testing::Test {
 protected:
  // A row of pixels read at places along it.
  std::vector<float> AlongRow(std::vector<float> pixels, std::vector<float> places, AttributeMap attributes) {
    const auto width = static_cast<int64_t>(pixels.size()), count = static_cast<int64_t>(places.size());
    std::vector<float> grid;
    for (const float x : places) grid.insert(grid.end(), {x, 0});
    return Floats(ops_.Run("grid_sample",
                           {Tensor::Of<float>({1, 1, 1, width}, pixels), Tensor::Of<float>({1, 1, count, 2}, grid)},
                           attributes));
  }
  std::vector<float> RoiAlign(std::vector<float> box, AttributeMap attributes) {
    return Floats(ops_.Run(
        "roi_align", {Iota({1, 1, 4, 4}), Tensor::Of<float>({1, 4}, box), Tensor::Of<int64_t>({1}, {0})}, attributes));
  }

  const OpTester ops_{Register};
};

TEST_F(SamplingTest, EdgesOrCentersAreAtOne) {
  const Tensor x = Tensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor grid = Tensor::Of<float>({1, 1, 4, 2}, {-1, -1, 0, 0, 1, -1, -0.5f, 0.5f});
  EXPECT_THAT(ops_.Run("grid_sample", {x, grid}, {{"align_corners", true}}).values<float>(),
              ElementsAre(1, 2.5f, 2, 2.75f));
  EXPECT_THAT(ops_.Run("grid_sample", {x, grid}).values<float>(), ElementsAre(0.25f, 2.5f, 0.5f, 3));
  EXPECT_THAT(ops_.Run("grid_sample", {x, grid}, {{"padding_mode", "border"}}).values<float>(),
              ElementsAre(1, 2.5f, 2, 3));
}

// With align_corners the pixels of a row of three are at -1, 0 and 1.
TEST_F(SamplingTest, WhatLiesBeyond) {
  const std::vector<float> places = {-2, -1.5f, 1.25f, 4};
  const auto run = [&](const char* mode, const char* padding) {
    return AlongRow({4, 5, 7}, places, {{"mode", mode}, {"padding_mode", padding}, {"align_corners", true}});
  };
  EXPECT_THAT(run("bilinear", "zeros"), ElementsAre(0, 2, 5.25f, 0));
  EXPECT_THAT(run("bilinear", "border"), ElementsAre(4, 4, 7, 7));
  EXPECT_THAT(run("bilinear", "reflection"), ElementsAre(5, 4.5f, 6.5f, 5));
  EXPECT_THAT(run("nearest", "reflection"), ElementsAre(5, 4, 7, 5));
  // Without, the row mirrors at -1 and 1, which is half a pixel further out.
  EXPECT_THAT(AlongRow({4, 5, 7}, {-2, 4.0f / 3}, {{"mode", "nearest"}, {"padding_mode", "reflection"}}),
              ElementsAre(5, 7));
}

// Keys's weights half way between two pixels, with a = -0.75.
TEST_F(SamplingTest, Cubic) {
  const AttributeMap attributes = {{"mode", "bicubic"}};
  EXPECT_THAT(AlongRow({1, 0, 0, 0}, {0, -0.75f, -0.25f}, attributes), ElementsAre(-0.09375f, 1, 0));
  EXPECT_THAT(AlongRow({0, 1, 0, 0}, {0}, attributes), ElementsAre(0.59375f));
  // One by one, the taps repeat the edge: all but the last is 1.
  EXPECT_THAT(AlongRow({1, 0}, {-0.5f, -1}, {{"mode", "bicubic"}, {"padding_mode", "border"}}),
              ElementsAre(1, 1.09375f));
}

TEST_F(SamplingTest, Volumes) {
  const Tensor x = Iota({1, 2, 2, 1, 3}), grid = Tensor::Of<float>({1, 1, 1, 1, 3}, {1, 0, 0});
  EXPECT_THAT(ops_.Run("grid_sample", {x, grid}, {{"align_corners", true}}).values<float>(), ElementsAre(3.5f, 9.5f));
}

TEST_F(SamplingTest, NumbersThatAreNone) {
  EXPECT_THAT(AlongRow({1, 1}, {kNan, kInfinity, -kInfinity}, {}), ElementsAre(0, 0, 0));
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    EXPECT_THAT(AlongRow({1, 1}, {kNan, kInfinity, 1e30f}, {{"mode", mode}, {"padding_mode", "reflection"}}),
                ElementsAre(1, 1, 1));
  }
}

TEST_F(SamplingTest, Boxes) {
  EXPECT_THAT(RoiAlign({0, 0, 2, 2}, {{"sampling_ratio", 1}}), ElementsAre(5));
  EXPECT_THAT(RoiAlign({0, 0, 2, 2}, {{"sampling_ratio", 1}, {"aligned", true}}), ElementsAre(2.5f));
  EXPECT_THAT(RoiAlign({0, 0, 8, 8}, {{"spatial_scale", 0.25}}), ElementsAre(5));
  EXPECT_THAT(RoiAlign({0, 0, 4, 2}, {{"output_width", 2}, {"sampling_ratio", 1}}), ElementsAre(5, 7));
  EXPECT_THAT(RoiAlign({1, 1, 1, 1}, {}), ElementsAre(7.5f));                // At least one pixel: around 1.5.
  EXPECT_THAT(RoiAlign({1, 1, 1, 1}, {{"aligned", true}}), ElementsAre(0));  // No place at all.
  EXPECT_THAT(RoiAlign({40, 40, 42, 42}, {}), ElementsAre(0));               // Beyond the image.
  EXPECT_THAT(RoiAlign({0, 0, 2, 2}, {{"sampling_ratio", 1}, {"aligned", true}, {"mode", "max"}}), ElementsAre(1.25f));
}

TEST_F(SamplingTest, BoxesThatAreNone) {
  const auto error = [&](std::vector<float> box, int64_t image) {
    return std::string(ops_.RunAll("roi_align", {Iota({2, 1, 4, 4}), Tensor::Of<float>({1, 4}, box),
                                                 Tensor::Of<int64_t>({1}, {image})})
                           .status()
                           .message());
  };
  EXPECT_EQ(error({0, 0, 1, 1}, -1), "");
  EXPECT_THAT(error({0, 0, 1, 1}, 2), HasSubstr("found index 2, wanted one in [-2, 2)"));
  EXPECT_THAT(error({0, 0, kInfinity, 1}, 0), HasSubstr("wanted a finite one of at most 4096 places"));
  EXPECT_THAT(error({0, 0, 1, kNan}, 0), HasSubstr("wanted a finite one"));
}

TEST_F(SamplingTest, Types) {
  const auto type = [](Shape shape, DType dtype = DType::kF32) {
    return TensorType{dtype, std::move(shape), std::nullopt, Layout::kRowMajor};
  };
  const TensorType x = type({2, 3, 4, 5});
  EXPECT_EQ(ops_.Infer("grid_sample", {x, type({2, 6, 7, 2})}), "f32[2,3,6,7]");
  EXPECT_EQ(ops_.Infer("grid_sample", {type({2, 3, 4, 5, 6}), type({2, 6, 7, 8, 3})}), "f32[2,3,6,7,8]");
  EXPECT_THAT(ops_.Infer("grid_sample", {x, type({2, 6, 7, 3})}), HasSubstr("wanted 2 grids of 2 coordinates"));
  EXPECT_THAT(ops_.Infer("grid_sample", {x, type({1, 6, 7, 2})}), HasSubstr("wanted 2 grids"));
  EXPECT_THAT(ops_.Infer("grid_sample", {x, type({2, 6, 7, 2})}, {{"mode", "cubic"}}), HasSubstr("\"bicubic\""));
  EXPECT_THAT(ops_.Infer("grid_sample", {type({2, 3, 0, 5}), type({2, 6, 7, 2})}), HasSubstr("one pixel on axis 2"));
  const TensorType boxes = type({6, 4}), batch = type({6}, DType::kI64);
  EXPECT_EQ(ops_.Infer("roi_align", {x, boxes, batch}, {{"output_height", 2}, {"output_width", 7}}), "f32[6,3,2,7]");
  EXPECT_THAT(ops_.Infer("roi_align", {x, type({5, 4}), batch}), HasSubstr("f32[5,4]"));
  EXPECT_THAT(ops_.Infer("roi_align", {x, boxes, type({6})}), HasSubstr("wanted i32 or i64"));
  EXPECT_THAT(ops_.Infer("roi_align", {x, boxes, batch}, {{"output_width", 0}}), HasSubstr("one in [1, 2^15)"));
  EXPECT_THAT(ops_.Infer("roi_align", {x, boxes, batch}, {{"sampling_ratio", -1}}), HasSubstr("[0, 4096]"));
}

}  // namespace
}  // namespace fuselage::ops::sampling
