// Each kernel against its definition, to the bit, on every instruction set. Their distance from double is in
// runtime/fp32_test.cc.
#include "kernels/reproducible/reproducible.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/reproducible/emulated.h"

namespace fuselage::reproducible {
namespace {

using kernels::Floats;
using kernels::GuardedMemory;
using kernels::Isa;
using kernels::KernelDesc;
using Ints = std::vector<int64_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The table's rows that this CPU runs, and the emulated one.
std::vector<Primitives> Testable() {
  std::vector<Primitives> rows = {EmulatedAvx512()};
  for (const Primitives& row : AllPrimitives()) {
    if (kernels::CpuSupports(row.isa)) rows.push_back(row);
  }
  return rows;
}

struct RowName {
  std::string operator()(const ::testing::TestParamInfo<Primitives>& info) const {
    return kernels::TestName(info.param.name);
  }
};

// Values of many magnitudes, denormals too; with `special`, infinities, NaNs and zeros of both signs among them.
void Fill(float* values, int64_t n, uint64_t seed, bool special) {
  const Tensor random = SeededTensor(Floats({n}), seed);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = std::ldexp(random.data<float>()[i], static_cast<int>((i * 7 + seed) % 23) - 11);
    if (i % 29 == 3) values[i] *= 1e-38f;
    if (i % 31 == 5) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
    if (!special) continue;
    if (i % 37 == 7) values[i] = i % 2 == 0 ? kInfinity : -kInfinity;
    if (i % 97 == 11) values[i] = NAN;
  }
}

// Equal bits, or both NaN.
::testing::AssertionResult Same(const float* found, const float* wanted, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(found + i, wanted + i, 4) == 0 || (std::isnan(found[i]) && std::isnan(wanted[i]))) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << found[i] << ", wanted " << wanted[i];
  }
  return ::testing::AssertionSuccess();
}

class PrimitivesTest : public ::testing::TestWithParam<Primitives> {};

TEST_P(PrimitivesTest, TileIsChains) {
  const Primitives& p = GetParam();
  for (const bool special : {false, true}) {
    for (const int64_t depth : {0, 1, 2, 31, 255, 256}) {
      const int64_t stride = p.columns + 3;
      GuardedMemory a(p.rows * kRowStride * 4, 4), b(depth * p.columns * 4, 8), sums(p.rows * stride * 4, 12);
      Fill(a.as<float>(), p.rows * kRowStride, depth + 1, special);
      Fill(b.as<float>(), depth * p.columns, depth + 2, special);
      Fill(sums.as<float>(), p.rows * stride, depth + 3, false);
      std::vector<float> wanted(sums.as<float>(), sums.as<float>() + p.rows * stride);
      for (int64_t i = 0; i < p.rows; ++i) {
        for (int64_t j = 0; j < p.columns; ++j) {
          for (int64_t k = 0; k < depth; ++k) {
            float& sum = wanted[i * stride + j];
            sum = std::fma(a.as<float>()[i * kRowStride + k], b.as<float>()[k * p.columns + j], sum);
          }
        }
      }
      p.tile(a.as<float>(), b.as<float>(), depth, sums.as<float>(), stride);
      EXPECT_TRUE(Same(sums.as<float>(), wanted.data(), p.rows * stride)) << depth << " deep, special: " << special;
      EXPECT_TRUE(sums.guards_intact());
    }
  }
}

TEST_P(PrimitivesTest, DepthwiseIsChains) {
  constexpr int64_t kTaps = 9;
  for (const bool special : {false, true}) {
    for (const int64_t channels : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 95}) {
      GuardedMemory x(kTaps * channels * 4, 4), w(kTaps * channels * 4, 8), sums(channels * 4, 12);
      Fill(x.as<float>(), kTaps * channels, channels, special);
      Fill(w.as<float>(), kTaps * channels, channels + 1, special);
      Fill(sums.as<float>(), channels, channels + 2, false);
      const float* taps[kTaps];
      for (int64_t t = 0; t < kTaps; ++t) taps[t] = x.as<float>() + (kTaps - 1 - t) * channels;
      std::vector<float> wanted(sums.as<float>(), sums.as<float>() + channels);
      for (int64_t t = 0; t < kTaps; ++t) {
        for (int64_t c = 0; c < channels; ++c)
          wanted[c] = std::fma(taps[t][c], w.as<float>()[t * channels + c], wanted[c]);
      }
      GetParam().depthwise(taps, w.as<float>(), kTaps, channels, sums.as<float>());
      EXPECT_TRUE(Same(sums.as<float>(), wanted.data(), channels)) << channels << " channels, special: " << special;
      EXPECT_TRUE(sums.guards_intact());
    }
  }
}

