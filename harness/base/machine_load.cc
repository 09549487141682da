#include "harness/base/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"

namespace fuselage::harness {
namespace {

// Ten ticks of the usual 100 Hz: less is mostly rounding.
constexpr double kShortestSeconds = 0.1;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::optional<double> BusySeconds(absl::string_view proc_stat, double ticks_per_second) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(proc_stat.substr(0, proc_stat.find('\n')), ' ', absl::SkipEmpty());
  // cpu user nice system idle iowait irq softirq steal ...; guests are part of user and nice.
  if (fields.size() < 9 || fields[0] != "cpu") return std::nullopt;
  int64_t busy = 0;
  for (size_t i : {1, 2, 3, 6, 7, 8}) {
    int64_t ticks = 0;
    if (!absl::SimpleAtoi(fields[i], &ticks)) return std::nullopt;
    busy += ticks;
  }
  return static_cast<double>(busy) / ticks_per_second;
}

std::optional<MachineLoad::Times> MachineLoad::Now() {
  const auto text = ReadFile("/proc/stat");
  rusage usage;
  if (!text.ok() || getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  const std::optional<double> machine = BusySeconds(*text, static_cast<double>(sysconf(_SC_CLK_TCK)));
  if (!machine.has_value()) return std::nullopt;
  Times times;
  times.wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  times.machine = *machine;
  times.process = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  return times;
}

MachineLoad::MachineLoad() : start_(Now()) {}

std::optional<double> MachineLoad::OtherCores() const {
  const std::optional<Times> now = Now();
  if (!start_.has_value() || !now.has_value() || now->wall - start_->wall < kShortestSeconds) return std::nullopt;
  const double others = (now->machine - start_->machine) - (now->process - start_->process);
  return std::max(0.0, others / (now->wall - start_->wall));
}

}  // namespace fuselage::harness
