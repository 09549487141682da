#include "kernels/dynamic_quantize/dynamic_quantize.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/core/testing/variant_test.h"
#include "kernels/testing/reference.h"

namespace fuselage::dynamic_quantize {
namespace {

using kernels::GuardedMemory;
using kernels::OpCall;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

constexpr const char* kOps[] = {"dynamic_quantize_asymmetric", "dynamic_quantize_symmetric"};

const kernels::KernelRegistry& Kernels() {
  static const auto* registry = [] {
    auto* created = new kernels::KernelRegistry;
    Register(*created);
    return created;
  }();
  return *registry;
}

// Values in [low, low + 2 * spread).
Tensor Values(Shape shape, float low, float spread) {
  Tensor x = SeededTensor(kernels::Floats(std::move(shape)), 5);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = low + spread * (x.data<float>()[i] + 1);
  return x;
}

TEST(DynamicQuantize, HasTheReferencesBits) {
  const std::pair<Shape, Ints> cases[] = {{{}, {}},           {{0}, {}},
                                          {{1}, {}},          {{7}, {}},
                                          {{8}, {}},          {{9}, {}},
                                          {{63, 3}, {}},      {{50001}, {}},
                                          {{2, 3, 5, 7}, {}}, {{6, 65}, {1}},
                                          {{3, 5, 17}, {-1}}, {{3, 5, 17}, {1, 2}},
                                          {{300, 100}, {1}},  {{2, 3, 5, 7}, {1, 2, 3}},
                                          {{4, 5}, {0}},      {{2, 3, 5, 7}, {1, 3}},
                                          {{2, 3, 5}, {1}},   {{2, 3, 5, 7, 2}, {0, 2, 4}},
                                          {{3, 1, 4}, {1}},   {{3, 0, 4}, {1}}};
  for (const char* op : kOps) {
    for (const auto& [shape, dims] : cases) {
      // Both signs; all positive or negative, whose range has 0 all the same; nothing; too small for a normal scale.
      for (const auto& [low, spread] : std::vector<std::pair<float, float>>{
               {-3, 2.5f}, {1, 7}, {-9, 3}, {0, 0}, {-0.0f, 0}, {-1e-40f, 1e-39f}, {-1e38f, 1e38f}}) {
        EXPECT_EQ(DifferenceFromReference(Kernels(), {op, {Values(shape, low, spread)}, {{"dims", dims}}}), "")
            << ToString(shape) << " " << low;
      }
    }
  }
}

TEST(DynamicQuantize, RefusesWhatHasNoRange) {
  for (const char* op : kOps) {
    for (const float bad : {INFINITY, -INFINITY, NAN, -NAN}) {
      OpCall call{op, {Values({3, 50}, -1, 1)}, {}};
      call.operands[0]->data<float>()[77] = bad;
      const auto found = RunCall(*Kernels().FindOrNull(op), call, DescOf(call, Layout::kRowMajor, Layout::kRowMajor));
      EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(DifferenceFromReference(Kernels(), call), HasSubstr(std::string(found.status().message())));
    }
  }
  const OpCall wide{kOps[0], {Tensor::Of<float>({3}, {-3e38f, 0, 3e38f})}, {}};
  const auto found = RunCall(*Kernels().FindOrNull(kOps[0]), wide, DescOf(wide, Layout::kRowMajor, Layout::kRowMajor));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("overflows f32"));
  EXPECT_THAT(DifferenceFromReference(Kernels(), wide), HasSubstr(std::string(found.status().message())));
}

using VariantTest = kernels::VariantTest<Variant>;

TEST_P(VariantTest, FindsTheRangeOfScalar) {
  for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 200}) {
    for (const float low : {-1.0f, 0.5f, -8.0f, -INFINITY}) {
      GuardedMemory x(4 * n, 4);
      const Tensor values = Values({n}, low, 3);
      std::copy_n(values.data<float>(), n, x.as<float>());
      if (n > 5) x.as<float>()[n - 2] = n % 2 == 0 ? NAN : -1e-45f;
      const Range wanted = scalar::FindRange(x.as<float>(), n), found = GetParam().run(x.as<float>(), n);
      EXPECT_EQ(found.least, wanted.least) << n;
      EXPECT_EQ(found.greatest, wanted.greatest) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         ::testing::ValuesIn(kernels::WithEmulated(Variants(), avx512_vnni_emulated::FindRange)),
                         kernels::VariantName());

}  // namespace
}  // namespace fuselage::dynamic_quantize
