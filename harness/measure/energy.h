// EnergyMeter: the joules that the machine's own counters count: the CPU's packages and their memory by RAPL (Linux's
// powercap), a GPU by NVML; where there is no RAPL, the whole machine by its power meter (ACPI's, mostly the board's
// management controller, which IPMI asks too). Idle power and other programs' share are in them.
#ifndef FUSELAGE_HARNESS_MEASURE_ENERGY_H_
#define FUSELAGE_HARNESS_MEASURE_ENERGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fuselage::harness {

// Counts up in microjoules, and begins anew at 0 behind `range` (0: never).
class EnergyCounter {
 public:
  EnergyCounter(std::string name, uint64_t range) : name_(std::move(name)), range_(range) {}
  virtual ~EnergyCounter() = default;

  const std::string& name() const { return name_; }
  uint64_t range() const { return range_; }
  virtual absl::StatusOr<uint64_t> Read() = 0;

 private:
  const std::string name_;
  const uint64_t range_;
};

// Between two readings, of which the later may be less by one wrap-around.
double JoulesBetween(uint64_t before, uint64_t now, uint64_t range);

// RAPL's zones below `powercap`: "package-0", ..., and the "dram" of each, which the package does not count; not the
// cores, which it counts, nor psys, which counts it. Unavailable says why there are none.
inline constexpr char kPowercap[] = "/sys/class/powercap";
absl::StatusOr<std::vector<std::unique_ptr<EnergyCounter>>> OpenRapl(const std::string& powercap = kPowercap);

// ACPI's power meter below `hwmon`, whose average over at most a measurement's time stands for all of it. Unavailable
// says why there is none.
inline constexpr char kHwmon[] = "/sys/class/hwmon";
inline constexpr double kEnergySeconds = 1;  // A measurement's. RAPL counts anew a thousand times a second.
absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenPowerMeter(const std::string& hwmon = kHwmon);

// The first GPU that NVML knows, by its driver's library.
inline constexpr char kNvml[] = "libnvidia-ml.so.1";
absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenNvml(const std::string& library = kNvml);

struct EnergySources {
  std::string powercap = kPowercap, hwmon = kHwmon, nvml = kNvml;
};

class EnergyMeter {
 public:
  // What this machine has. `gpu`: of a GPU too, without which there is no meter then. Unavailable says why there is
  // none.
  static absl::StatusOr<EnergyMeter> Open(bool gpu, const EnergySources& sources = {});

  // "RAPL package-0, RAPL dram of intel-rapl:0:1, NVML NVIDIA H200"
  std::string Sources() const;

  absl::Status Start();
  // Since Start, less than one wrap-around ago: minutes. Unavailable: a counter was set back meanwhile.
  absl::StatusOr<double> Joules();

 private:
  std::vector<std::unique_ptr<EnergyCounter>> counters_;
  std::vector<uint64_t> started_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_ENERGY_H_