TEST_P(PrimitivesTest, ExponentialsHaveTheBitsOfScalar) {
  for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 33, 1000}) {
    GuardedMemory x(n * 4, 4), y(n * 4, 8);
    std::vector<float> wanted(n);
    for (int64_t i = 0; i < n; ++i) x.as<float>()[i] = 3.0f - 0.11f * static_cast<float>(i % 900);
    if (n > 500) x.as<float>()[400] = -kInfinity;
    if (n > 500) x.as<float>()[500] = NAN;
    scalar::Exponentials(x.as<float>(), 3.0f, n, wanted.data());
    GetParam().exponentials(x.as<float>(), 3.0f, n, y.as<float>());
    EXPECT_TRUE(Same(y.as<float>(), wanted.data(), n)) << n;
    EXPECT_TRUE(y.guards_intact());
    if (n < 500) continue;
    EXPECT_EQ(y.as<float>()[400], 0.0f);
    EXPECT_TRUE(std::isnan(y.as<float>()[500]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PrimitivesTest, ::testing::ValuesIn(Testable()), RowName());

// --- Kernels, on all rows and several numbers of threads.

void ExpectSame(KernelDesc desc, const std::vector<const Tensor*>& inputs, const Tensor& wanted) {
  for (const Primitives& row : Testable()) {
    kernels::KernelRegistry registry;
    RegisterWith({&row, 1}, registry);
    desc.isa = row.isa;
    for (const int threads : {1, 3}) {
      desc.threads = threads;
      const auto kernel = registry.FindOrNull(desc.op)->create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      kernels::TestThreads parallel(threads);
      const absl::StatusOr<Tensor> found = kernels::RunKernel(**kernel, inputs, &parallel);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_TRUE(Same(found->data<float>(), wanted.data<float>(), wanted.num_elements()))
          << row.name << " on " << threads << " threads";
    }
  }
}

struct ConvCase {
  int64_t batch, channels, height, width, filters, kernel_height, kernel_width;
  Ints stride, dilation, padding;
  int64_t groups;
  bool bias, residual, relu;
};

// The definition, element by element.
Tensor Convolve(const ConvCase& c, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor* residual,
                const TensorType& type) {
  Tensor y(type);
  const int64_t in = c.channels / c.groups, out = c.filters / c.groups;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t f = 0; f < c.filters; ++f) {
      for (int64_t oh = 0; oh < type.shape[2]; ++oh) {
        for (int64_t ow = 0; ow < type.shape[3]; ++ow) {
          float sum = c.bias ? bias.data<float>()[f] : 0.0f;
          for (int64_t i = 0; i < c.kernel_height; ++i) {
            for (int64_t j = 0; j < c.kernel_width; ++j) {
              const int64_t h = oh * c.stride[0] - c.padding[0] + i * c.dilation[0];
              const int64_t v = ow * c.stride[1] - c.padding[1] + j * c.dilation[1];
              const bool inside = h >= 0 && h < c.height && v >= 0 && v < c.width;
              for (int64_t k = 0; k < in; ++k) {
                const float value =
                    inside ? x.data<float>()[kernels::Index(x.type(), n, f / out * in + k, h, v)] : 0.0f;
                sum = std::fma(value, w.data<float>()[((f * in + k) * c.kernel_height + i) * c.kernel_width + j], sum);
              }
            }
          }
          const int64_t at = kernels::Index(type, n, f, oh, ow);
          if (residual != nullptr) sum += residual->data<float>()[at];
          y.data<float>()[at] = c.relu && sum < 0 ? 0.0f : sum;
        }
      }
    }
  }
  return y;
}

