// Against the scalar kernels of int8.conv2d and int8.max_pool2d, one after the other.
#include "kernels/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"

#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/testing/emulated.h"
#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::conv2d_max_pool2d {
namespace {

using kernels::Codes;
using kernels::Isa;
using kernels::Kernel;
using kernels::KernelDesc;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

struct Case {
  Shape input = {1, 3, 20, 14};
  int64_t out_channels = 8, groups = 1;
  Ints kernel = {3, 3}, stride = {1, 1}, padding = {1, 1, 1, 1}, dilation = {1, 1};
  Ints pool_kernel = {3, 3}, pool_stride = {2, 2}, pool_padding = {1, 1, 1, 1}, pool_dilation = {1, 1};
  bool ceil_mode = false, relu = true, bias = true;
  DType input_type = DType::kU8, output_type = DType::kU8;
  int32_t input_zero_point = 0, output_zero_point = 0;
};

int64_t Outputs(int64_t in, int64_t pads, int64_t kernel, int64_t dilation, int64_t stride) {
  return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

// As ceil_mode has it: a window that would start in the end padding is dropped.
int64_t PoolOutputs(const Case& c, int64_t in, int axis) {
  const int64_t begin = c.pool_padding[axis], pads = begin + c.pool_padding[2 + axis], stride = c.pool_stride[axis];
  const int64_t out = Outputs(in, pads, c.pool_kernel[axis], c.pool_dilation[axis], stride);
  const int64_t room = in + pads - (c.pool_kernel[axis] - 1) * c.pool_dilation[axis] - 1;
  return c.ceil_mode && room % stride != 0 && out * stride < in + begin ? out + 1 : out;
}

std::string ToString(const Case& c) {
  return absl::StrCat(fuselage::ToString(c.input), " to ", c.out_channels, ", kernel ", fuselage::ToString(c.kernel),
                      " stride ", fuselage::ToString(c.stride), " pad ", fuselage::ToString(c.padding)) +
         absl::StrCat(" dilation ", fuselage::ToString(c.dilation), " groups ", c.groups, ", pool ",
                      fuselage::ToString(c.pool_kernel), " stride ", fuselage::ToString(c.pool_stride)) +
         absl::StrCat(" pad ", fuselage::ToString(c.pool_padding), " dilation ", fuselage::ToString(c.pool_dilation),
                      c.ceil_mode ? " ceil" : "");
}

// A case with its operands, and the descriptions of the whole and of its parts.
struct Layer {
  explicit Layer(const Case& c, uint64_t seed = 1) {
    const Shape weight_shape = {c.out_channels, c.input[1] / c.groups, c.kernel[0], c.kernel[1]};
    std::vector<float> scales;
    for (int64_t i = 0; i < c.out_channels; ++i) scales.push_back(0.002f + 0.0004f * static_cast<float>(i % 7));
    weight = SeededTensor({DType::kI8, weight_shape, PerAxis(0, scales), Layout::kRowMajor}, seed);
    bias = SeededTensor(kernels::Floats({c.out_channels}), seed + 1);
    const float depth = static_cast<float>(weight_shape[1] * weight_shape[2] * weight_shape[3]);
    const float out_scale = 0.004f * std::sqrt(depth);  // Some codes saturate.
    const int64_t h = Outputs(c.input[2], c.padding[0] + c.padding[2], c.kernel[0], c.dilation[0], c.stride[0]);
    const int64_t w = Outputs(c.input[3], c.padding[1] + c.padding[3], c.kernel[1], c.dilation[1], c.stride[1]);
    const auto output = [&](int64_t height, int64_t width) {
      return Codes(c.output_type, {c.input[0], c.out_channels, height, width}, out_scale, c.output_zero_point,
                   Layout::kNhwc);
    };
    whole.op = "int8.conv2d_max_pool2d";
    whole.attributes = {{"stride", c.stride},
                        {"padding", c.padding},
                        {"dilation", c.dilation},
                        {"groups", c.groups},
                        {"activation", c.relu ? "relu" : "none"},
                        {"pool_kernel_size", c.pool_kernel},
                        {"pool_stride", c.pool_stride},
                        {"pool_padding", c.pool_padding},
                        {"pool_dilation", c.pool_dilation},
                        {"pool_ceil_mode", c.ceil_mode}};
    whole.inputs = {Codes(c.input_type, c.input, 0.02f, c.input_zero_point, Layout::kNhwc)};
    whole.outputs = {output(PoolOutputs(c, h, 0), PoolOutputs(c, w, 1))};
    whole.parameters["weight"] = &weight;
    if (c.bias) whole.parameters["bias"] = &bias;
    conv = pool = whole;
    conv.outputs = {output(h, w)};
    pool.inputs = {output(h, w)};
    for (const auto& [name, value] : whole.attributes) {
      if (absl::StartsWith(name, "pool_")) pool.attributes.insert_or_assign(name.substr(5), value);
    }
  }
  Layer(const Layer&) = delete;

  Tensor Run(const absl::StatusOr<std::unique_ptr<Kernel>>& kernel, const Tensor& x, int threads = 1) const {
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) return Tensor();
    kernels::TestThreads parallel(threads);
    absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x}, &parallel);
    EXPECT_TRUE(y.ok()) << y.status();
    return y.ok() ? *std::move(y) : Tensor();
  }
  // The scalar kernels, one after the other.
  Tensor Reference(const Tensor& x) const { return Run(max_pool2d::Create(pool), Run(conv2d::Create(conv), x)); }

  Tensor weight, bias;
  KernelDesc whole, conv, pool;
};

