// Groups of one channel, or of few: every variant against the scalar one, byte for byte.
#include <algorithm>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/testing/compare.h"
#include "kernels/int8/conv2d/testing/testing.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::KernelDesc;

// Every width of a row of sums, every begun block of channels, images without an inside, taps that lie only beside the
// image.
Case GroupsCase(Picker& pick, int group_channels) {
  Case c;
  const int channels[] = {1, 2, 15, 16, 17, 33, 48, 63, 64, 65, 80, 130};
  c.groups = group_channels == 1 ? channels[pick(12)] : 2 + pick(130 / group_channels);
  c.in_channels = c.out_channels = c.groups * group_channels;
  const int kernels[] = {1, 2, 3, 3, 3, 4, 5, 5, 6, 7, 9};
  c.kernel_height = kernels[pick(11)];
  c.kernel_width = pick(3) == 0 ? kernels[pick(11)] : c.kernel_height;
  c.height = 1 + pick(6);
  c.width = 1 + pick(18);
  c.stride_y = 1 + pick(6) / 2;
  c.stride_x = pick(3) == 0 ? 1 + pick(4) : c.stride_y;
  const auto dilation = [&] { return pick(4) == 0 ? 1 + pick(9) : 1; };
  c.dilation_y = dilation(), c.dilation_x = dilation();
  // Beside an image that the taps just span, a little more on either side.
  const int tall = c.dilation_y * (c.kernel_height - 1), wide = c.dilation_x * (c.kernel_width - 1);
  c.top = pick(tall + 1), c.bottom = tall - c.top + pick(2);
  c.left = pick(wide + 1), c.right = wide - c.left + pick(2);
  c.batch = 1 + pick(4) / 3;
  c.threads = 1 + pick(8) / 5;
  PickOperands(pick, &c);
  return c;
}

TEST(GroupsTest, Depthwise) {
  std::map<std::string, int> ran;
  int cases = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Picker pick(seed);
    const Case c = GroupsCase(pick, 1);
    ExpectVariantsEqual(c, seed, &ran);
    if (HasFailure()) return;
    ++cases;
  }
  EXPECT_EQ(ran["avx512_vnni_emulated depthwise"], cases);
}

