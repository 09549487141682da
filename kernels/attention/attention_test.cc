#include "kernels/attention/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/base/elementwise_math.h"
#include "kernels/attention/attention_cases.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/reproducible/emulated.h"
#include "kernels/testing/reference.h"

namespace fuselage::attention {
namespace {

using kernels::Floats;
using kernels::GuardedMemory;
using kernels::OpCall;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Variant> Testable() {
  std::vector<Variant> variants(Variants().begin(), Variants().end());
  const reproducible::Primitives emulated = reproducible::EmulatedAvx512();
  variants.push_back({emulated.name, emulated.isa, emulated.rows, emulated.columns, emulated.tile,
                      avx512_vnni_emulated::Weights, avx512_vnni_emulated::Divide});
  return variants;
}

// --- Weights.

// The definition of attention.h.
float Definition(std::vector<float>& s, const float* mask, float scale, float cap) {
  float largest = -kInfinity;
  for (size_t j = 0; j < s.size(); ++j) {
    s[j] *= scale;
    if (cap != 0) s[j] = cap * elementwise::Tanh(s[j] / cap);
    if (mask != nullptr) s[j] += mask[j];
    largest = std::max(largest, s[j]);
  }
  if (largest == -kInfinity) largest = 0;
  float sums[kLanes] = {};
  for (size_t j = 0; j < s.size(); ++j) {
    const float distance = s[j] - largest;
    s[j] = distance < -87.0f ? 0.0f : elementwise::ExpOfNegative(distance);
    sums[j % kLanes] += s[j];
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

class WeightsTest : public kernels::VariantTest<Variant> {};

TEST_P(WeightsTest, HasTheBitsOfItsDefinition) {
  for (const int64_t keys : {1, 2, 15, 16, 17, 31, 49, 197, 255, 256, 257, 272, 511, 513}) {
    const int64_t blocks = (keys + reproducible::kDepth - 1) / reproducible::kDepth;
    for (const bool masked : {false, true}) {
      for (const float cap : {0.0f, 5.0f}) {
        SCOPED_TRACE(::testing::Message() << keys << " keys, masked: " << masked << ", cap " << cap);
        const int64_t stride = reproducible::kRowStride;
        GuardedMemory memory(blocks * stride * 4, 4), mask(keys * 4, 8);
        const Tensor random = SeededTensor(Floats({2, keys}), keys);
        std::vector<float> wanted(keys);
        for (int64_t j = 0; j < keys; ++j) {
          wanted[j] = 200 * random.data<float>()[j];
          mask.as<float>()[j] = j % 3 == 1 ? -kInfinity : random.data<float>()[keys + j];
          memory.as<float>()[j / reproducible::kDepth * stride + j % reproducible::kDepth] = wanted[j];
        }
        const float* added = masked ? mask.as<float>() : nullptr;
        const float sum = GetParam().weights({memory.as<float>(), stride, keys, added, 0.25f, cap});
        const float wanted_sum = Definition(wanted, added, 0.25f, cap);
        EXPECT_EQ(std::memcmp(&sum, &wanted_sum, 4), 0) << sum << ", wanted " << wanted_sum;
        for (int64_t j = 0; j < keys; ++j) {
          const float found = memory.as<float>()[j / reproducible::kDepth * stride + j % reproducible::kDepth];
          ASSERT_EQ(std::memcmp(&found, &wanted[j], 4), 0) << "key " << j << ": " << found << ", not " << wanted[j];
        }
        EXPECT_TRUE(memory.guards_intact());
      }
    }
  }
}

TEST_P(WeightsTest, NoKeyAtAllAndNaN) {
  alignas(64) float scores[16] = {-kInfinity, -kInfinity, -kInfinity};
  EXPECT_EQ(GetParam().weights({scores, 16, 3, nullptr, 1.0f, 0.0f}), 0.0f);
  for (int j = 0; j < 3; ++j) EXPECT_EQ(scores[j], 0.0f);
  scores[1] = NAN;
  EXPECT_TRUE(std::isnan(GetParam().weights({scores, 16, 3, nullptr, 1.0f, 0.0f})));
}

INSTANTIATE_TEST_SUITE_P(All, WeightsTest, ::testing::ValuesIn(Testable()), kernels::VariantName());

// --- The kernel.

TEST(Attention, IsTheReferenceWithTheSameBitsEverywhere) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(::testing::Message() << ToString(c.q) << " to " << ToString(c.k) << ", mask " << ToString(c.mask));
    const OpCall call = CallOf(c);
    std::vector<std::vector<Tensor>> values;
    for (const auto& operand : call.operands) {
      values.push_back(operand ? std::vector<Tensor>{*operand} : std::vector<Tensor>());
    }
    std::vector<const std::vector<Tensor>*> pointers;
    for (const auto& value : values) pointers.push_back(value.empty() ? nullptr : &value);
    kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
    const auto wanted =
        ir::Evaluate(*kernels::Ops().FindOrNull(call.op), call.attributes, pointers, ir::Type(desc.output()));
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    std::optional<Tensor> scalar;
    for (const Variant& variant : Testable()) {
      if (!kernels::CpuSupports(variant.isa)) continue;
      const kernels::KernelEntry entry = {call.op, kernels::LayoutRule::kRowMajor, [&](const kernels::KernelDesc& d) {
                                            return CreateWith({&variant, 1}, d);
                                          }};
      desc.isa = variant.isa;
      for (const int threads : {1, 3, 16}) {
        desc.threads = threads;
        const auto found = RunCall(entry, call, desc);
        ASSERT_TRUE(found.ok()) << found.status();
        if (!scalar) scalar = (*found)[0];
        ASSERT_TRUE((*found)[0].SameBytes(*scalar)) << variant.name << " on " << threads << " threads";
      }
    }
    for (int64_t i = 0; i < scalar->num_elements(); ++i) {
      ASSERT_NEAR(scalar->At(i), (*wanted)[0].At(i), 2e-6) << "element " << i;
    }
  }
}

// Twice the keys take at most twice the memory, however many the queries are.
TEST(Attention, MemoryGrowsWithTheKeys) {
  const auto bytes = [](int64_t length) {
    kernels::KernelDesc desc;
    desc.op = "scaled_dot_product_attention";
    desc.attributes = {{"scale", 1.0}, {"is_causal", false}, {"softcap", 0.0}};
    desc.inputs = {3, Floats({1, 1, length, 64})};
    desc.outputs = {Floats({1, 1, length, 64})};
    const auto kernel = CreateWith(Variants(), desc);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return (*kernel)->scratch_bytes();
  };
  EXPECT_LE(bytes(8192), 2 * bytes(4096));
  EXPECT_LE(bytes(4096), 4096 * 4 * (2 * 64 + 2 * kBlockRows));
}

TEST(Attention, Declines) {
  const OpCall call = CallOf({{1, 1, 2, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, {}});
  kernels::KernelDesc desc = DescOf(call, Layout::kRowMajor, Layout::kRowMajor);
  desc.inputs[0]->dtype = DType::kF64;
  EXPECT_EQ(CreateWith(Variants(), desc).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace fuselage::attention
