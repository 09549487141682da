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

// The table, and its AVX-512 row (AMX row) again with the emulated function, which runs everywhere.
template <typename Variant, typename Function>
std::vector<Variant> WithEmulated(absl::Span<const Variant> table, Function* emulated,
                                  Function* emulated_amx = nullptr) {
  std::vector<Variant> variants(table.begin(), table.end());
  for (const Variant& variant : table) {
    Function* const run = variant.isa == Isa::kAvx512Vnni ? emulated
                          : variant.isa == Isa::kAmx      ? emulated_amx
                                                          : nullptr;
    if (run == nullptr) continue;
    variants.push_back(variant);
    variants.back().name = variant.isa == Isa::kAmx ? "emulated amx" : "emulated avx512_vnni";
    variants.back().isa = Isa::kScalar;
    variants.back().run = run;
  }
  return variants;
}

struct VariantName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return TestName(info.param.name);
  }
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_
