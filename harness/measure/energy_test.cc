#include "harness/measure/energy.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "ir/testing/matchers.h"

namespace fuselage::harness {
namespace {

using fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A tree as Linux has it in /sys/class/powercap.
class EnergyTest : public ::testing::Test {
 protected:
  EnergyTest() : powercap_(::testing::TempDir() + "/powercap"), hwmon_(::testing::TempDir() + "/hwmon") {
    for (const std::string& folder : {powercap_, hwmon_}) {
      std::filesystem::remove_all(folder);
      std::filesystem::create_directories(folder);
    }
  }

  EnergySources Sources(const std::string& nvml = "") const { return {powercap_, hwmon_, nvml}; }

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

  void SetHwmon(const std::string& device, const std::string& name, uint64_t microwatts, uint64_t interval_ms) {
    const std::string folder = hwmon_ + "/" + device;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/name") << name << "\n";
    std::ofstream(folder + "/power1_average") << microwatts << "\n";
    std::ofstream(folder + "/power1_average_interval") << interval_ms << "\n";
  }

  const std::string powercap_, hwmon_;
};

TEST_F(EnergyTest, AddsPackagesAndTheirMemory) {
  SetZone("intel-rapl:0", "package-0", 1'000'000);
  SetZone("intel-rapl:0:0", "core", 500'000);
  SetZone("intel-rapl:0:1", "dram", 10'000'000);
  SetZone("intel-rapl:1", "package-1", 2'000'000);
  SetZone("intel-rapl:2", "psys", 77);
  SetZone("intel-rapl-mmio:0", "package-0", 1'000'000);
  std::filesystem::create_directories(powercap_ + "/intel-rapl");
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/false, Sources()));
  EXPECT_EQ(meter.Sources(), "RAPL package-0, RAPL dram of intel-rapl:0:1, RAPL package-1");
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
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/false, Sources()));
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
}

TEST_F(EnergyTest, SaysWhyThereIsNone) {
  EXPECT_THAT(
      EnergyMeter::Open(false, Sources()).status(),
      StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("no RAPL package in " + powercap_),
                                                     HasSubstr("no power meter in " + hwmon_), HasSubstr("ipmitool"))));
  EXPECT_FALSE(EnergyMeter::Open(false, {powercap_ + "/nowhere", hwmon_ + "/nowhere"}).ok());
  SetZone("intel-rapl:0", "package-0", 1);
  SetEnergy("intel-rapl:0", "secret");
  EXPECT_THAT(EnergyMeter::Open(false, Sources()).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no number")));
  std::filesystem::remove(powercap_ + "/intel-rapl:0/energy_uj");
  EXPECT_THAT(EnergyMeter::Open(false, Sources()).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("energy_uj")));
}

// Joules are what the meter's watts are over the time between two readings, which this test measures too.
TEST_F(EnergyTest, ThePowerMeterOfTheWholeMachine) {
  SetHwmon("hwmon0", "amdgpu", 77'000'000, 1);
  SetHwmon("hwmon1", "power_meter", 200'000'000, 1000);
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/true, Sources()));
  EXPECT_EQ(meter.Sources(), "the machine's power meter (ACPI)") << "a GPU in the machine is counted already";
  const auto seconds_since = [](std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto before_start = std::chrono::steady_clock::now();
  ASSERT_OK(meter.Start());
  const auto after_start = std::chrono::steady_clock::now();
  SetHwmon("hwmon1", "power_meter", 150'000'000, 1000);
  const double least = 150 * seconds_since(after_start);
  ASSERT_OK_AND_ASSIGN(const double joules, meter.Joules());
  EXPECT_GE(joules, least - 1e-6);
  EXPECT_LE(joules, 150 * seconds_since(before_start) + 1e-6);

  SetZone("intel-rapl:0", "package-0", 1);
  ASSERT_OK_AND_ASSIGN(meter, EnergyMeter::Open(/*gpu=*/false, Sources()));
  EXPECT_EQ(meter.Sources(), "RAPL package-0") << "which has no wall and no fans in it";
}

