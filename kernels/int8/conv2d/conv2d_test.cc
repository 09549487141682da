// The scalar variant against exact integers and doubles, and every variant against the scalar one, byte for byte.
#include "kernels/int8/conv2d/conv2d.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/int8/conv2d/testing/compare.h"
#include "kernels/int8/conv2d/testing/testing.h"

namespace fuselage::int8::conv2d {
namespace {

using kernels::KernelDesc;

// A code as its value.
int Value(DType dtype, uint8_t bits) { return dtype == DType::kU8 ? bits : static_cast<int8_t>(bits); }

// sum (x - z_x) * w over logical NCHW indices, exactly: padding simply does not contribute.
int64_t ExactSum(const Instance& instance, int n, int oc, int oy, int ox) {
  const Case& c = instance.shape;
  const int channels = c.in_channels / c.groups, group = oc / (c.out_channels / c.groups);
  int64_t sum = 0;
  for (int ic = 0; ic < channels; ++ic) {
    for (int ky = 0; ky < c.kernel_height; ++ky) {
      for (int kx = 0; kx < c.kernel_width; ++kx) {
        const int y = oy * c.stride_y - c.top + ky * c.dilation_y, x = ox * c.stride_x - c.left + kx * c.dilation_x;
        if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
        const uint8_t bits =
            instance.input[((int64_t{n} * c.height + y) * c.width + x) * c.in_channels + group * channels + ic];
        const int64_t tap = ((int64_t{oc} * channels + ic) * c.kernel_height + ky) * c.kernel_width + kx;
        const int8_t w = instance.weight.data<int8_t>()[tap];
        sum += int64_t{Value(c.input_type, bits) - c.input_zero_point} * w;
      }
    }
  }
  return sum;
}

// The result by arithmetic.md's formulas, and how far the codes are from the real result computed in double.
void ExpectScalarExact(const Case& c, uint64_t seed) {
  const Instance instance(c, seed);
  const std::vector<uint8_t> out = RunVariant(Scalar(), instance);
  const QuantParams& weight_quant = *instance.weight.type().quant;
  int64_t index = 0;
  for (int n = 0; n < c.batch; ++n) {
    for (int y = 0; y < c.out_height(); ++y) {
      for (int x = 0; x < c.out_width(); ++x) {
        for (int oc = 0; oc < c.out_channels; ++oc, ++index) {
          const float step = instance.input_scale * weight_quant.scales[c.per_channel ? oc : 0];
          const int64_t sum = ExactSum(instance, n, oc, y, x);
          const float post_scale = c.post ? instance.post_scale.data<float>()[oc] : 1;
          const float post_shift = c.post ? instance.post_shift.data<float>()[oc] : 0;
          const double real_bias = c.bias == DType::kBool  ? 0.0
                                   : c.bias == DType::kF32 ? instance.bias.data<float>()[oc]
                                                           : instance.bias.data<int32_t>()[oc] * double{step};
          if (c.output_type == DType::kF32) {
            float found;
            std::memcpy(&found, out.data() + index * sizeof(float), sizeof(float));
            float wanted = c.activation(std::fma(static_cast<float>(sum), step, static_cast<float>(real_bias)));
            if (c.post) wanted = std::fma(wanted, post_scale, post_shift);
            ASSERT_EQ(found, wanted) << c.ToString() << " at " << index;
            continue;
          }
          const int found = Value(c.output_type, out[index]);
          const int64_t bias = c.bias == DType::kI32 ? instance.bias.data<int32_t>()[oc]
                               : c.bias == DType::kF32
                                   ? static_cast<int64_t>(std::nearbyint(instance.bias.data<float>()[oc] / step))
                                   : 0;
          // A function is of real values, a clamp is in codes.
          const float unit = c.activation.is_clamp() ? instance.output_scale : 1;
          float v = static_cast<float>(sum + bias) * (step / unit);
          double real = sum * double{step} + real_bias;
          if (c.residual_type) {
            const int r = Value(*c.residual_type, instance.residual[index]) - c.residual_zero_point;
            v = std::fma(static_cast<float>(r), instance.residual_scale / unit, v);
            real += r * double{instance.residual_scale};
          }
          if (!c.activation.is_clamp()) {
            v = elementwise::Activated(elementwise::ForCodes(*c.activation.function), v);
            v = c.post ? std::fma(v, post_scale / instance.output_scale, post_shift / instance.output_scale)
                       : v * (1 / instance.output_scale);
            real = c.activation(real) * post_scale + post_shift;
          }
          const IntegerRange range = RangeOf(c.output_type);
          const auto code = [&](float steps, int64_t lo, int64_t hi) {
            const float bounded = std::min(std::max(steps, -1e6f), 1e6f);
            return std::min(std::max(static_cast<int64_t>(std::nearbyint(bounded)) + c.output_zero_point, lo), hi);
          };
          const int64_t lo = code(c.activation.min / instance.output_scale, range.min, range.max);
          const int64_t hi = code(c.activation.max / instance.output_scale, range.min, range.max);
          const int64_t wanted = code(v, lo, hi);
          ASSERT_EQ(found, wanted) << c.ToString() << " at " << index;
          const double ideal =
              std::min<double>(std::max<double>(real / instance.output_scale + c.output_zero_point, lo), hi);
          // Half a step of rounding, and the bias's own rounding to steps of s_x*s_w; no function's slope is above 1.2,
          // or farther than 2^-13 from what stands for it.
          ASSERT_NEAR(found, ideal,
                      0.501 + std::fabs(post_scale) * (1.2 * 0.51 * step + 0x1p-13) / instance.output_scale)
              << c.ToString() << " at " << index;
        }
      }
    }
  }
}

TEST(Conv2dTest, ScalarEqualsExactArithmetic) {
  int ran = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Case c = RandomCase(seed);
    if (!c.valid()) continue;
    ExpectScalarExact(c, seed);
    if (HasFatalFailure()) return;
    ++ran;
  }
  EXPECT_GT(ran, 200);
}

TEST(Conv2dTest, VariantsEqualScalarOnRandomShapes) {
  std::map<std::string, int> ran;
  int cases = 0;
  for (uint64_t seed = 1000; seed < 3000; ++seed) {
    ExpectVariantsEqual(RandomCase(seed), seed, &ran);
    if (HasFailure()) return;
    cases += RandomCase(seed).valid();
  }
  ExpectRan(ran, 1200);
  EXPECT_EQ(ran["amx_emulated"], cases);
}

TEST(Conv2dTest, EveryKernelStrideDilationAndPadding) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (int kernel : {1, 2, 3, 5, 7}) {
    for (int stride = 1; stride <= 3; ++stride) {
      for (int dilation = 1; dilation <= 2; ++dilation) {
        for (int pad = 0; pad <= 3; ++pad) {
          for (int groups : {1, 3}) {
            Case c;
            c.in_channels = 6, c.out_channels = 18, c.height = 9, c.width = 11;
            c.kernel_height = c.kernel_width = kernel;
            c.stride_y = c.stride_x = stride;
            c.dilation_y = c.dilation_x = dilation;
            c.top = pad, c.left = pad / 2, c.bottom = (pad + 1) / 2, c.right = pad;
            c.groups = groups;
            c.input_zero_point = 255;
            c.output_zero_point = 7;
            ExpectVariantsEqual(c, ++seed, &ran);
          }
        }
      }
    }
  }
}

