// What passes a gate, and what does not.
#include "harness/gates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"

namespace fuselage::harness {
namespace {

using ::testing::HasSubstr;

Results Measured(double baseline_top1, double top1, double speedup) {
  Results results;
  for (double value : {baseline_top1, top1}) {
    auto* variant = results.add_variants();
    variant->set_name(results.variants_size() == 1 ? "fp32" : "int8");
    variant->set_top1(value);
    variant->add_measurements()->set_speedup(results.variants_size() == 1 ? 1 : speedup);
  }
  results.mutable_variants(1)->add_layers();
  results.mutable_variants(1)->add_layers()->set_snr_db(41);
  results.mutable_variants(1)->add_layers()->set_snr_db(38);
  return results;
}

TEST(Gates, PassAndFail) {
  HarnessConfig::Gates gates;
  gates.set_min_top1(90);
  gates.set_max_top1_drop(0.3);
  gates.set_min_speedup(3);
  gates.set_min_snr_db(35);
  EXPECT_TRUE(GateStatus(CheckGates(gates, Measured(91.8, 91.6, 3.5))).ok());
  EXPECT_EQ(CheckGates(gates, Measured(91.8, 91.6, 3.5)).size(), 5);

  const absl::Status status = GateStatus(CheckGates(gates, Measured(91.8, 91.2, 2.5)));
  EXPECT_EQ(ExitCodeOf(status), kGateFailed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_top1_drop of int8 is 0.60, wanted 0.30"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("min_speedup of int8 is 2.50, wanted 3.00"));
  EXPECT_TRUE(GateStatus(CheckGates(HarnessConfig::Gates(), Measured(0, 0, 0))).ok()) << "no gates, none fails";
}

TEST(Gates, EveryPassThatChangedTheGraphStaysWithinTheError) {
  HarnessConfig::Gates gates;
  gates.set_max_abs_error(1e-5);
  Results results;
  for (const auto& [name, changed, error] :
       {std::make_tuple("normalize", false, -1.0), std::make_tuple("conv_bn", true, 2.4e-7),
        std::make_tuple("fusion", true, 3e-5), std::make_tuple("cleanup", true, -1.0)}) {
    auto* pass = results.add_passes();
    pass->set_name(name);
    pass->set_changed(changed);
    if (error >= 0) pass->set_max_abs_error(error);
  }
  const std::vector<Results::Gate> found = CheckGates(gates, results);
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[0].pass(), "conv_bn");
  EXPECT_TRUE(found[0].passed());
  EXPECT_EQ(std::string(GateStatus(found).message()),
            "max_abs_error of pass fusion is 3e-05, wanted 1e-05; "
            "max_abs_error of pass cleanup is not measured, wanted 1e-05");
}

TEST(Gates, WhatWasNotMeasuredDoesNotPass) {
  HarnessConfig::Gates gates;
  gates.set_min_top1(0);
  Results results;
  results.add_variants()->set_name("fp32");
  EXPECT_THAT(std::string(GateStatus(CheckGates(gates, results)).message()), HasSubstr("not measured"));
}

}  // namespace
}  // namespace fuselage::harness