TEST_F(EnergyTest, APowerMeterThatAveragesForTooLong) {
  SetHwmon("hwmon1", "power_meter", 200'000'000, 30'000);
  EXPECT_THAT(EnergyMeter::Open(false, Sources()).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("no RAPL package"), HasSubstr("averages of 30000 ms, want 1000 or less"))));
  std::filesystem::remove(hwmon_ + "/hwmon1/power1_average_interval");
  EXPECT_THAT(EnergyMeter::Open(false, Sources()).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("power1_average_interval")));
}

// The driver's library, as harness/measure/testing/fake_nvml.cc plays it.
class NvmlTest : public EnergyTest {
 protected:
  static constexpr char kFake[] = "harness/measure/libfake_nvml.so";

  NvmlTest() : library_(dlopen(kFake, RTLD_NOW | RTLD_LOCAL)) {
    SetZone("intel-rapl:0", "package-0", 1'000'000);
    if (library_ == nullptr) ADD_FAILURE() << dlerror();
    Set(0);
  }
  ~NvmlTest() override { EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library_, "FakeNvmlStarted"))(), 0); }

  void Set(unsigned long long millijoules, int init = 0, int energy = 0) {
    reinterpret_cast<void (*)(unsigned long long, int, int)>(dlsym(library_, "FakeNvmlSet"))(millijoules, init, energy);
  }
  // Why a meter of RAPL and this library does not open.
  std::string WhyNot(const std::string& library = kFake) {
    const auto meter = EnergyMeter::Open(/*gpu=*/true, Sources(library));
    EXPECT_EQ(meter.status().code(), absl::StatusCode::kUnavailable);
    return std::string(meter.status().message());
  }

  void* const library_;
};

TEST_F(NvmlTest, CountsBesideRapl) {
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/true, Sources(kFake)));
  EXPECT_EQ(meter.Sources(), "RAPL package-0, NVML NVIDIA Fake 1");
  const unsigned long long far = 1ull << 40;  // Millijoules since the driver was loaded: a year of 35 W.
  Set(far);
  ASSERT_OK(meter.Start());
  Set(far + 2'500);
  SetEnergy("intel-rapl:0", "1250000\n");
  ASSERT_OK_AND_ASSIGN(const double joules, meter.Joules());
  EXPECT_DOUBLE_EQ(joules, 2.5 + 0.25);
}

TEST_F(NvmlTest, SaysWhatIsWrong) {
  EXPECT_EQ(WhyNot("/nowhere/libnvidia-ml.so.1"), "no /nowhere/libnvidia-ml.so.1");
  EXPECT_THAT(WhyNot("harness/measure/libfake_old_nvml.so"), HasSubstr("is too old to count energy"));
  Set(0, /*init=*/9);
  EXPECT_EQ(WhyNot(), "NVML does not start (9)");
  Set(0, 0, /*energy=*/3);
  EXPECT_EQ(WhyNot(), "NVML counts no energy of this GPU (3)");
}

TEST_F(NvmlTest, ACounterThatFailsOrIsSetBackMeanwhileIsAnError) {
  Set(5'000);
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/true, Sources(kFake)));
  ASSERT_OK(meter.Start());
  Set(6'000, 0, /*energy=*/999);
  EXPECT_THAT(meter.Joules().status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("(999)")));
  Set(4'000);
  EXPECT_THAT(meter.Joules().status(),
              StatusIs(absl::StatusCode::kUnavailable, "NVML NVIDIA Fake 1 was set back while it counted"));
}

TEST_F(EnergyTest, ACounterThatGoesAwayIsAnError) {
  SetZone("intel-rapl:0", "package-0", 1);
  ASSERT_OK_AND_ASSIGN(EnergyMeter meter, EnergyMeter::Open(/*gpu=*/false, Sources()));
  ASSERT_OK(meter.Start());
  std::filesystem::remove_all(powercap_ + "/intel-rapl:0");
  EXPECT_FALSE(meter.Joules().ok());
}

}  // namespace
}  // namespace fuselage::harness
