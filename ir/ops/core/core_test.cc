#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/values.h"
#include "ir/ops/core/window.h"

namespace fuselage::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Window Make1d(int64_t input, int64_t kernel, int64_t stride, std::vector<int64_t> padding, int64_t dilation,
              bool ceil_mode) {
  WindowParams params;
  params.input = absl::MakeConstSpan(&input, 1);
  params.kernel = absl::MakeConstSpan(&kernel, 1);
  params.stride = absl::MakeConstSpan(&stride, 1);
  params.dilation = absl::MakeConstSpan(&dilation, 1);
  params.padding = padding;
  params.ceil_mode = ceil_mode;
  absl::StatusOr<Window> window = MakeWindow(params);
  EXPECT_TRUE(window.ok()) << window.status();
  return *window;
}

std::vector<int64_t> TapsOf(const Window& window, int64_t output) {
  std::vector<int64_t> taps;
  ForEachTap(window, output, [&](int64_t offset) { taps.push_back(offset); });
  return taps;
}

TEST(WindowTest, OutputSizes) {
  EXPECT_EQ(Make1d(5, 3, 1, {0, 0}, 1, false).axes[2].output, 3);
  EXPECT_EQ(Make1d(5, 3, 2, {1, 1}, 1, false).axes[2].output, 3);
  EXPECT_EQ(Make1d(7, 3, 1, {0, 0}, 3, false).axes[2].output, 1);
  EXPECT_EQ(Make1d(6, 3, 2, {0, 0}, 1, false).axes[2].output, 2);
  EXPECT_EQ(Make1d(6, 3, 2, {0, 0}, 1, true).axes[2].output, 3);
  // The third window would start at 4 >= 3 + 1, in the end padding: dropped.
  EXPECT_EQ(Make1d(3, 2, 2, {1, 1}, 1, true).axes[2].output, 2);
}

TEST(WindowTest, TapsStayInside) {
  const Window window = Make1d(5, 3, 2, {1, 1}, 1, false);
  EXPECT_THAT(TapsOf(window, 0), ElementsAre(0, 1));
  EXPECT_THAT(TapsOf(window, 1), ElementsAre(1, 2, 3));
  EXPECT_THAT(TapsOf(window, 2), ElementsAre(3, 4));
  EXPECT_THAT(TapsOf(Make1d(5, 2, 1, {0, 0}, 3, false), 1), ElementsAre(1, 4));
}

TEST(WindowTest, PaddedTapsCountPaddingButNotTheOverhang) {
  const Window window = Make1d(6, 3, 2, {0, 0}, 1, true);
  EXPECT_EQ(PaddedTaps(window, 0), 3);
  EXPECT_EQ(PaddedTaps(window, 2), 2);
  EXPECT_EQ(PaddedTaps(Make1d(5, 3, 2, {1, 1}, 1, false), 0), 3);
}

TEST(WindowTest, KernelLargerThanInput) {
  const int64_t input = 2, kernel = 3, one = 1;
  const std::vector<int64_t> padding = {0, 0};
  WindowParams params;
  params.input = absl::MakeConstSpan(&input, 1);
  params.kernel = absl::MakeConstSpan(&kernel, 1);
  params.stride = params.dilation = absl::MakeConstSpan(&one, 1);
  params.padding = padding;
  EXPECT_THAT(std::string(MakeWindow(params).status().message()),
              HasSubstr("the kernel spans 3 elements, more than the padded input's 2 + 0 + 0"));
}

TEST(BroadcastTest, Shapes) {
  EXPECT_EQ(*BroadcastShapes({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(*BroadcastShapes({2, 1}, {1, 3}), (Shape{2, 3}));
  EXPECT_EQ(*BroadcastShapes({}, {2}), (Shape{2}));
  EXPECT_EQ(*BroadcastShapes({0}, {1}), (Shape{0}));
  EXPECT_THAT(std::string(BroadcastShapes({2}, {3}).status().message()), HasSubstr("2 against 3"));
}

TEST(ValuesTest, GatherWalksStrides) {
  const Tensor x = Tensor::Of<int32_t>({2, 3}, {0, 1, 2, 3, 4, 5});
  const TensorType transposed{DType::kI32, {3, 2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(Gather(x, transposed, {1, 3}).values<int32_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
  const TensorType stretched{DType::kI32, {2, 2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(Gather(x, stretched, BroadcastStrides({1, 2}, {2, 2}), 4).values<int32_t>(), ElementsAre(4, 5, 4, 5));
  const TensorType scalar{DType::kI32, {}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(Gather(x, scalar, {}, 5).values<int32_t>(), ElementsAre(5));
  const TensorType empty{DType::kI32, {0, 2}, std::nullopt, Layout::kRowMajor};
  EXPECT_EQ(Gather(x, empty, {1, 1}).num_elements(), 0);
}

TEST(ValuesTest, IntegersWrapAndKeepAll64Bits) {
  const int64_t big = (int64_t{1} << 62) + 1;
  const Tensor x = Tensor::Of<int64_t>({2}, {big, -1});
  EXPECT_THAT(Integers(x), ElementsAre(big, -1));
  EXPECT_THAT(OfIntegers(x.type(), {big, 7}).values<int64_t>(), ElementsAre(big, 7));
  const TensorType u8{DType::kU8, {2}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(OfIntegers(u8, {257, -1}).values<uint8_t>(), ElementsAre(1, 255));
}

}  // namespace
}  // namespace fuselage::ops