// Results beyond what an int32 holds, before they are clamped.
TEST(Conv2dTest, HugeMultipliersSaturate) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (const float gain : {1e3f, 1e6f, 1e9f}) {
    for (const DType type : {DType::kU8, DType::kI8}) {
      for (const bool residual : {false, true}) {
        Case c;
        c.gain = gain;
        c.output_type = type;
        if (residual) c.residual_type = type;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  EXPECT_GT(ran.size(), 2);
  for (const auto& [name, count] : ran) EXPECT_EQ(count, 12) << name;
}

// Sums end up side by side, in lanes of another number than they are.
TEST(Conv2dTest, FewOutputChannels) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (int channels = 1; channels <= 9; ++channels) {
    for (int width : {1, 5, 16, 48, 61, 97}) {
      for (int kernel : {1, 3}) {
        for (const DType output : {DType::kU8, DType::kF32}) {
          Case c;
          c.in_channels = width % 2 ? 24 : 7, c.out_channels = channels;
          c.height = 3, c.width = width;
          c.kernel_height = c.kernel_width = kernel;
          c.top = c.left = c.bottom = c.right = kernel / 2;
          c.output_type = output;
          if (output != DType::kF32 && width > 5) c.residual_type = channels % 2 ? DType::kU8 : DType::kI8;
          ExpectVariantsEqual(c, ++seed, &ran);
          c.in_channels = channels, c.groups = channels % 2 == 0 && width == 16 ? 2 : channels;
          ExpectVariantsEqual(c, ++seed, &ran);
        }
      }
    }
  }
  EXPECT_GE(ran["avx2 few"], 300);
}

TEST(Conv2dTest, EveryChannelCountAndWidth) {
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (int channels = 1; channels <= 40; ++channels) {
    for (int kernel : {1, 3}) {
      for (bool depthwise : {false, true}) {
        Case c;
        c.in_channels = channels, c.out_channels = depthwise ? channels : 41 - channels;
        c.groups = depthwise ? channels : 1;
        c.height = 6, c.width = 7;
        c.kernel_height = c.kernel_width = kernel;
        c.input_zero_point = 128;
        c.activation = Activation::Relu();
        c.residual_type = channels % 2 ? DType::kU8 : DType::kI8;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  // Steps of 64 channels, whole and begun; read in place where nothing is padded.
  for (int channels : {63, 64, 65, 96, 128, 129, 200, 512}) {
    for (int kernel : {1, 3}) {
      for (int pad : {0, kernel / 2}) {
        Case c;
        c.in_channels = channels, c.out_channels = 21, c.height = 5, c.width = 9;
        c.kernel_height = c.kernel_width = kernel;
        c.top = c.left = c.bottom = c.right = pad;
        c.input_type = channels % 2 ? DType::kI8 : DType::kU8;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  // One, two and four panels of output channels at once, and what is left of them.
  for (int channels : {16, 31, 32, 48, 64, 80, 112, 128}) {
    for (int zero_point : {0, 3}) {
      for (int residual = 0; residual < 4; ++residual) {
        Case c;
        c.out_channels = channels, c.height = 5, c.width = 11;
        c.output_zero_point = zero_point;
        if (residual > 0) c.residual_type = residual == 1 ? DType::kI8 : DType::kU8;
        c.residual_zero_point = residual == 2 ? 3 : 0;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  for (int width = 1; width <= 34; ++width) {
    for (int stride = 1; stride <= 2; ++stride) {
      Case c;
      c.in_channels = 16, c.out_channels = 32, c.height = 5, c.width = width;
      c.stride_y = c.stride_x = stride;
      ExpectVariantsEqual(c, ++seed, &ran);
    }
  }
}

// Rows of which one alone is more than a block of rows may take: of many channels a block has a part of it.
TEST(Conv2dTest, LongRows) {
  std::map<std::string, int> ran;
  int cases = 0;
  for (const int kernel_height : {1, 3}) {
    for (const int kernel_width : {1, 3}) {
      for (const int stride : {1, 2, 3}) {
        for (const int channels : {4, 7, 40}) {
          Picker pick(++cases);
          Case c;
          c.in_channels = channels, c.out_channels = 9 + pick(20);
          c.height = 1 + pick(3), c.width = stride * (1560 + pick(60)) + pick(3);
          c.kernel_height = kernel_height, c.kernel_width = kernel_width;
          c.stride_x = stride, c.stride_y = 1 + pick(2), c.dilation_x = 1 + pick(2);
          c.top = c.bottom = 1, c.left = pick(4), c.right = pick(4);
          c.threads = 1 + pick(3);
          PickOperands(pick, &c);
          ExpectVariantsEqual(c, cases, &ran);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated"], cases);
}

// The proof in winograd.cc holds up to sum|w| < 2^18; at the last channel counts of one part, two and three, and at the
// first ones beyond, the extreme values still come out right, whether weights are transformed late or once.
TEST(Conv2dTest, WinogradUpToItsBound) {
  std::map<std::string, int> ran;
  for (const Fill fill : {Fill::kSaturated, Fill::kAlternating}) {
    for (const int channels : {227, 228, 229, 230, 448, 449, 464, 672, 673}) {
      for (const DType type : {DType::kU8, DType::kI8}) {
        Case c;
        c.in_channels = channels, c.out_channels = channels % 2 ? 16 : 40;
        c.height = 6, c.width = 9;  // The first output of a tile is also one without padding.
        c.fill = fill;
        c.input_type = type;
        c.threads = 1 + channels % 3;
        ExpectVariantsEqual(c, 1, &ran);
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated winograd"], 36);
}

// Parts of groups, of phases, of one block of tiles and of several, and with all operands.
TEST(Conv2dTest, WinogradInParts) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Picker pick(seed);
    Case c;
    PickOperands(pick, &c);
    c.fill = Fill::kAlternating;
    c.groups = 1 + pick(2);
    c.in_channels = c.groups * 2 * (150 + pick(150));
    c.out_channels = c.groups == 1 ? 1 + pick(70) : c.groups * 16 * (1 + pick(3));
    c.height = 1 + pick(8), c.width = 1 + pick(seed == 0 ? 150 : 20);
    c.dilation_y = c.top = c.bottom = 1 + pick(2);
    c.threads = 1 + pick(3);
    ExpectVariantsEqual(c, seed, &ran);
  }
  EXPECT_EQ(ran["avx512_vnni_emulated winograd"], 12);
}

// Phases of all sizes, and groups of which some have weights that are transformed late.
TEST(Conv2dTest, WinogradOfDilationsAndGroups) {
  std::map<std::string, int> ran;
  uint64_t seed = 0;
  for (int dilation_y = 1; dilation_y <= 5; dilation_y += 2) {
    for (int dilation_x = 1; dilation_x <= 4; ++dilation_x) {
      for (int size : {1, 6, 13, 19}) {
        Case c;
        c.batch = 1 + size % 2;
        c.in_channels = 20, c.out_channels = 40;
        c.height = size, c.width = 20 - size;
        c.dilation_y = c.top = c.bottom = dilation_y;
        c.dilation_x = c.left = c.right = dilation_x;
        c.threads = 1 + size % 3;
        if (size > 6) c.residual_type = DType::kU8;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated winograd"], 48);
  for (int groups : {2, 5}) {
    for (int in_channels : {2, 18, 64}) {
      for (int out_channels : {16, 48, 160}) {
        Case c;
        c.groups = groups;
        c.in_channels = groups * in_channels, c.out_channels = groups * out_channels;
        c.height = c.width = 6;
        c.dilation_x = groups / 2;
        c.threads = 1 + in_channels % 3;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
  EXPECT_EQ(ran["avx512_vnni_emulated winograd"], 48 + 18);
}

// Sequences, whose columns threads share: parts that begin or end in the padding, strides, groups and all types.
TEST(Conv2dTest, ThreadsShareTheColumnsOfARow) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Picker pick(seed);
    Case c;
    PickOperands(pick, &c);
    c.groups = seed % 4 == 0 ? 2 : 1;
    c.in_channels = c.groups * (20 + pick(60)),
    c.out_channels = c.groups * (seed % 5 == 0 ? 1 + pick(8) : 20 + pick(60));
    if (seed % 6 == 1) c.groups = c.in_channels = c.out_channels = 16 * (1 + pick(4));
    c.height = c.kernel_height = 1, c.width = 200 + pick(900);
    c.kernel_width = 1 + pick(9);
    c.stride_x = 1 + pick(4) / 2, c.dilation_x = 1 + pick(3);
    c.left = pick((c.kernel_width - 1) * c.dilation_x + 1), c.right = pick((c.kernel_width - 1) * c.dilation_x + 1);
    c.threads = 2 + pick(3);
    ExpectVariantsEqual(c, seed, &ran);
  }
  EXPECT_EQ(ran["avx512_vnni_emulated"], 60);
}

// An image of one column gives what that of one row does.
TEST(Conv2dTest, AColumnIsARow) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Picker pick(seed);
    Case row;
    PickOperands(pick, &row);
    row.batch = 1 + pick(2);
    row.groups = seed % 4 == 0 ? 2 : 1;
    row.in_channels = row.groups * (1 + pick(40)), row.out_channels = row.groups * (1 + pick(40));
    row.height = row.kernel_height = 1, row.width = 20 + pick(60);
    row.kernel_width = 1 + pick(7), row.stride_x = 1 + pick(2), row.dilation_x = 1 + pick(2);
    row.top = row.bottom = 0, row.left = pick(4), row.right = pick(4);
    Case column = row;
    std::swap(column.height, column.width);
    std::swap(column.kernel_height, column.kernel_width);
    std::swap(column.stride_y, column.stride_x);
    std::swap(column.dilation_y, column.dilation_x);
    std::swap(column.top, column.left);
    std::swap(column.bottom, column.right);
    EXPECT_EQ(RunVariant(Scalar(), Instance(column, seed)), RunVariant(Scalar(), Instance(row, seed))) << seed;
    ExpectVariantsEqual(column, seed, &ran);
  }
}

// Dilations about as large as the image, whose padding most taps lie in: blocks of rows, several panels and chunks.
TEST(Conv2dTest, TapsOutsideTheInput) {
  std::map<std::string, int> ran;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    Picker pick(seed);
    Case c;
    PickOperands(pick, &c);
    c.batch = 1 + pick(2);
    c.groups = seed % 4 == 0 ? 1 + pick(3) : 1;
    c.in_channels = c.groups * (seed % 10 == 0 ? 2100 : 1 + pick(70));
    c.out_channels = c.groups * (1 + pick(150));
    c.height = 1 + pick(9), c.width = seed % 5 == 0 ? 100 + pick(60) : 1 + pick(14);
    c.kernel_height = 1 + 2 * pick(2), c.kernel_width = 3 + 2 * pick(2);
    c.stride_y = 1 + pick(3) / 2, c.stride_x = 1 + pick(3) / 2;
    c.dilation_y = 1 + pick(c.height + 2), c.dilation_x = std::max(1, c.width / 2 + pick(c.width));
    c.top = c.bottom = c.kernel_height / 2 * c.dilation_y;
    c.left = c.kernel_width / 2 * c.dilation_x, c.right = c.left + pick(3);
    if (seed % 3 == 0) std::swap(c.left, c.right);
    c.threads = 1 + pick(3);
    ExpectVariantsEqual(c, seed, &ran);
  }
  EXPECT_GE(ran["avx512_vnni_emulated taps"], 60);
}

// The layers of ResNet18 with fewer channels where that does not change the path, on one, two and three threads.
TEST(Conv2dTest, NetworkShapesOnSeveralThreads) {
  struct Layer {
    int ic, size, oc, kernel, stride, pad;
  };
  const Layer layers[] = {{3, 64, 64, 7, 2, 3},  {64, 20, 64, 3, 1, 1},  {64, 20, 48, 3, 2, 1}, {32, 28, 64, 1, 2, 0},
                          {96, 14, 80, 3, 1, 1}, {256, 7, 128, 3, 1, 1}, {512, 7, 64, 3, 1, 1}, {256, 8, 64, 3, 2, 1}};
  uint64_t seed = 1;
  std::map<std::string, int> ran;
  for (const Layer& layer : layers) {
    for (int threads = 1; threads <= 3; ++threads) {
      for (int batch : {1, 3}) {
        if (batch > 1 && threads == 1) continue;
        Case c;
        c.batch = batch;
        c.in_channels = layer.ic, c.out_channels = layer.oc, c.height = c.width = layer.size;
        c.kernel_height = c.kernel_width = layer.kernel;
        c.stride_y = c.stride_x = layer.stride;
        c.top = c.left = c.bottom = c.right = layer.pad;
        c.threads = threads;
        c.activation = Activation::Relu();
        if (layer.stride == 1) c.residual_type = DType::kU8;
        ExpectVariantsEqual(c, ++seed, &ran);
      }
    }
  }
}

TEST(Conv2dTest, TheReferenceIsScalar) {
  EXPECT_EQ(Scalar().isa, kernels::Isa::kScalar);
  EXPECT_STREQ(Scalar().name, "scalar");
}

// The other tests pass over what this machine does not run.
TEST(Conv2dTest, ThisMachineRunsEveryVariant) {
  for (const Variant& variant : Variants()) {
    if (!kernels::CpuSupports(variant.isa)) GTEST_SKIP() << "this CPU has no " << kernels::IsaName(variant.isa);
  }
}

TEST(Conv2dTest, CreateObeysTheInstructionSet) {
  const Instance instance(Case(), 1);
  for (const kernels::Isa isa : kernels::AllIsas()) {
    KernelDesc desc = instance.Desc();
    desc.isa = isa;
    auto kernel = Create(desc);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const std::string chosen = (*kernel)->variant();
    const auto it =
        std::find_if(Variants().begin(), Variants().end(), [&](const Variant& v) { return v.name == chosen; });
    ASSERT_NE(it, Variants().end());
    EXPECT_TRUE(isa.Includes(it->isa)) << chosen << " on " << kernels::IsaName(isa);
    EXPECT_TRUE(kernels::CpuSupports(it->isa));
    EXPECT_GE((*kernel)->weight_bytes(), 16 * 16 * 9);
    EXPECT_EQ(EntryOf(Variants()).Supports(desc).value(), (*kernel)->variant());
    EXPECT_EQ((*kernel)->output_scale(), instance.output_scale);
  }
}

// An image of 14x14: with a dilation of 12 most taps lie outside, with one of 2 few do.
TEST(Conv2dTest, LeavesOutTapsOutsideTheInput) {
  for (const kernels::Isa isa : kernels::AllIsas()) {
    if (!isa.Includes(kernels::Isa::kAvx2) || isa == kernels::Isa::kAmx || !kernels::CpuSupports(isa)) continue;
    for (const int dilation : {2, 12}) {
      Case c = SquareCase(/*in_channels=*/64, /*size=*/14, /*out_channels=*/32, /*kernel=*/3, /*stride=*/1);
      c.dilation_y = c.dilation_x = c.top = c.bottom = c.left = c.right = dilation;
      const Instance instance(c, 1);
      KernelDesc desc = instance.Desc();
      desc.isa = isa;
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const std::string chosen = (*kernel)->variant();
      EXPECT_EQ(chosen.find("taps") != std::string::npos, dilation == 12) << chosen;
    }
  }
}

TEST(Conv2dTest, DeclinesWhatIsWrong) {
  const Instance instance(Case(), 1);
  const auto code = [&](auto edit) {
    KernelDesc desc = instance.Desc();
    edit(desc);
    EXPECT_EQ(EntryOf(Variants()).Supports(desc).status(), Create(desc).status());
    return Create(desc).status().code();
  };
  EXPECT_EQ(code([](KernelDesc&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code([](KernelDesc& d) { d.outputs[0].shape[2] = 9; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("groups") = 3; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("groups") = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("stride") = std::vector<int64_t>{0, 1};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("padding") = std::vector<int64_t>{1, 1};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("dilation") = std::vector<int64_t>{1LL << 40, 1};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("dilation") = std::vector<int64_t>{9, 9};
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.attributes.at("activation") = "clamp(min=0, max=6)";
              d.outputs[0].dtype = DType::kF32;
              d.outputs[0].quant.reset();
            }),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](KernelDesc& d) { d.attributes.at("activation") = "elu"; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.inputs[0]->quant.reset(); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) { d.inputs[0]->dtype = DType::kF32; }), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](KernelDesc& d) { d.parameters.erase("weight"); }), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.inputs[1] = d.outputs[0];
              d.inputs[1]->shape[1] = 3;
            }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](KernelDesc& d) {
              d.inputs[1] = d.outputs[0];
              d.outputs[0].dtype = DType::kF32;
            }),
            absl::StatusCode::kUnimplemented);
}

TEST(Conv2dTest, RegistersOnce) {
  kernels::KernelRegistry registry;
  Register(registry);
  EXPECT_NE(registry.FindOrNull("int8.conv2d"), nullptr);
}

}  // namespace
}  // namespace fuselage::int8::conv2d
