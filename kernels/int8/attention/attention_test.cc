#include "kernels/int8/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/attention_weight.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/int8/attention/attention_cases.h"
#include "kernels/int8/matmul/operands.h"
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
  Variant emulated = rows.front();
  emulated.name = "emulated avx512_vnni";
  emulated.weights = avx512_vnni_emulated::Weights;
  emulated.finish = avx512_vnni_emulated::Finish;
  emulated.scores = nullptr;
  emulated.mix = nullptr;
  rows.push_back(emulated);
  emulated.name = "emulated amx";
  emulated.multiply = amx_emulated::Multiply;
  rows.push_back(emulated);
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
    sum += weights[j] = static_cast<uint8_t>(AttentionWeight<OneLane>(s[j] - largest) - kRoundingBits);
  }
  return sum;
}

// Ten rows, of which each looks at one key less than the one before, down to none. Behind products by tiles the scores
// are sums still.
TEST_P(RowsTest, WeightsHaveTheBitsOfTheirDefinition) {
  constexpr int64_t kRows = 10;
  constexpr float kMultiplier = 0.003f;
  const bool are_sums = GetParam().multiply != nullptr;
  for (const int64_t keys : {1, 2, 15, 16, 17, 31, 32, 33, 49, 197, 513}) {
    for (const int special : {0, 1, 2, 3}) {
      for (const float cap : {0.0f, 5.0f}) {
        SCOPED_TRACE(::testing::Message() << keys << " keys, special " << special << ", cap " << cap);
        const int64_t score_stride = (keys + kLanes - 1) / kLanes * kLanes, weight_stride = (keys + 3) / 4 * 4;
        GuardedMemory scores(kRows * score_stride * 4, 4), weights(kRows * weight_stride + kLanes, 1);
        GuardedMemory mask(keys * 4, 8), columns(score_stride * 4, 4);
        std::vector<int32_t> row_addends(kRows);
        for (int64_t j = 0; j < score_stride; ++j) columns.as<int32_t>()[j] = static_cast<int32_t>(j * 577 % 1000);
        const Tensor random = SeededTensor(Floats({kRows + 1, keys}), keys);
        std::vector<int64_t> keys_of(kRows);
        std::vector<const float*> masks(kRows);
        std::vector<int32_t> sums(kRows);
        std::vector<float> wanted_scores(kRows * score_stride);
        for (int64_t row = 0; row < kRows; ++row) {
          keys_of[row] = std::max<int64_t>(0, keys - row);
          masks[row] = special > 0 && row % 4 != 1 ? mask.as<float>() : nullptr;
          row_addends[row] = static_cast<int32_t>(40 * row - 100);
          for (int64_t j = 0; j < keys; ++j) {
            const int64_t at = row * score_stride + j;
            const float score = 6 * random.data<float>()[row * keys + j];
            wanted_scores[at] = score;
            if (are_sums) {
              const int32_t sum = static_cast<int32_t>(score / kMultiplier);
              wanted_scores[at] = static_cast<float>(sum) * kMultiplier;
              scores.as<int32_t>()[at] = sum - columns.as<int32_t>()[j] - row_addends[row];
            } else {
              scores.as<float>()[at] = score;
            }
          }
        }
        for (int64_t j = 0; j < keys; ++j) {
          mask.as<float>()[j] = j % 3 == 1 || special == 2 ? -kInfinity : random.data<float>()[kRows * keys + j];
        }
        if (special == 3) mask.as<float>()[keys / 2] = NAN;
        GetParam().weights({kRows, scores.as<float>(), score_stride, are_sums ? columns.as<int32_t>() : nullptr,
                            row_addends.data(), kMultiplier, keys_of.data(), masks.data(), cap, weights.as<uint8_t>(),
                            weight_stride, sums.data()});
        for (int64_t row = 0; row < kRows; ++row) {
          const float* products = wanted_scores.data() + row * score_stride;
          const std::vector<float> s(products, products + keys_of[row]);
          std::vector<uint8_t> wanted;
          EXPECT_EQ(sums[row], Definition(s, masks[row], cap, wanted));
          wanted.resize(weight_stride);
          const uint8_t* found = weights.as<uint8_t>() + row * weight_stride;
          EXPECT_EQ(std::vector<uint8_t>(found, found + weight_stride), wanted) << "row " << row;
          if (special == 2 && masks[row] != nullptr) {
            EXPECT_EQ(sums[row], 0);
          }
        }
        EXPECT_TRUE(scores.guards_intact() && weights.guards_intact());
      }
    }
  }
}

