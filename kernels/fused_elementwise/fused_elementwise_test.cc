#include "kernels/fused_elementwise/fused_elementwise.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/elementwise.h"
#include "kernels/core/requantize.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"

namespace fuselage::fused_elementwise {
namespace {

using kernels::Codes;
using kernels::Floats;
using kernels::GuardedMemory;
using kernels::Isa;
using kernels::KernelDesc;
using ::testing::HasSubstr;

// A chain of every step, so that any difference anywhere shows.
const std::vector<std::string>& EveryStep() {
  static const auto& steps = *new std::vector<std::string>{"add(0, 1, alpha=0.5)",
                                                           "tanh(2)",
                                                           "sigmoid(2)",
                                                           "mul(3, 4)",
                                                           "sub(5, 1)",
                                                           "leaky_relu(6, negative_slope=0.3)",
                                                           "gelu(7)",
                                                           "silu(8)",
                                                           "gelu(2, approximate=\"tanh\")",
                                                           "add(9, 10)",
                                                           "hardswish(11)",
                                                           "hardsigmoid(2, alpha=0.25, beta=0.5)",
                                                           "add(12, 13)",
                                                           "relu(1)",
                                                           "clamp(15, max=2.0, min=-1.0)",
                                                           "div(14, 4)",
                                                           "add(17, 16, activation=\"relu\")"};
  return steps;
}

KernelDesc Desc(std::vector<TensorType> inputs, TensorType output, std::vector<std::string> steps) {
  KernelDesc desc;
  desc.op = output.quant ? "int8.fused_elementwise" : "fused_elementwise";
  for (TensorType& input : inputs) desc.inputs.push_back(std::move(input));
  desc.outputs = {std::move(output)};
  desc.attributes = {{"steps", Attribute(std::move(steps))}};
  return desc;
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, HasTheBitsOfScalarInFloats) {
  const auto program = *CompileElementwise(*ParseElementwiseSteps(EveryStep(), 2));
  const Params params = {2, program.data(), static_cast<int32_t>(program.size())};
  std::vector<float> scratch(kBlock * program.size());
  for (const int64_t n : std::vector<int64_t>{0, 1, 7, 8, 9, 15, 16, 17, 31, 33, kBlock - 1, kBlock}) {
    GuardedMemory a(4 * n, 4), b(4 * n, 8), wanted(4 * n), found(4 * n, 4);
    for (int64_t i = 0; i < n; ++i) {
      a.as<float>()[i] = std::ldexp(static_cast<float>(i % 17 - 8) + 0.37f, static_cast<int>(i % 12) - 8);
      b.as<float>()[i] = std::ldexp(static_cast<float>(i % 13 - 6) + 0.11f, static_cast<int>(i % 7) - 4);
      if (i == 100) a.as<float>()[i] = NAN;
      if (i == 200) a.as<float>()[i] = INFINITY;
      if (i == 300) b.as<float>()[i] = -1e30f;
    }
    const float* operands[] = {a.as<float>(), b.as<float>()};
    scalar::Run(params, operands, wanted.as<float>(), scratch.data(), n);
    GetParam().run(params, operands, found.as<float>(), scratch.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const float w = wanted.as<float>()[i], f = found.as<float>()[i];
      ASSERT_TRUE(std::memcmp(&w, &f, 4) == 0 || (std::isnan(w) && std::isnan(f))) << i << ": " << w << ", " << f;
    }
    ASSERT_TRUE(found.guards_intact());
  }
}

// Each step alone, of numbers of all magnitudes and of infinities, zeros and NaN.
TEST_P(VariantTest, EachStepHasTheBitsOfScalar) {
  constexpr int64_t kCount = 509;
  GuardedMemory a(4 * kCount, 4), b(4 * kCount, 8), wanted(4 * kCount), found(4 * kCount, 4);
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f};
  for (int64_t i = 0; i < kCount; ++i) {
    a.as<float>()[i] = std::ldexp(static_cast<float>(i % 17 - 8) + 0.37f, static_cast<int>(i % 90) - 45);
    b.as<float>()[i] = std::ldexp(static_cast<float>(i % 13 - 6) + 0.11f, static_cast<int>(i % 7) - 4);
    if (i % 11 == 5) a.as<float>()[i] = special[i / 11 % 7];
    if (i % 13 == 5) b.as<float>()[i] = special[i / 13 % 7];
    if (i % 5 == 0) b.as<float>()[i] = std::round(b.as<float>()[i]);
  }
  const float* operands[] = {a.as<float>(), b.as<float>()};
  std::vector<float> scratch(kBlock);
  for (const absl::string_view op : ElementwiseSteps()) {
    const bool unary = ParseElementwiseSteps({std::string(op) + "(0)"}, 2).ok();
    const auto program =
        CompileElementwise({{std::string(op), unary ? std::vector<int>{0} : std::vector<int>{0, 1}, {}}});
    ASSERT_TRUE(program.ok()) << program.status();
    const Params params = {2, program->data(), 1};
    scalar::Run(params, operands, wanted.as<float>(), scratch.data(), kCount);
    GetParam().run(params, operands, found.as<float>(), scratch.data(), kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      const float w = wanted.as<float>()[i], f = found.as<float>()[i];
      ASSERT_TRUE(std::memcmp(&w, &f, 4) == 0 || (std::isnan(w) && std::isnan(f)))
          << op << " of " << a.as<float>()[i] << ", " << b.as<float>()[i] << ": " << w << ", " << f;
    }
    ASSERT_TRUE(found.guards_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::Run)),
                         kernels::VariantName());

using ScaleTest = kernels::VariantTest<ScaleVariant>;

// All pairs of codes, both types of them, and lengths around the vectors'.
TEST_P(ScaleTest, FollowsTheFormula) {
  const struct {
    uint8_t flip;
    float y_scale, most_factor;
    bool only_negative;
  } cases[] = {{0x00, 0.0198f, 3.1f, false},
               {0x80, 0.0198f, 3.1f, false},
               {0x00, 0.0198f, std::numeric_limits<float>::infinity(), false},
               {0x00, 1e-38f, 3.1f, false},  // Quotients beyond all floats.
               {0x80, 0.0198f, 3.1f, true}};
  for (const auto& [flip, y_scale, most_factor, only_negative] : cases) {
    ScaleParams params;
    params.most_factor = most_factor;
    params.only_negative = only_negative;
    params.x.scale = 0.0217f, params.x.zero_point = 13, params.x.flip = flip;
    params.y.scale = y_scale, params.y.zero_point = 140, params.y.lo = 9, params.y.hi = 250, params.y.flip = flip;
    for (int code = 0; code < 256; ++code) {
      const float factor = static_cast<float>(code - 77) * 0.0171f;
      for (const int64_t n : {256, 1, 31, 33, 63, 65, 191}) {
        GuardedMemory x(n, 1), factors(4 * n, 4), found(n, 3);
        for (int64_t i = 0; i < n; ++i) {
          x.data()[i] = static_cast<uint8_t>(7 * i);
          factors.as<float>()[i] = factor;
        }
        GetParam().run(params, x.data(), factors.as<float>(), found.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const float value = static_cast<float>((x.data()[i] ^ flip) - 13) * 0.0217f;
          const float scaled = only_negative && value >= 0 ? value : value * factor;
          const int32_t wanted = kernels::QuantizeValue(scaled, y_scale, 140, {9, 250});
          ASSERT_EQ(found.data()[i] ^ flip, wanted) << i << " of " << n << ", factor " << factor;
        }
        ASSERT_TRUE(found.guards_intact());
        if (code > 2 && n == 256) break;  // Lengths need no more.
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScaleTest,
                         ::testing::ValuesIn(kernels::WithEmulated(ScaleVariants(), avx512_vnni_emulated::Scale)),
                         kernels::VariantName());

// An image's channels by a factor each, either operand first, in images of one block and of many; its pixels.
TEST(Kernel, ScalesCodes) {
  const auto variant = [](KernelDesc desc, Isa isa) {
    desc.isa = isa;
    return (*Create(desc))->variant();
  };
  for (const int64_t size : {1, 7, 40}) {
    const Shape shape = {2, 24, size, size}, factors = {2, 24, 1, 1};
    const TensorType x = Codes(DType::kU8, shape, 0.0217f, 13, Layout::kNhwc);
    const TensorType by = Codes(DType::kI8, factors, 0.00391f, -128, Layout::kNhwc);
    const TensorType y = Codes(DType::kI8, shape, 0.0198f, -14, Layout::kNhwc);
    kernels::ExpectSameOnAnyThreads(Create, Desc({x, by}, y, {"mul(0, 1)"}));
    kernels::ExpectSameOnAnyThreads(Create, Desc({by, x}, y, {"mul(0, 1)"}));
    kernels::ExpectSameOnAnyThreads(Create, Desc({x, by}, y, {"prelu(0, 1)"}));
    kernels::ExpectSameOnAnyThreads(Create, Desc({by, x}, y, {"prelu(0, 1)"}));
    // A factor for each pixel, which repeats too soon to be kept.
    const TensorType of_pixels = Codes(DType::kU8, {2, 1, size, size}, 0.004f, 0, Layout::kNhwc);
    kernels::ExpectSameOnAnyThreads(Create, Desc({of_pixels, x}, y, {"mul(0, 1)"}));
    for (const Isa isa : kernels::SupportedIsas()) {
      const bool scales = variant(Desc({x, by}, y, {"mul(0, 1)"}), isa).find(" scale") != std::string::npos;
      EXPECT_EQ(scales, isa.Includes(Isa::kAvx2)) << kernels::IsaName(isa);
      const KernelDesc prelu = Desc({x, by}, y, {"prelu(0, 1)"});
      EXPECT_EQ(variant(prelu, isa).find(" scale") != std::string::npos, scales);
      if (size > 1) {
        EXPECT_EQ(variant(Desc({by, x}, y, {"prelu(0, 1)"}), isa).find(" scale"), std::string::npos);
      }
      EXPECT_EQ(variant(Desc({x, by}, y, {"sub(0, 1)"}), isa).find(" scale"), std::string::npos);
    }
  }
}

// All pairs of codes, of both signs and of several blocks, the second operand broadcast.
TEST(Kernel, HasTheBitsOfScalarOnCodes) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const int least = dtype == DType::kU8 ? 0 : -128;
    const TensorType a = Codes(dtype, {256, 256}, 0.04f, least + 128), b = Codes(DType::kU8, {256, 1}, 0.07f, 3),
                     y = Codes(dtype, {256, 256}, 0.033f, least + 60);
    Tensor ta(a), tb(b);
    for (int i = 0; i < 256 * 256; ++i) static_cast<uint8_t*>(ta.raw_data())[i] = static_cast<uint8_t>(i);
    for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(tb.raw_data())[i] = static_cast<uint8_t>(i);
    KernelDesc desc = Desc({a, b}, y, EveryStep());
    std::optional<Tensor> wanted;
    for (const Isa isa : kernels::SupportedIsas()) {
      desc.isa = isa;
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const absl::StatusOr<Tensor> found = kernels::RunKernel(**kernel, {&ta, &tb});
      ASSERT_TRUE(found.ok()) << found.status();
      if (!wanted) wanted = *found;
      EXPECT_TRUE(found->SameBytes(*wanted)) << (*kernel)->variant();
    }
    int saturated = 0;
    for (int i = 0; i < 256 * 256; ++i) saturated += wanted->At(i) == least + 255;
    EXPECT_GT(saturated, 0);
    EXPECT_LT(saturated, 60000);
  }
}

// The formula in the codes' own types.
TEST(Kernel, FollowsTheFormulaOnCodes) {
  const TensorType a = Codes(DType::kI8, {256}, 0.05f, -7), b = Codes(DType::kU8, {256}, 0.03f, 200),
                   y = Codes(DType::kI8, {256}, 0.11f, 4);
  const auto kernel = Create(Desc({a, b}, y, {"mul(0, 1)", "relu(2)", "sub(3, 0)"}));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->output_scale(), 0.11f);
  EXPECT_EQ((*kernel)->output_zero_point(), 4);
  const Tensor ta = SeededTensor(a, 5), tb = SeededTensor(b, 6);
  const absl::StatusOr<Tensor> found = kernels::RunKernel(**kernel, {&ta, &tb});
  ASSERT_TRUE(found.ok()) << found.status();
  for (int i = 0; i < 256; ++i) {
    const float u = static_cast<float>(ta.At(i) + 7) * 0.05f, v = static_cast<float>(tb.At(i) - 200) * 0.03f;
    const float z = std::fmax(u * v, 0.0f) - u;
    const double code = std::min(127.0, std::max(-128.0, std::nearbyint(static_cast<double>(z / 0.11f)) + 4));
    ASSERT_EQ(found->At(i), code) << i;
  }
}

// The same operand as large as `type`.
Tensor Expanded(const Tensor& operand, TensorType type) {
  TensorType small = operand.type();
  small.shape.insert(small.shape.begin(), type.shape.size() - small.shape.size(), 1);
  type.dtype = small.dtype;
  type.quant = small.quant;
  const int64_t bytes = ByteSize(type.dtype);
  Tensor full(type);
  const auto index = [](int64_t size, int64_t i) { return size > 1 ? i : 0; };
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    int64_t at[4], rest = i;
    for (int axis = 3; axis >= 0; rest /= type.shape[axis--]) at[axis] = rest % type.shape[axis];
    const Shape& s = small.shape;
    const int64_t from =
        kernels::Index(small, index(s[0], at[0]), index(s[1], at[1]), index(s[2], at[2]), index(s[3], at[3]));
    std::memcpy(static_cast<uint8_t*>(full.raw_data()) + kernels::Index(type, at[0], at[1], at[2], at[3]) * bytes,
                static_cast<const uint8_t*>(operand.raw_data()) + from * bytes, bytes);
  }
  return full;
}

