#include "harness/measure/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ir/testing/matchers.h"

namespace fuselage::harness {
namespace {

using fuselage::testing::StatusIs;
using ::testing::HasSubstr;

// A tree as Linux has it in /sys/class/powercap.
class EnergyTest : public ::testing::Test {
 protected:
  EnergyTest() : powercap_(::testing::TempDir() + "/powercap") {
    std::filesystem::remove_all(powercap_);
    std::filesystem::create_directories(powercap_);
  }

  void SetZone(const std::string& zone, const std::string& name, uint64_t microjoules, uint64_t range = 262143328850) {
    const std::string folder = powercap_ + "/" + zone;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/name") << name << "\n";
    std::ofstream(folder + "/max_energy_range_uj") << range << "\n";
    SetEnergy(zone, std::to_string(microjoules) + "\n");
  }
  void SetEnergy(const std::string& zone, const std::string& text) {
    std::ofstream(powercap_ + "/" + zone + "/energy_uj") << text;
  }

  const std::string powercap_;
};

TEST_F(EnergyTest, AddsPackagesAndTheirMemory) {
  SetZone("intel-rapl:0", "package-0", 1'000'000);
  SetZone("intel-rapl:0:0", "core", 500'000);
  SetZone("intel-rapl:0:1", "dram", 10'000'000);
  SetZone("intel-rapl:1", "package-1", 2'000'000);
  SetZone("intel-rapl:2", "psys", 77);
  SetZone("intel-rapl-mmio:0", "package-0", 1'000'000);
  std::filesystem::create_directories(powercap_ + "/intel-rapl");
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/false, powercap_));
  EXPECT_EQ(meter.Sources(), "RAPL package-0, dram of intel-rapl:0:1, package-1");
  ASSERT_OK(meter.Start());
  SetZone("intel-rapl:0", "package-0", 4'500'000);
  SetZone("intel-rapl:0:0", "core", 99'000'000);
  SetZone("intel-rapl:0:1", "dram", 10'250'000);
  SetZone("intel-rapl:1", "package-1", 3'000'000);
  SetZone("intel-rapl:2", "psys", 99'000'000);
  SetZone("intel-rapl-mmio:0", "package-0", 99'000'000);
  ASSERT_OK_AND_ASSIGN(const double joules, meter.Joules());
  EXPECT_DOUBLE_EQ(joules, 3.5 + 0.25 + 1);
}

TEST_F(EnergyTest, ACounterThatWrapsAround) {
  SetZone("intel-rapl:0", "package-0", 9'000'000, /*range=*/10'000'000);
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/false, powercap_));
  ASSERT_OK(meter.Start());
  SetEnergy("intel-rapl:0", "500000\n");
  ASSERT_OK_AND_ASSIGN(const double joules, meter.Joules());
  EXPECT_DOUBLE_EQ(joules, 1.5);
  ASSERT_OK(meter.Start());
  SetEnergy("intel-rapl:0", "750000\n");
  ASSERT_OK_AND_ASSIGN(const double more, meter.Joules());
  EXPECT_DOUBLE_EQ(more, 0.25);
}

TEST(Energy, BetweenTwoReadings) {
  EXPECT_DOUBLE_EQ(JoulesBetween(5, 5, 10), 0);
  EXPECT_DOUBLE_EQ(JoulesBetween(5, 1'000'005, 10'000'000), 1);
  EXPECT_DOUBLE_EQ(JoulesBetween(10'000'000, 0, 10'000'000), 0);
  EXPECT_DOUBLE_EQ(JoulesBetween(4'000'000, 1'000'000, 5'000'000), 2);
  EXPECT_DOUBLE_EQ(JoulesBetween(5, 3, 0), 0) << "a counter without a range, which was set back";
}

TEST_F(EnergyTest, SaysWhyThereIsNone) {
  EXPECT_THAT(EnergyMeter::Open(false, powercap_).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no RAPL package in " + powercap_)));
  EXPECT_FALSE(EnergyMeter::Open(false, powercap_ + "/nowhere").ok());
  SetZone("intel-rapl:0", "package-0", 1);
  SetEnergy("intel-rapl:0", "secret");
  EXPECT_THAT(EnergyMeter::Open(false, powercap_).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no number")));
  std::filesystem::remove(powercap_ + "/intel-rapl:0/energy_uj");
  EXPECT_THAT(EnergyMeter::Open(false, powercap_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("energy_uj")));
}

TEST_F(EnergyTest, ACounterThatGoesAwayIsAnError) {
  SetZone("intel-rapl:0", "package-0", 1);
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/false, powercap_));
  ASSERT_OK(meter.Start());
  std::filesystem::remove_all(powercap_ + "/intel-rapl:0");
  EXPECT_FALSE(meter.Joules().ok());
}

}  // namespace
}  // namespace fuselage::harness