// On every instruction set, in bands of one, two and three rows, and in those of its choice.
void ExpectTheBitsOfTheParts(const Case& c, uint64_t seed = 1) {
  Layer layer(c, seed);
  const Tensor x = SeededTensor(layer.whole.input(0), seed + 7);
  const Tensor wanted = layer.Reference(x);
  for (const Isa isa : kernels::SupportedIsas()) {
    layer.whole.isa = isa;
    for (const int threads : {1, 2, 3}) {
      layer.whole.threads = threads;
      ASSERT_TRUE(layer.Run(Create(layer.whole), x, threads).SameBytes(wanted))
          << ToString(c) << " " << kernels::IsaName(isa) << " on " << threads;
      for (const int64_t rows : {1, 2, 3}) {
        ASSERT_TRUE(layer.Run(CreateWithBands(conv2d::Variants(), layer.whole, rows), x, threads).SameBytes(wanted))
            << ToString(c) << " " << kernels::IsaName(isa) << " on " << threads << " in bands of " << rows;
      }
    }
  }
}

Case ResNetStem() {
  Case c;
  c.input = {3, 3, 40, 36};
  c.out_channels = 24;
  c.kernel = {7, 7}, c.stride = {2, 2}, c.padding = {3, 3, 3, 3};
  return c;
}

Case VggLayer() {
  Case c;
  c.input = {2, 16, 22, 18};
  c.out_channels = 32;
  c.pool_kernel = {2, 2}, c.pool_padding = {0, 0, 0, 0};
  return c;
}

TEST(Conv2dMaxPool2d, OfNetworks) {
  ExpectTheBitsOfTheParts(ResNetStem());
  ExpectTheBitsOfTheParts(VggLayer());
}

// AMX reads bands in place, with other rows for padding.
TEST(Conv2dMaxPool2d, PlacedOperandsOnEmulatedAmx) {
  const auto variants = conv2d::EmulatedAmxVariants();
  int placed = 0;
  for (const Case& network : {ResNetStem(), VggLayer()}) {
    for (const int64_t height : {9, 22, 37, 40}) {
      for (const int64_t less : {0, 1}) {
        Case c = network;
        c.input[2] = height, c.padding[2] -= less;
        const Layer layer(c);
        const Tensor x = SeededTensor(layer.whole.input(0), 3);
        const Tensor wanted = layer.Reference(x);
        KernelDesc desc = layer.whole;
        desc.input_placements = {EntryWith(variants).preferred_placement(desc)};
        if (desc.input_placements[0].dense()) continue;  // Too small an image for tiles.
        ASSERT_TRUE(EntryWith(variants).takes_placements(desc));
        ++placed;
        for (const int threads : {1, 2}) {
          for (const int64_t rows : {1, 3, 100}) {
            desc.threads = threads;
            desc.output_placement = {kernels::Blocking::kNone, 1, 0};
            if (rows == 3) desc.output_placement = {kernels::Blocking::kNone, 0, 200};  // Channels of a wider tensor.
            const auto kernel = CreateWithBands(variants, desc, rows);
            ASSERT_TRUE(kernel.ok()) << kernel.status();
            kernels::TestThreads parallel(threads);
            const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x}, &parallel);
            ASSERT_TRUE(found.ok()) << found.status();
            EXPECT_TRUE(found->SameBytes(wanted)) << ToString(c) << " on " << threads << " in bands of " << rows;
          }
        }
      }
    }
  }
  EXPECT_GE(placed, 10);
}

