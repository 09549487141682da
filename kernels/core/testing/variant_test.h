// Tests and benchmarks over the table of variants.
#ifndef FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_
#define FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/core/isa.h"
#include "kernels/core/testing/testing.h"

namespace fuselage::kernels {

// Parameterized by variant; skips, and says so, where the CPU does not run it.
template <typename Variant>
class VariantTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const Isa isa = this->GetParam().isa;
    if (!CpuSupports(isa)) GTEST_SKIP() << "this CPU does not run " << IsaName(isa);
  }
};

// A source of one instruction set, built so that every machine runs it.
template <typename Function>
struct Emulated {
  const char* name;
  Isa isa;  // The one of the rows that it stands for.
  Function* run;
};

// The table, and its rows of those instruction sets again with the emulated functions.
template <typename Variant, typename Function>
std::vector<Variant> WithEmulated(absl::Span<const Variant> table, const std::vector<Emulated<Function>>& emulated) {
  std::vector<Variant> variants(table.begin(), table.end());
  for (const Variant& variant : table) {
    for (const Emulated<Function>& source : emulated) {
      if (variant.isa != source.isa || source.run == nullptr) continue;
      variants.push_back(variant);
      variants.back().name = source.name;
      variants.back().isa = Isa::kScalar;
      variants.back().run = source.run;
    }
  }
  return variants;
}

template <typename Variant, typename Function>
std::vector<Variant> WithEmulated(absl::Span<const Variant> table, Function* avx512_vnni) {
  return WithEmulated<Variant, Function>(table, {{"emulated avx512_vnni", Isa::kAvx512Vnni, avx512_vnni}});
}

struct VariantName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return TestName(info.param.name);
  }
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_
