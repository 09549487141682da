#include "kernels/int8/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/attention/attention_cases.h"
#include "kernels/testing/reference.h"

namespace fuselage::int8::attention {
namespace {

using kernels::Floats;
using kernels::GuardedMemory;
using kernels::Isa;
using kernels::KernelDesc;
using kernels::OpCall;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// --- The rows between the products.

std::vector<Variant> Rows() {
  std::vector<Variant> rows(Variants().begin(), Variants().end());
  rows.push_back({"emulated avx512_vnni", Isa::kScalar, avx512_vnni_emulated::Weights, avx512_vnni_emulated::Finish});
  return rows;
}

class RowsTest : public kernels::VariantTest<Variant> {};

// The definition of ir/ops/int8/attention.
int32_t Definition(std::vector<float> s, const float* mask, float cap, std::vector<uint8_t>& weights) {
  float largest = -kInfinity;
  for (size_t j = 0; j < s.size(); ++j) {
    if (cap != 0) s[j] = cap * elementwise::Tanh(s[j] / cap);
    if (mask != nullptr) s[j] += mask[j];
    if (s[j] > largest) largest = s[j];
  }
  if (largest == -kInfinity) largest = 0;
  int32_t sum = 0;
  weights.resize(s.size());
  for (size_t j = 0; j < s.size(); ++j) {
    const float distance = s[j] - largest;
    weights[j] = distance >= -87.0f
                     ? static_cast<uint8_t>(std::nearbyint(255.0f * elementwise::ExpOfNegative(distance)))
                     : uint8_t{0};
    sum += weights[j];
  }
  return sum;
}

TEST_P(RowsTest, WeightsHaveTheBitsOfTheirDefinition) {
  for (const int64_t keys : {1, 2, 15, 16, 17, 31, 32, 33, 49, 197, 513}) {
    for (const int special : {0, 1, 2, 3}) {
      for (const float cap : {0.0f, 5.0f}) {
        SCOPED_TRACE(::testing::Message() << keys << " keys, special " << special << ", cap " << cap);
        const int64_t padded = (keys + kLanes - 1) / kLanes * kLanes;
        GuardedMemory scores(padded * 4, 4), weights(padded, 1), mask(keys * 4, 8);
        const Tensor random = SeededTensor(Floats({2, keys}), keys);
        std::vector<float> s(keys);
        std::fill(scores.as<float>() + keys, scores.as<float>() + padded, kNever);
        for (int64_t j = 0; j < keys; ++j) {
          scores.as<float>()[j] = s[j] = 6 * random.data<float>()[j];
          mask.as<float>()[j] = j % 3 == 1 || special == 2 ? -kInfinity : random.data<float>()[keys + j];
        }
        if (special == 3) mask.as<float>()[keys / 2] = NAN;
        const float* added = special > 0 ? mask.as<float>() : nullptr;
        std::vector<uint8_t> wanted;
        const int32_t wanted_sum = Definition(s, added, cap, wanted);
        EXPECT_EQ(GetParam().weights({scores.as<float>(), keys, added, cap}, weights.as<uint8_t>()), wanted_sum);
        EXPECT_EQ(std::vector<uint8_t>(weights.as<uint8_t>(), weights.as<uint8_t>() + keys), wanted);
        if (special == 2) {
          EXPECT_EQ(wanted_sum, 0);
        }
        EXPECT_TRUE(scores.guards_intact() && weights.guards_intact());
      }
    }
  }
}

TEST_P(RowsTest, FinishRoundsHalfToEvenAndSaturates) {
  const float sums[] = {0, 1, 3, 5, -1, -3, 1e9f, -1e9f, 509, 511, -20, 2, 4, 6, 8, 10, 12, 14, 251, 40};
  constexpr int64_t kCount = 20;
  for (const Output& output : {Output{false, 3, 0}, Output{false, 200, 0x80}, Output{true, 0, 0}}) {
    for (const float multiplier : {0.5f, 0.0f, 1e30f}) {
      for (int64_t n = 0; n <= kCount; ++n) {
        GuardedMemory y(n * (output.is_float ? 4 : 1), output.is_float ? 4 : 1);
        GetParam().finish(output, sums, multiplier, n, y.data());
        for (int64_t e = 0; e < n; ++e) {
          const double v = static_cast<double>(sums[e] * multiplier);
          if (output.is_float) {
            ASSERT_EQ(y.as<float>()[e], sums[e] * multiplier);
          } else {
            const double code = std::min(std::max(std::nearbyint(v) + output.zero_point, 0.0), 255.0);
            ASSERT_EQ(y.as<uint8_t>()[e] ^ output.flip, static_cast<int>(code)) << sums[e] << " * " << multiplier;
          }
        }
        ASSERT_TRUE(y.guards_intact());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RowsTest, ::testing::ValuesIn(Rows()), kernels::VariantName());

// --- The kernel.

TEST(Attention, HasTheReferencesBits) {
  kernels::KernelRegistry registry;
  Register(registry);
  for (const OpCall& call : Calls()) EXPECT_EQ(DifferenceFromReference(registry, call), "");
}

// By int8.linear's variants, each with rows of its own.
class ProductsTest : public kernels::VariantTest<linear::Variant> {};

TEST_P(ProductsTest, EqualsScalar) {
  const auto entry = [](const linear::Variant& products, const Variant& rows) {
    return kernels::KernelEntry{
        "int8.attention", kernels::LayoutRule::kRowMajor,
        [products, rows](const KernelDesc& desc) { return attention::CreateVariant(desc, products, rows); }};
  };
  const std::vector<Variant> rows = Rows();
  for (const OpCall& call : Calls()) {
    KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto wanted = RunCall(entry(linear::Variants()[0], rows[0]), call, desc);
    for (const int threads : {1, 3}) {
      desc.threads = threads;
      const auto found = RunCall(entry(GetParam(), rows.back()), call, desc);
      ASSERT_TRUE(wanted.ok() && found.ok()) << wanted.status() << found.status();
      ASSERT_TRUE((*found)[0].SameBytes((*wanted)[0])) << ToString(desc.input(0)) << " " << ToString(desc.input(1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProductsTest,
                         ::testing::ValuesIn(kernels::WithEmulated<linear::Variant, linear::Function>(
                             linear::VariantsOfAnyWeight(),
                             {{"emulated avx_vnni", Isa::kAvxVnni, linear::avx_vnni_emulated::Run},
                              {"emulated avx512_vnni", Isa::kAvx512Vnni, linear::avx512_vnni_emulated::Run},
                              {"emulated amx", Isa::kAmx, linear::amx_emulated::Run}})),
                         kernels::VariantName());

KernelDesc DescOf(int64_t queries, int64_t keys) {
  KernelDesc desc;
  desc.op = "int8.attention";
  desc.attributes = {{"scale", 1.0}, {"is_causal", false}, {"softcap", 0.0}};
  desc.inputs = {kernels::Codes(DType::kU8, {1, 1, queries, 64}, 0.1f, 3),
                 kernels::Codes(DType::kU8, {1, 1, keys, 64}, 0.1f, 3),
                 kernels::Codes(DType::kU8, {1, 1, keys, 64}, 0.1f, 3), std::nullopt};
  desc.outputs = {kernels::Codes(DType::kU8, {1, 1, queries, 64}, 0.1f, 3)};
  return desc;
}

// Twice the length takes at most twice the memory, however many the queries are.
TEST(Attention, MemoryGrowsWithTheKeys) {
  const auto bytes = [](int64_t length) {
    const auto kernel = Create(DescOf(length, length));
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return (*kernel)->scratch_bytes();
  };
  EXPECT_LE(bytes(32768), 2 * bytes(16384));
  EXPECT_LE(bytes(8192), 2 * bytes(4096));
}

TEST(Attention, Declines) {
  const auto message = [](const KernelDesc& wrong) { return std::string(Create(wrong).status().message()); };
  KernelDesc desc = DescOf(2, 3);
  EXPECT_EQ(message(desc), "");
  EXPECT_THAT(message(DescOf(1, 33026)),
              HasSubstr("sums of 33026 products may overflow 32 bits, wanted at most 33025"));
  EXPECT_EQ(Create(DescOf(0, 3)).status().code(), absl::StatusCode::kUnimplemented);
  desc.inputs[1] = Floats({1, 1, 3, 64});
  EXPECT_THAT(message(desc), HasSubstr("key"));
  desc = DescOf(2, 3);
  desc.inputs[0]->quant = desc.inputs[1]->quant = PerTensor(1e-30f);
  EXPECT_EQ(Create(desc).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace fuselage::int8::attention
