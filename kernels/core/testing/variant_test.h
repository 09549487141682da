// Tests and benchmarks over the table of variants.
#ifndef FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_
#define FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "ir/base/tensor.h"
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

// What `create` makes of `desc` returns the same bytes in scalar code and by the best instruction set of this machine,
// on any number of threads.
inline void ExpectSameOnAnyThreads(
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelDesc& desc)> create, KernelDesc desc) {
  std::vector<Tensor> operands;
  for (const auto& type : desc.inputs) operands.push_back(SeededTensor(*type, operands.size() + 1));
  std::vector<const Tensor*> inputs;
  for (const Tensor& operand : operands) inputs.push_back(&operand);
  std::optional<Tensor> wanted;
  for (const Isa isa : {Isa::kScalar, BestIsa()}) {
    for (const int threads : {1, 2, 3, 5, 7}) {
      desc.isa = isa;
      desc.threads = threads;
      const auto kernel = create(desc);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      TestThreads parallel(threads);
      const absl::StatusOr<Tensor> found = RunKernel(**kernel, inputs, &parallel);
      ASSERT_TRUE(found.ok()) << found.status();
      if (!wanted) wanted = *found;
      EXPECT_TRUE(found->SameBytes(*wanted)) << (*kernel)->variant() << " on " << threads;
    }
  }
}

struct VariantName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return TestName(info.param.name);
  }
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TESTING_VARIANT_TEST_H_