// Every way for two operands to be smaller than the result, in both layouts, of floats and codes, in one block and in
// many.
TEST(Kernel, Broadcasts) {
  for (const auto& [h, w] : {std::pair<int64_t, int64_t>{4, 5}, {40, 50}, {16, 64}}) {
    const Shape shape = {2, 3, h, w};
    const Shape smaller[] = {{},        {1},          {w},          {h, 1},       {3, 1, 1},    {1, 3, 1, w},
                             {3, h, w}, {1, 3, 1, 1}, {2, 1, h, 1}, {1, 1, 1, w}, {2, 3, 1, 1}, {2, 3, h, w}};
    for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
      for (const bool codes : {false, true}) {
        const auto type_of = [&](const Shape& of, float scale, int zero_point) {
          const Layout own = of.size() == 4 ? layout : Layout::kRowMajor;
          return codes ? Codes(DType::kU8, of, scale, zero_point, own) : Floats(of, own);
        };
        const TensorType x = type_of(shape, 0.021f, 100);
        const Tensor tx = SeededTensor(x, 1);
        for (const Shape& second : smaller) {
          const Tensor b = SeededTensor(type_of(second, 0.037f, 131), 2), all_b = Expanded(b, x);
          for (const Shape& third : smaller) {
            const Tensor c = SeededTensor(type_of(third, 0.029f, 120), 3), all_c = Expanded(c, x);
            const std::vector<std::string> steps = {"sub(0, 1)", "add(3, 2)"};
            const auto kernel = Create(Desc({x, b.type(), c.type()}, x, steps));
            const auto same_size = Create(Desc({x, all_b.type(), all_c.type()}, x, steps));
            ASSERT_TRUE(kernel.ok() && same_size.ok()) << kernel.status() << same_size.status();
            const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&tx, &b, &c});
            const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**same_size, {&tx, &all_b, &all_c});
            ASSERT_TRUE(y.ok() && wanted.ok()) << y.status() << wanted.status();
            ASSERT_TRUE(y->SameBytes(*wanted)) << ToString(b.type()) << " and " << ToString(c.type()) << " beside "
                                               << ToString(x);
            for (int64_t i = 0; !codes && i < x.num_elements(); ++i) {
              ASSERT_EQ(y->data<float>()[i], tx.data<float>()[i] - all_b.data<float>()[i] + all_c.data<float>()[i]);
            }
          }
        }
      }
    }
  }
}