// Sums are compared along rows: windows that begin in the tile before or at the image's border, and last tiles of a few
// pixels.
TEST(Conv2dMaxPool2d, PoolsRowsOnEmulatedAmx) {
  const auto variants = conv2d::EmulatedAmxVariants();
  struct Pool {
    int64_t kernel, stride, padding;
  };
  int pooled = 0;
  for (const Pool& pool :
       {Pool{3, 2, 1}, {3, 2, 0}, {2, 2, 0}, {3, 1, 2}, {2, 1, 1}, {3, 3, 1}, {1, 2, 0}, {3, 7, 0}}) {
    for (const int64_t width : {32, 34, 36, 64, 70, 98}) {
      for (const bool is_signed : {false, true}) {
        Case c = ResNetStem();
        c.input = {2, 3, 20, width};
        c.out_channels = 64;
        c.pool_kernel = {3, pool.kernel}, c.pool_stride = {2, pool.stride};
        c.pool_padding = {1, pool.padding, 1, pool.padding};
        c.ceil_mode = is_signed;
        c.relu = !is_signed;
        if (is_signed) c.input_type = c.output_type = DType::kI8, c.input_zero_point = -5, c.output_zero_point = 3;
        const Layer layer(c);
        const Tensor x = SeededTensor(layer.whole.input(0), 3);
        KernelDesc desc = layer.whole;
        desc.input_placements = {EntryWith(variants).preferred_placement(desc)};
        const auto kernel = CreateWithBands(variants, desc, 2);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        pooled += absl::StrContains((*kernel)->variant(), "pooling its rows");
        kernels::TestThreads parallel(1);
        const absl::StatusOr<Tensor> found = kernels::RunPlacedKernel(**kernel, desc, {&x}, &parallel);
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_TRUE(found->SameBytes(layer.Reference(x))) << ToString(c);
      }
    }
  }
  EXPECT_GE(pooled, 60);
}

TEST(Create, DeclinesPlacementsThatItCannotReadInBands) {
  const Layer layer(VggLayer());
  KernelDesc desc = layer.whole;
  desc.isa = Isa::kScalar;
  EXPECT_TRUE(EntryWith(conv2d::Variants()).preferred_placement(desc).dense());
  desc.input_placements = {{kernels::Blocking::kNone, 1, 0}};
  EXPECT_FALSE(EntryWith(conv2d::Variants()).takes_placements(desc));
  EXPECT_THAT(std::string(Create(desc).status().message()), HasSubstr("bands of an input with halo 1"));
}

TEST(Conv2dMaxPool2d, PaddingIsTheZeroPoint) {
  for (const DType input : {DType::kU8, DType::kI8}) {
    for (const DType output : {DType::kU8, DType::kI8}) {
      Case c;
      c.padding = {2, 0, 2, 1};
      c.relu = false;
      c.input_type = input, c.output_type = output;
      c.input_zero_point = input == DType::kU8 ? 255 : -128;
      c.output_zero_point = output == DType::kU8 ? 131 : -9;
      ExpectTheBitsOfTheParts(c);
    }
  }
}

// Bands that keep more than one row of the band before, or whose windows leave rows out.
TEST(Conv2dMaxPool2d, WindowsThatOverlapOrLeaveGaps) {
  for (const int64_t stride : {1, 2, 3, 5}) {
    for (const int64_t kernel : {1, 2, 5}) {
      Case c;
      c.pool_stride = {stride, 1}, c.pool_kernel = {kernel, 2}, c.pool_padding = {0, 0, 0, 0};
      ExpectTheBitsOfTheParts(c);
    }
  }
}

TEST(Conv2dMaxPool2d, CeilModeAndDilation) {
  Case c;
  c.input = {1, 3, 21, 17};
  c.pool_padding = {0, 0, 0, 0};
  c.ceil_mode = true;
  ExpectTheBitsOfTheParts(c);
  c.pool_dilation = {3, 2}, c.dilation = {2, 1};
  ExpectTheBitsOfTheParts(c);
}

// Rows that see nothing but padding: of the convolution, and of the pool (which a graph cannot have).
TEST(Conv2dMaxPool2d, RowsOfPaddingAlone) {
  Case c;
  c.input = {2, 3, 4, 4};
  c.padding = {5, 1, 4, 1};
  ExpectTheBitsOfTheParts(c);
  c = Case();
  c.pool_kernel = {1, 1}, c.pool_stride = {1, 1};
  ExpectTheBitsOfTheParts(c);
}

