// EnergyMeter: the joules that the machine's own counters count: the CPU's packages and their memory by RAPL (Linux's
// powercap), a GPU by NVML. Idle power and other programs' share are in them.
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

// The first GPU that NVML knows, by its driver's library.
absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenNvml();

class EnergyMeter {
 public:
  // What this machine has. `gpu`: of a GPU too, without which there is no meter then. Unavailable says why there is
  // none.
  static absl::StatusOr<EnergyMeter> Open(bool gpu, const std::string& powercap = kPowercap);

  // "RAPL package-0, dram-0; NVML NVIDIA H200"
  std::string Sources() const;

  absl::Status Start();
  // Since Start, less than one wrap-around ago: minutes.
  absl::StatusOr<double> Joules();

 private:
  std::vector<std::unique_ptr<EnergyCounter>> counters_;
  std::vector<uint64_t> started_;
};

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_ENERGY_H_