TEST(Conv, HasTheBitsOfItsDefinition) {
  const ConvCase cases[] = {
      {1, 3, 19, 17, 20, 7, 7, {2, 2}, {1, 1}, {3, 2, 3, 4}, 1, true, false, true},  // A stem.
      {2, 40, 5, 6, 33, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, true, true, true},    // 360 deep.
      {1, 5, 13, 11, 7, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, false, true, false},  // 143 rows.
      {1, 9, 3, 2, 530, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, true, false, false},  // 530 columns.
      {1, 6, 9, 10, 8, 3, 2, {1, 2}, {2, 3}, {2, 3, 1, 0}, 2, true, false, true},    // Dilated, in groups.
      {2, 33, 7, 6, 33, 3, 3, {2, 1}, {1, 2}, {1, 2, 0, 2}, 33, true, true, true},   // Depthwise.
      {1, 4, 6, 6, 12, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}, 4, false, false, false},  // Three filters a channel.
      {1, 2, 3, 3, 3, 5, 5, {1, 1}, {1, 1}, {4, 4, 4, 4}, 1, true, false, false},    // Windows in the padding.
      {1, 1, 1, 1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, true, false, false},
  };
  for (const ConvCase& c : cases) {
    for (const Layout layout : {Layout::kNhwc, Layout::kRowMajor}) {
      SCOPED_TRACE(::testing::Message() << c.channels << " channels to " << c.filters << ", layout "
                                        << static_cast<int>(layout));
      const auto size = [&](int axis, int64_t in, int64_t kernel) {
        return (in + c.padding[axis] + c.padding[2 + axis] - (kernel - 1) * c.dilation[axis] - 1) / c.stride[axis] + 1;
      };
      Tensor x(Floats({c.batch, c.channels, c.height, c.width}, layout));
      Tensor w(Floats({c.filters, c.channels / c.groups, c.kernel_height, c.kernel_width}));
      Tensor residual(
          Floats({c.batch, c.filters, size(0, c.height, c.kernel_height), size(1, c.width, c.kernel_width)}, layout));
      Tensor bias(Floats({c.filters}));
      uint64_t seed = 1;
      for (Tensor* tensor : {&x, &w, &residual, &bias})
        Fill(tensor->data<float>(), tensor->num_elements(), seed++, false);
      KernelDesc desc;
      desc.op = "conv2d";
      desc.attributes = {{"stride", Attribute(c.stride)},
                         {"dilation", Attribute(c.dilation)},
                         {"padding", Attribute(c.padding)},
                         {"groups", Attribute(c.groups)},
                         {"activation", Attribute(c.relu ? "relu" : "none")}};
      desc.inputs = {x.type(), c.residual ? std::optional<TensorType>(residual.type()) : std::nullopt};
      desc.outputs = {residual.type()};
      desc.parameters = {{"weight", &w}};
      if (c.bias) desc.parameters["bias"] = &bias;
      const Tensor* added = c.residual ? &residual : nullptr;
      ExpectSame(desc, {&x, added}, Convolve(c, x, w, bias, added, residual.type()));
      ConvCase plain = c;
      plain.relu = false;
      for (const char* function : {"hardswish", "leaky_relu(negative_slope=0.1)", "silu", "gelu", "mish",
                                   "leaky_relu(negative_slope=0.1), clamp(min=-0.05, max=0.5)"}) {
        desc.attributes.insert_or_assign("activation", Attribute(function));
        Tensor wanted = Convolve(plain, x, w, bias, added, residual.type());
        const Activation activation = ParseActivation(function).value();
        for (int64_t i = 0; i < wanted.num_elements(); ++i) {
          wanted.data<float>()[i] = activation(wanted.data<float>()[i]);
        }
        ExpectSame(desc, {&x, added}, wanted);
      }
    }
  }
}