TEST_P(RowsTest, FinishRoundsHalfToEvenAndSaturates) {
  const bool are_sums = GetParam().multiply != nullptr;
  const int32_t row_addends[] = {-7, 0, 9};
  const float sums[] = {0, 1, 3, 5, -1, -3, 1e9f, -1e9f, 509, 511, -20, 2, 4, 6, 8, 10, 12, 14, 251, 40};
  const float multipliers[] = {0.5f, 0.0f, 1e30f};
  constexpr int64_t kRows = 3, kMostWidth = 80;
  for (const Mixtures& output : {Mixtures{0, 0, nullptr, 0, nullptr, nullptr, false, 3, 0, nullptr},
                                 Mixtures{0, 0, nullptr, 0, nullptr, nullptr, false, 200, 0x80, nullptr},
                                 Mixtures{0, 0, nullptr, 0, nullptr, nullptr, true, 0, 0, nullptr}}) {
    for (int64_t width = 1; width <= kMostWidth; ++width) {
      const int64_t stride = width + 3;
      std::vector<float> all(kRows * stride);
      for (int64_t i = 0; i < kRows * stride; ++i) {
        all[i] = sums[i % 20];
        if (are_sums) all[i] = OneLane::FloatsOf(static_cast<int32_t>(sums[i % 20]) - row_addends[i / stride]);
      }
      const int size = output.is_float ? 4 : 1;
      GuardedMemory y(kRows * width * size, size);
      Mixtures mixtures = output;
      mixtures.rows = kRows;
      mixtures.width = width;
      mixtures.sums = all.data();
      mixtures.stride = stride;
      if (are_sums) mixtures.row_addends = row_addends;
      mixtures.multipliers = multipliers;
      mixtures.y = y.data();
      GetParam().finish(mixtures);
      for (int64_t e = 0; e < kRows * width; ++e) {
        const float sum = sums[(e / width * stride + e % width) % 20];
        const float v = sum * multipliers[e / width];
        if (output.is_float) {
          ASSERT_EQ(y.as<float>()[e], v);
        } else {
          const double code =
              std::min(std::max(std::nearbyint(static_cast<double>(v)) + output.zero_point, 0.0), 255.0);
          ASSERT_EQ(y.as<uint8_t>()[e] ^ output.flip, static_cast<int>(code)) << sum << ", row " << e / width;
        }
      }
      ASSERT_TRUE(y.guards_intact());
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
  const std::vector<Variant> rows = Rows();  // The last but one, by floats, and the last, by tiles, run anywhere.
  const Variant& own_rows = rows[rows.size() - (GetParam().packing.tile_rows > 0 ? 1 : 2)];
  for (const OpCall& call : Calls()) {
    KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto wanted = RunCall(entry(linear::Variants()[0], rows[0]), call, desc);
    for (const int threads : {1, 3}) {
      desc.threads = threads;
      const auto found = RunCall(entry(GetParam(), own_rows), call, desc);
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

TEST(Attention, AFewQueriesAreNotPacked) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2}) {
    if (!kernels::CpuSupports(isa)) continue;
    for (const int64_t queries : {kFewRows, kFewRows + 1}) {
      KernelDesc desc = DescOf(queries, 64);
      desc.isa = isa;
      const auto kernel = Create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const bool few = absl::EndsWith((*kernel)->variant(), " few");
      EXPECT_EQ(few, queries == kFewRows) << (*kernel)->variant();
    }
  }
}

// One query over as many keys as there may be, all weights and codes the largest, and all codes the least below the
// largest zero point.
TEST(Attention, TheLongestSums) {
  kernels::KernelRegistry registry;
  Register(registry);
  constexpr int64_t kKeys = matmul::kMostDepth;
  for (const int code : {0, 255}) {
    const auto filled = [&](const Shape& shape) {
      Tensor tensor(kernels::Codes(DType::kU8, shape, 0.1f, 255 - code));
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, code);
      return tensor;
    };
    const OpCall call{"int8.attention",
                      {filled({1, 1, 1, 2}), filled({1, 1, kKeys, 2}), filled({1, 1, kKeys, 3}), std::nullopt},
                      {{"scale", 1.0}, {"out_dtype", DType::kF32}}};
    EXPECT_EQ(DifferenceFromReference(registry, call), "") << code;
  }
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