TEST(Conv2dMaxPool2d, NoImages) {
  Case c;
  c.input[0] = 0;
  const Layer layer(c);
  EXPECT_EQ(layer.Run(Create(layer.whole), Tensor(layer.whole.input(0)), 2).num_elements(), 0);
}

TEST(Conv2dMaxPool2d, RandomLayers) {
  std::mt19937 random(5);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int made = 0;
  for (uint64_t seed = 0; made < 60; ++seed) {
    Case c;
    c.groups = between(0, 3) == 0 ? 2 : 1;
    c.input = {between(1, 3), c.groups * between(1, 5), between(1, 24), between(1, 12)};
    c.out_channels = c.groups * between(1, 20);
    c.kernel = {between(1, 5), between(1, 4)}, c.stride = {between(1, 3), between(1, 2)};
    c.padding = {between(0, 3), between(0, 2), between(0, 3), between(0, 2)};
    c.dilation = {between(1, 2), between(1, 2)};
    c.pool_kernel = {between(1, 4), between(1, 3)}, c.pool_stride = {between(1, 4), between(1, 2)};
    c.pool_dilation = {between(1, 2), 1};
    c.pool_padding = {between(0, c.pool_kernel[0] - 1), 0, between(0, c.pool_kernel[0] - 1), c.pool_kernel[1] - 1};
    c.ceil_mode = between(0, 1) == 1, c.relu = between(0, 1) == 1, c.bias = between(0, 1) == 1;
    c.input_type = between(0, 1) == 1 ? DType::kU8 : DType::kI8;
    c.output_type = between(0, 1) == 1 ? DType::kU8 : DType::kI8;
    c.input_zero_point = static_cast<int32_t>(c.input_type == DType::kU8 ? between(0, 255) : between(-128, 127));
    c.output_zero_point = static_cast<int32_t>(c.output_type == DType::kU8 ? between(0, 255) : between(-128, 127));
    const int64_t h = c.input[2] + c.padding[0] + c.padding[2] - (c.kernel[0] - 1) * c.dilation[0];
    const int64_t w = c.input[3] + c.padding[1] + c.padding[3] - (c.kernel[1] - 1) * c.dilation[1];
    if (h < 1 || w < 1) continue;
    if ((h - 1) / c.stride[0] + 1 + c.pool_padding[0] + c.pool_padding[2] <=
        (c.pool_kernel[0] - 1) * c.pool_dilation[0])
      continue;
    if ((w - 1) / c.stride[1] + 1 + c.pool_padding[3] < c.pool_kernel[1]) continue;
    ++made;
    ExpectTheBitsOfTheParts(c, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Create, ChoosesBandsThatFitTheCache) {
  Case c;
  c.input = {1, 64, 56, 56};
  c.out_channels = 64;
  const auto kernel = Create(Layer(c).whole);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_THAT((*kernel)->variant(), HasSubstr("bands"));
  EXPECT_GT((*kernel)->scratch_bytes(), 0);
}

TEST(Create, SaysWhatIsWrong) {
  const auto message = [](const Case& c, auto edit) {
    Layer layer(c);
    edit(layer.whole);
    return std::string(Create(layer.whole).status().message());
  };
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.parameters.erase("weight"); }), HasSubstr("a constant weight"));
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.inputs.push_back(d.inputs[0]); }), HasSubstr("one operand"));
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.inputs[0]->shape.pop_back(); }), HasSubstr("wanted rank 4"));
  EXPECT_THAT(message(Case(),
                      [](KernelDesc& d) {
                        d.attributes.insert_or_assign("stride", Ints{0, 1});
                      }),
              HasSubstr("stride is [0,1], wanted 2 values in [1, 2^20]"));
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.attributes.insert_or_assign("pool_stride", Ints{2}); }),
              HasSubstr("stride is [2], wanted 2 values"));
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.outputs[0].shape[2] += 1; }), HasSubstr("wanted 10"));
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.outputs[0] = kernels::Floats(d.outputs[0].shape); }),
              HasSubstr("f32"));
  EXPECT_THAT(message(Case(), [](KernelDesc& d) { d.attributes.insert_or_assign("activation", "elu"); }),
              HasSubstr("elu"));
}

}  // namespace
}  // namespace fuselage::int8::conv2d_max_pool2d