// 300 deep, 100 rows, 530 columns: every kind of block; the right factors lie in both ways.
TEST(Gemm, HasTheBitsOfItsDefinition) {
  constexpr int64_t kRows = 100, kDeep = 300, kColumns = 530;
  for (const bool transposed : {false, true}) {
    Tensor a(Floats(transposed ? Shape{kDeep, kRows} : Shape{kRows, kDeep}));
    Tensor b(Floats(transposed ? Shape{kColumns, kDeep} : Shape{kDeep, kColumns})), c(Floats({1, kColumns}));
    uint64_t seed = 5;
    for (Tensor* tensor : {&a, &b, &c}) Fill(tensor->data<float>(), tensor->num_elements(), seed++, false);
    KernelDesc desc;
    desc.op = "gemm";
    desc.attributes = {{"alpha", Attribute(0.3)},
                       {"beta", Attribute(1.7)},
                       {"trans_a", Attribute(transposed)},
                       {"trans_b", Attribute(transposed)},
                       {"activation", Attribute("relu")}};
    desc.inputs = {a.type(), b.type(), c.type()};
    desc.outputs = {Floats({kRows, kColumns})};
    Tensor wanted(desc.output());
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < kDeep; ++k) {
          sum = std::fma(a.data<float>()[transposed ? k * kRows + i : i * kDeep + k],
                         b.data<float>()[transposed ? j * kDeep + k : k * kColumns + j], sum);
        }
        const float scaled = 0.3f * sum, added = 1.7f * c.data<float>()[j], value = scaled + added;
        wanted.data<float>()[i * kColumns + j] = value < 0 ? 0.0f : value;
      }
    }
    ExpectSame(desc, {&a, &b, &c}, wanted);
  }
}

TEST(Linear, HasTheBitsOfItsDefinition) {
  constexpr int64_t kRows = 6, kDeep = 40, kColumns = 17;
  Tensor x(Floats({2, 3, kDeep})), w(Floats({kColumns, kDeep})), b(Floats({kColumns}));
  uint64_t seed = 5;
  for (Tensor* tensor : {&x, &w, &b}) Fill(tensor->data<float>(), tensor->num_elements(), seed++, false);
  KernelDesc desc;
  desc.op = "linear";
  desc.inputs = {x.type()};
  desc.outputs = {Floats({2, 3, kColumns})};
  desc.parameters = {{"weight", &w}, {"bias", &b}};
  Tensor wanted(desc.output());
  for (const char* function : {"tanh", "relu"}) {
    desc.attributes = {{"activation", Attribute(function)}};
    const Activation activation = ParseActivation(function).value();
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        float sum = b.data<float>()[j];
        for (int64_t k = 0; k < kDeep; ++k) {
          sum = std::fma(x.data<float>()[i * kDeep + k], w.data<float>()[j * kDeep + k], sum);
        }
        wanted.data<float>()[i * kColumns + j] = activation(sum);
      }
    }
    ExpectSame(desc, {&x}, wanted);
  }
}

TEST(MaxPool, KeepsNanAndTakesMinusInfinityFromNothing) {
  KernelDesc desc;
  desc.op = "max_pool1d";
  desc.attributes = {{"kernel_size", Attribute(Ints{2})},
                     {"stride", Attribute(Ints{1})},
                     {"padding", Attribute(Ints{2, 2})},
                     {"dilation", Attribute(Ints{4})},
                     {"ceil_mode", Attribute(false)}};
  const Tensor x = Tensor::Of<float>({1, 1, 3}, {NAN, 2.0f, -kInfinity});
  desc.inputs = {x.type()};
  desc.outputs = {Floats({1, 1, 3})};
  ExpectSame(desc, {&x}, Tensor::Of<float>({1, 1, 3}, {-kInfinity, -kInfinity, NAN}));
}

TEST(Create, Declines) {
  kernels::KernelRegistry registry;
  Register(registry);
  KernelDesc desc;
  desc.op = "softmax";
  desc.attributes = {{"dim", Attribute(-1)}};
  desc.inputs = {TensorType{DType::kF64, {2, 3}, std::nullopt, Layout::kRowMajor}};
  desc.outputs = {*desc.inputs[0]};
  // Its reference evaluation would be another on another machine.
  EXPECT_EQ(registry.FindOrNull("softmax")->create(desc).status().code(), absl::StatusCode::kFailedPrecondition);
  desc.op = "log_softmax";
  EXPECT_EQ(registry.FindOrNull("log_softmax")->create(desc).status().code(), absl::StatusCode::kFailedPrecondition);
  desc.op = "tanh";
  desc.attributes = {};
  EXPECT_THAT(std::string(registry.FindOrNull("tanh")->create(desc).status().message()),
              ::testing::HasSubstr("the reference evaluation of tanh has other bits on other machines"));
  desc.op = "batch_norm";
  desc.attributes = {{"eps", Attribute(1e-5)}, {"training", Attribute(true)}};
  EXPECT_EQ(registry.FindOrNull("batch_norm")->create(desc).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::reproducible