TEST(Kernel, IsTheSameOnAnyNumberOfThreads) {
  for (const bool codes : {false, true}) {
    const Shape shape = {3, 7, 41, 53};
    const TensorType type = codes ? Codes(DType::kU8, shape, 0.02f, 100, Layout::kNhwc) : Floats(shape, Layout::kNhwc);
    const TensorType channel =
        codes ? Codes(DType::kI8, {1, 7, 1, 1}, 0.02f, 3, Layout::kNhwc) : Floats({1, 7, 1, 1}, Layout::kNhwc);
    kernels::ExpectSameOnAnyThreads(Create, Desc({type, channel}, type, EveryStep()));
  }
}

TEST(Kernel, RunsSingleOperators) {
  kernels::KernelRegistry registry;
  Register(registry);
  KernelDesc desc;
  desc.op = "int8.clamp";
  const TensorType type = Codes(DType::kU8, {256}, 1.0f, 0);
  desc.inputs = {type};
  desc.outputs = {type};
  desc.attributes = {{"min", Attribute(3.0)},
                     {"max", Attribute(90.0)},
                     {"out_dtype", Attribute(DType::kU8)},
                     {"out_scale", Attribute(1.0)},
                     {"out_zero_point", Attribute(0)}};
  const auto kernel = registry.FindOrNull("int8.clamp")->create(desc);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Tensor x = SeededTensor(type, 1);
  const absl::StatusOr<Tensor> y = kernels::RunKernel(**kernel, {&x});
  ASSERT_TRUE(y.ok()) << y.status();
  for (int i = 0; i < 256; ++i) ASSERT_EQ(y->At(i), std::min(90.0, std::max(3.0, x.At(i))));
}

TEST(Create, Declines) {
  const TensorType codes = Codes(DType::kU8, {2, 3}, 0.5f, 1), floats = Floats({2, 3});
  EXPECT_EQ(Create(Desc({codes, floats}, codes, {"add(0, 1)"})).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Create(Desc({codes}, floats, {"relu(0)"})).status().code(), absl::StatusCode::kUnimplemented);
  std::vector<std::string> many;
  for (int i = 0; i < kMostValues; ++i) many.push_back(absl::StrCat("relu(", i, ")"));
  EXPECT_THAT(std::string(Create(Desc({floats}, floats, many)).status().message()), HasSubstr("at most 64"));
  EXPECT_EQ(Create(Desc({floats}, floats, {"softmax(0)"})).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselage::fused_elementwise