// Lines of pixels that are no whole panels, dense or beside other channels, and last blocks of less than a panel.
TEST(GroupsTest, DepthwiseOfEveryChannelCount) {
  std::map<std::string, int> ran;
  int cases = 0;
  for (int channels = 1; channels <= 140; channels += channels < 40 ? 1 : 8 - channels % 3) {
    for (uint64_t seed = 0; seed < 5; ++seed, ++cases) {
      Picker pick(5 * channels + seed);
      Case c = GroupsCase(pick, 1);
      c.groups = c.in_channels = c.out_channels = channels;
      if (pick(4) == 0) c.input_placement.pixel_bytes = channels + pick(20);
      if (pick(4) == 0 && c.output_type != DType::kF32) c.output_placement.pixel_bytes = channels + pick(20);
      ExpectVariantsEqual(c, seed, &ran);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated depthwise"], cases);
}

// Kernels of one row, whose taps are interleaved along it: every width around the kernel's, with more padding on one
// side than there is image, and rows of several parts.
TEST(GroupsTest, DepthwiseAlongARow) {
  std::map<std::string, int> ran;
  uint64_t seed = 0;
  for (const int kernel : {2, 3, 4, 5, 8, 31}) {
    for (const int width : {1, 2, 3, 4, 7, 12, 33, 200}) {
      for (const int stride : {1, 2, 5}) {
        Case c;
        c.groups = c.in_channels = c.out_channels = 16 + static_cast<int>(seed * 7 % 60);
        c.kernel_height = 1, c.kernel_width = kernel;
        c.height = 1 + static_cast<int>(seed % 3), c.width = width;
        c.stride_x = stride, c.dilation_x = kernel < 31 ? 1 + static_cast<int>(seed % 2) : 1;
        c.left = (kernel - 1) * c.dilation_x, c.right = static_cast<int>(seed % kernel);
        c.top = static_cast<int>(seed % 2);  // A row of padding alone.
        c.threads = 1 + static_cast<int>(seed % 2);
        ExpectVariantsEqual(c, ++seed, &ran);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated depthwise"], 6 * 8 * 3);
}

// Tall kernels of narrow images: of the rows of outputs that share their columns some read more of them than others.
TEST(GroupsTest, DepthwiseOfTallKernels) {
  std::map<std::string, int> ran;
  uint64_t seed = 0;
  for (const int kernel : {4, 5, 6, 7, 8, 9, 11}) {
    for (const int kernel_width : {1, 3}) {
      for (const int height : {1, 3, 5, 8, 12}) {
        for (const int width : {4, 5, 9}) {
          Case c;
          c.groups = c.in_channels = c.out_channels = 16 + static_cast<int>(seed * 7 % 60);
          c.kernel_height = kernel, c.kernel_width = kernel_width;
          c.height = height, c.width = width;
          c.top = c.bottom = kernel / 2, c.left = c.right = kernel_width / 2;
          ExpectVariantsEqual(c, ++seed, &ran);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated depthwise"], 7 * 2 * 5 * 3);
  EXPECT_EQ(ran["avx_vnni_emulated depthwise"], kernels::CpuSupports(kernels::Isa::kAvx2) ? 7 * 2 * 5 * 3 : 0);
}

TEST(GroupsTest, SmallGroups) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Picker pick(seed);
    const Case c = GroupsCase(pick, 4 << seed % 3);
    ExpectVariantsEqual(c, seed, &ran);
    if (HasFailure()) return;
  }
  EXPECT_EQ(ran["avx512_vnni_emulated groups"], 200);
  EXPECT_EQ(ran["avx2 groups"], kernels::CpuSupports(kernels::Isa::kAvx2) ? 200 : 0);
  EXPECT_EQ(ran["avx_vnni_emulated groups"], ran["avx2 groups"]);
}

// Groups that are computed several as one: every small number of input and output channels, and numbers of groups that
// have no such divisor.
TEST(GroupsTest, GroupsOfFewChannels) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Picker pick(seed);
    const int in = 1 + pick(7), out = pick(2) == 0 ? in : 1 + pick(9);
    Case c = GroupsCase(pick, std::max(in, out));
    c.in_channels = c.groups * in;
    c.out_channels = c.groups * out;
    ExpectVariantsEqual(c, seed, &ran);
    if (HasFailure()) return;
  }
  EXPECT_GE(ran["avx512_vnni_emulated groups"], 20);
  EXPECT_EQ(ran["avx512_vnni_emulated"], 300);
}

// Images that no second-level cache holds, some rows of which go through all blocks of channels at a time.
TEST(GroupsTest, LargeImages) {
  std::map<std::string, int> ran;
  uint64_t seed = 1;
  for (const int group_channels : {1, 8}) {
    for (const int stride : {1, 2}) {
      for (const int threads : {1, 3}) {
        Case c = SquareCase(136, 60, 136, 3, stride);
        c.groups = c.in_channels / group_channels;
        c.batch = threads == 1 ? 2 : 1;
        c.threads = threads;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated depthwise"], 4);
  EXPECT_EQ(ran["avx512_vnni_emulated groups"], 4);
}

// Wider than the columns that are interleaved at once, and rows in several parts.
TEST(GroupsTest, DepthwiseNetworkShapes) {
  struct Layer {
    int channels, height, width, kernel, stride;
  };
  const Layer layers[] = {{32, 5, 112, 3, 1}, {96, 4, 113, 3, 2}, {72, 5, 57, 5, 2},
                          {20, 2, 250, 7, 1}, {24, 9, 28, 5, 1},  {80, 7, 7, 3, 1}};
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (const Layer& layer : layers) {
    for (int dilation : {1, 3, 40}) {
      for (int threads : {1, 3}) {
        Case c = SquareCase(layer.channels, layer.width, layer.channels, layer.kernel, layer.stride);
        c.groups = layer.channels;
        c.height = layer.height;
        c.dilation_x = dilation;
        c.left = c.right = layer.kernel / 2 * dilation;
        c.threads = threads;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated depthwise"], 36);
}

// However few their channels.
TEST(GroupsTest, DepthwiseLayersGoByDepthwiseLoops) {
  for (const kernels::Isa isa : kernels::AllIsas()) {
    if (!isa.Includes(kernels::Isa::kAvx2) || !kernels::CpuSupports(isa)) continue;
    for (const int channels : {1, 2, 3, 4, 8, 24}) {
      Case c = SquareCase(channels, /*size=*/14, channels, /*kernel=*/3, /*stride=*/1);
      c.groups = channels;
      const Instance instance(c, 1);
      KernelDesc desc = instance.Desc();
      desc.isa = isa;
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const std::string chosen = (*kernel)->variant();
      EXPECT_NE(chosen.find("depthwise"), std::string::npos) << chosen << " for " << channels << " channels";
    }
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d
