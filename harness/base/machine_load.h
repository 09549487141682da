// How busy other programs kept the machine while we measured: latencies beside them say little, above all on several
// threads, where a barrier waits for the slowest.
#ifndef FUSELAGE_HARNESS_BASE_MACHINE_LOAD_H_
#define FUSELAGE_HARNESS_BASE_MACHINE_LOAD_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace fuselage::harness {

// Others that keep more cores busy than this make what is timed beside them doubtful.
inline constexpr double kQuietCores = 0.1;

class MachineLoad {
 public:
  MachineLoad();  // Starts the interval.

  // Cores that others, stolen time included, kept busy on average since the start: 0.5 is half a core. None where
  // /proc/stat cannot be read or the interval is too short for the kernel's clock ticks.
  std::optional<double> OtherCores() const;

 private:
  struct Times {
    double wall = 0, machine = 0, process = 0;  // Seconds.
  };
  static std::optional<Times> Now();

  std::optional<Times> start_;
};

// Seconds of CPU time in the "cpu" line of a /proc/stat, everything but idle and waiting for I/O (proc(5)).
std::optional<double> BusySeconds(absl::string_view proc_stat, double ticks_per_second);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_MACHINE_LOAD_H_
