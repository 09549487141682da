// What passes a gate, and what does not.
#include "harness/gates.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness/base/exit_code.h"

namespace fuselage::harness {
namespace {

using ::testing::HasSubstr;

constexpr GatedMeasurement kFirst = {4, 2};

Results Measured(double baseline_top1, double top1, double speedup) {
  Results results;
  for (double value : {baseline_top1, top1}) {
    auto* variant = results.add_variants();
    variant->set_name(results.variants_size() == 1 ? "fp32" : "int8");
    variant->set_top1(value);
    auto* measurement = variant->add_measurements();
    measurement->set_batch(kFirst.batch);
    measurement->set_threads(kFirst.threads);
    measurement->set_speedup(results.variants_size() == 1 ? 1 : speedup);
  }
  results.mutable_variants(1)->add_layers();
  results.mutable_variants(1)->add_layers()->set_snr_db(41);
  results.mutable_variants(1)->add_layers()->set_snr_db(38);
  return results;
}

TEST(Gates, PassAndFail) {
  HarnessConfig config;
  HarnessConfig::Gates& gates = *config.mutable_gates();
  gates.set_min_top1(90);
  gates.set_max_top1_drop(0.3);
  gates.set_min_speedup(3);
  gates.set_min_snr_db(35);
  EXPECT_TRUE(GateStatus(CheckGates(config, kFirst, Measured(91.8, 91.6, 3.5))).ok());
  EXPECT_EQ(CheckGates(config, kFirst, Measured(91.8, 91.6, 3.5)).size(), 5);

  const absl::Status status = GateStatus(CheckGates(config, kFirst, Measured(91.8, 91.2, 2.5)));
  EXPECT_EQ(ExitCodeOf(status), kGateFailed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_top1_drop of int8 is 0.60, wanted 0.30"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("min_speedup of int8 is 2.50, wanted 3.00"));
  EXPECT_TRUE(GateStatus(CheckGates(HarnessConfig(), kFirst, Measured(0, 0, 0))).ok()) << "no gates, none fails";
}

// A third one, whose layers are worse, and which may lose more.
TEST(Gates, AVariantsOwnTakeThePlaceOfTheRuns) {
  HarnessConfig config;
  config.mutable_gates()->set_min_snr_db(37);
  config.mutable_gates()->set_max_top1_drop(0.3);
  config.add_variants()->set_name("fp32");
  config.add_variants()->set_name("int8");
  config.add_variants()->set_name("mxfp4");
  Results results = Measured(91.8, 91.6, 3.5);
  auto* third = results.add_variants();
  third->set_name("mxfp4");
  third->set_top1(91.4);
  third->add_layers()->set_snr_db(34);
  const auto message = [&] { return std::string(GateStatus(CheckGates(config, kFirst, results)).message()); };
  EXPECT_EQ(message(), "max_top1_drop of mxfp4 is 0.40, wanted 0.30; min_snr_db of mxfp4 is 34.00, wanted 37.00");
  HarnessConfig::Gates& own = *config.mutable_variants(2)->mutable_gates();
  own.set_min_snr_db(30);
  EXPECT_EQ(message(), "max_top1_drop of mxfp4 is 0.40, wanted 0.30") << "the run's stays";
  own.set_max_top1_drop(0.5);
  EXPECT_EQ(message(), "");
  own.set_min_top1(91.5);
  EXPECT_EQ(message(), "min_top1 of mxfp4 is 91.40, wanted 91.50") << "one that the run has not";
  EXPECT_EQ(CheckGates(config, kFirst, results).size(), 5);
}

TEST(Gates, BitsPerByte) {
  HarnessConfig config;
  HarnessConfig::Gates& gates = *config.mutable_gates();
  gates.set_max_bits_per_byte(1.8);
  gates.set_max_bits_per_byte_increase_percent(2);
  const auto message = [&](double baseline, double bits) {
    Results results = Measured(0, 0, 0);
    results.mutable_variants(0)->set_bits_per_byte(baseline);
    results.mutable_variants(1)->set_bits_per_byte(bits);
    return std::string(GateStatus(CheckGates(config, kFirst, results)).message());
  };
  EXPECT_EQ(message(1.75, 1.78), "");
  EXPECT_EQ(message(1.75, 1.82),
            "max_bits_per_byte of int8 is 1.82, wanted 1.80; "
            "max_bits_per_byte_increase_percent of int8 is 4.00, wanted 2.00");
  EXPECT_THAT(message(NAN, 1.75), HasSubstr("max_bits_per_byte_increase_percent of int8 is nan, wanted 2.00"));
  EXPECT_THAT(message(1.75, INFINITY), HasSubstr("max_bits_per_byte of int8 is inf, wanted 1.80"));
  EXPECT_THAT(std::string(GateStatus(CheckGates(config, kFirst, Measured(0, 0, 0))).message()),
              HasSubstr("max_bits_per_byte of fp32 is not judged, wanted 1.80 (not measured)"));
}

TEST(Gates, EveryPassThatChangedTheGraphStaysWithinTheError) {
  HarnessConfig config;
  HarnessConfig::Gates& gates = *config.mutable_gates();
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
  const std::vector<Results::Gate> found = CheckGates(config, kFirst, results);
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[0].pass(), "conv_bn");
  EXPECT_TRUE(found[0].passed());
  EXPECT_EQ(std::string(GateStatus(found).message()),
            "max_abs_error of pass fusion is 3e-05, wanted 1e-05; "
            "max_abs_error of pass cleanup is not judged, wanted 1e-05 (not measured)");
}

TEST(Gates, NanPassesNone) {
  HarnessConfig config;
  HarnessConfig::Gates& gates = *config.mutable_gates();
  gates.set_min_top1(0);
  gates.set_max_top1_drop(100);
  gates.set_min_speedup(0);
  gates.set_min_snr_db(-1000);
  gates.set_max_bits_per_byte(1000);
  gates.set_max_bits_per_byte_increase_percent(1000);
  Results results = Measured(NAN, NAN, NAN);
  for (auto& variant : *results.mutable_variants()) variant.set_bits_per_byte(NAN);
  results.mutable_variants(0)->mutable_measurements(0)->set_speedup(NAN);
  results.mutable_variants(1)->mutable_layers(1)->set_snr_db(NAN);
  for (const Results::Gate& gate : CheckGates(config, kFirst, results)) EXPECT_FALSE(gate.passed()) << gate.name();
}

TEST(Gates, WhatWasNotMeasuredDoesNotPass) {
  HarnessConfig config;
  HarnessConfig::Gates& gates = *config.mutable_gates();
  gates.set_min_top1(0);
  Results results;
  results.add_variants()->set_name("fp32");
  EXPECT_THAT(std::string(GateStatus(CheckGates(config, kFirst, results)).message()), HasSubstr("not measured"));
}

HarnessConfig Speedup(double wanted) {
  HarnessConfig config;
  config.mutable_gates()->set_min_speedup(wanted);
  return config;
}

std::string MessageOf(const HarnessConfig& config, const Results& results) {
  return std::string(GateStatus(CheckGates(config, kFirst, results)).message());
}

TEST(Gates, SpeedupsThatDoNotCount) {
  Results results = Measured(90, 90, 100);
  EXPECT_EQ(MessageOf(Speedup(3), results), "");
  results.mutable_variants(0)->set_reference_steps(12);
  EXPECT_EQ(MessageOf(Speedup(3), results),
            "min_speedup of int8 is failed, wanted 3.00 (reference evaluation runs 12 steps of fp32)");

  results = Measured(90, 90, 100);
  results.mutable_variants(1)->mutable_measurements(0)->set_baseline_backend("cpu");
  EXPECT_EQ(MessageOf(Speedup(3), results),
            "min_speedup of int8 is 100.00, wanted 3.00 (across devices: over fp32 on cpu)");

  // Where the first batch size could not run, another one's speedup is no answer.
  results = Measured(90, 90, 100);
  results.mutable_variants(1)->mutable_measurements(0)->set_batch(1);
  EXPECT_EQ(MessageOf(Speedup(3), results),
            "min_speedup of int8 is not judged, wanted 3.00 (not measured at batch 4, threads 2)");
}

TEST(Gates, OfVariantsThatWereNotRun) {
  HarnessConfig config = Speedup(3);
  config.mutable_gates()->set_min_top1(80);
  Results results = Measured(90, 90, 100);
  auto* absent = results.add_variants();
  absent->set_name("int8_cuda");
  absent->set_not_run("no GPU here");
  EXPECT_EQ(MessageOf(config, results),
            "min_top1 of int8_cuda is not judged, wanted 80.00 (not run: no GPU here); "
            "min_speedup of int8_cuda is not judged, wanted 3.00 (not run: no GPU here)");
  absent->set_optional(true);
  EXPECT_EQ(MessageOf(config, results), "");
  const std::vector<Results::Gate> checked = CheckGates(config, kFirst, results);
  ASSERT_EQ(checked.size(), 5);
  EXPECT_FALSE(checked[2].judged());
  EXPECT_FALSE(checked[2].passed());
  EXPECT_TRUE(checked[2].excused());

  // The baseline: nothing takes its place.
  results = Measured(90, 90, 100);
  results.mutable_variants(0)->set_not_run("no GPU here");
  EXPECT_EQ(MessageOf(Speedup(3), results),
            "min_speedup of int8 is not judged, wanted 3.00 (the baseline fp32 was not run: no GPU here)");
  results.mutable_variants(0)->set_optional(true);
  EXPECT_EQ(MessageOf(Speedup(3), results), "");
}

TEST(Gates, WithNothingToJudge) {
  Results results;
  EXPECT_EQ(MessageOf(Speedup(3), results), "min_speedup is not judged, wanted 3.00 (no variant beside the baseline)");
  results.add_variants()->set_name("fp32");
  EXPECT_EQ(MessageOf(Speedup(3), results), "min_speedup is not judged, wanted 3.00 (no variant beside the baseline)");
}

}  // namespace
}  // namespace fuselage::harness
