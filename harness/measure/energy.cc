#include "harness/measure/energy.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

absl::StatusOr<uint64_t> ReadNumber(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  uint64_t value = 0;
  if (absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &value)) return value;
  return absl::UnavailableError(absl::StrCat(path, " holds no number"));
}

class RaplZone : public EnergyCounter {
 public:
  RaplZone(std::string name, uint64_t range, std::string folder)
      : EnergyCounter(std::move(name), range), path_(std::move(folder) + "/energy_uj") {}
  absl::StatusOr<uint64_t> Read() override { return ReadNumber(path_); }

 private:
  const std::string path_;
};

// Watts become joules: those of the last interval, which a reading gives, over the time since the reading before.
class PowerMeter : public EnergyCounter {
 public:
  explicit PowerMeter(std::string path)
      : EnergyCounter("the machine's power meter (ACPI)", 0), path_(std::move(path)) {}

  absl::StatusOr<uint64_t> Read() override {
    ASSIGN_OR_RETURN(const uint64_t microwatts, ReadNumber(path_));
    const auto now = std::chrono::steady_clock::now();
    microjoules_ += static_cast<double>(microwatts) * std::chrono::duration<double>(now - read_).count();
    read_ = now;
    return static_cast<uint64_t>(microjoules_);
  }

 private:
  const std::string path_;
  std::chrono::steady_clock::time_point read_ = std::chrono::steady_clock::now();
  double microjoules_ = 0;
};

// The functions of nvml.h that count energy, which need no header: handles are pointers, results are ints, 0 success.
class Nvml : public EnergyCounter {
 public:
  using EnergyOf = int (*)(void* device, unsigned long long* millijoules);
  using Shutdown = int (*)();

  Nvml(std::string name, void* device, EnergyOf energy_of, Shutdown shutdown)
      : EnergyCounter(std::move(name), 0), device_(device), energy_of_(energy_of), shutdown_(shutdown) {}
  ~Nvml() override { shutdown_(); }

  absl::StatusOr<uint64_t> Read() override {
    unsigned long long millijoules = 0;
    const int result = energy_of_(device_, &millijoules);
    if (result != 0) return absl::UnavailableError(absl::StrCat("NVML counts no energy of this GPU (", result, ")"));
    return uint64_t{millijoules} * 1000;
  }

 private:
  void* const device_;
  const EnergyOf energy_of_;
  const Shutdown shutdown_;
};

}  // namespace

double JoulesBetween(uint64_t before, uint64_t now, uint64_t range) {
  const uint64_t microjoules = now >= before ? now - before : range - before + now;
  return static_cast<double>(microjoules) / 1e6;
}

absl::StatusOr<std::vector<std::unique_ptr<EnergyCounter>>> OpenRapl(const std::string& powercap) {
  std::vector<std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator it(powercap, error), end; !error && it != end; it.increment(error)) {
    // Not intel-rapl-mmio, which counts the same packages once more.
    if (absl::StartsWith(it->path().filename().string(), "intel-rapl:")) folders.push_back(it->path().string());
  }
  std::sort(folders.begin(), folders.end());
  std::vector<std::unique_ptr<EnergyCounter>> zones;
  for (const std::string& folder : folders) {
    const absl::StatusOr<std::string> text = ReadFile(folder + "/name");
    if (!text.ok()) continue;
    std::string name(absl::StripAsciiWhitespace(*text));
    if (name == "dram") {
      name = absl::StrCat("dram of ", std::filesystem::path(folder).filename().string());
    } else if (!absl::StartsWith(name, "package")) {
      continue;
    }
    name.insert(0, "RAPL ");
    ASSIGN_OR_RETURN(const uint64_t range, ReadNumber(folder + "/max_energy_range_uj"));
    zones.push_back(std::make_unique<RaplZone>(std::move(name), range, folder));
    RETURN_IF_ERROR(zones.back()->Read().status());  // Mostly root's alone.
  }
  if (zones.empty()) return absl::UnavailableError(absl::StrCat("no RAPL package in ", powercap));
  return zones;
}

absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenPowerMeter(const std::string& hwmon) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(hwmon, error), end; !error && it != end; it.increment(error)) {
    const std::string folder = it->path().string();
    // The driver acpi_power_meter's. Others have such files too: a GPU's, for its own power.
    if (absl::StripAsciiWhitespace(ReadFile(folder + "/name").value_or("")) != "power_meter") continue;
    ASSIGN_OR_RETURN(const uint64_t interval_ms, ReadNumber(folder + "/power1_average_interval"));
    if (static_cast<double>(interval_ms) > 1e3 * kEnergySeconds) {
      return absl::UnavailableError(absl::StrCat("the power meter in ", folder, " gives averages of ", interval_ms,
                                                 " ms, want ", 1e3 * kEnergySeconds, " or less"));
    }
    auto meter = std::make_unique<PowerMeter>(folder + "/power1_average");
    RETURN_IF_ERROR(meter->Read().status());
    return meter;
  }
  return absl::UnavailableError(
      absl::StrCat("no power meter in ", hwmon, " (one that only ipmitool reads, as root, is not asked)"));
}

absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenNvml(const std::string& name_of_library) {
  void* const library = dlopen(name_of_library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("no ", name_of_library));
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<int (*)()>(dlsym(library, "nvmlShutdown"));
  const auto by_index = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
  const auto name_of = reinterpret_cast<int (*)(void*, char*, unsigned)>(dlsym(library, "nvmlDeviceGetName"));
  const auto energy_of = reinterpret_cast<Nvml::EnergyOf>(dlsym(library, "nvmlDeviceGetTotalEnergyConsumption"));
  if (!init || !shutdown || !by_index || !name_of || !energy_of) {
    return absl::UnavailableError(absl::StrCat(name_of_library, " is too old to count energy"));
  }
  if (const int result = init(); result != 0)
    return absl::UnavailableError(absl::StrCat("NVML does not start (", result, ")"));
  void* device = nullptr;
  char name[96] = "";  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  if (by_index(0, &device) != 0 || name_of(device, name, sizeof name) != 0) {
    shutdown();
    return absl::UnavailableError("NVML knows no GPU");
  }
  auto counter = std::make_unique<Nvml>(absl::StrCat("NVML ", name), device, energy_of, shutdown);
  RETURN_IF_ERROR(counter->Read().status());
  return counter;
}

absl::StatusOr<EnergyMeter> EnergyMeter::Open(bool gpu, const EnergySources& sources) {
  EnergyMeter meter;
  auto zones = OpenRapl(sources.powercap);
  if (!zones.ok()) {
    auto machine = OpenPowerMeter(sources.hwmon);  // Its GPUs included.
    if (!machine.ok()) {
      return absl::UnavailableError(absl::StrCat(zones.status().message(), "; ", machine.status().message()));
    }
    meter.counters_.push_back(*std::move(machine));
    return meter;
  }
  meter.counters_ = *std::move(zones);
  if (gpu) {
    ASSIGN_OR_RETURN(std::unique_ptr<EnergyCounter> counter, OpenNvml(sources.nvml));
    meter.counters_.push_back(std::move(counter));
  }
  return meter;
}

std::string EnergyMeter::Sources() const {
  return absl::StrJoin(counters_, ", ", [](std::string* out, const auto& counter) { out->append(counter->name()); });
}

absl::Status EnergyMeter::Start() {
  started_.clear();
  for (const auto& counter : counters_) {
    ASSIGN_OR_RETURN(started_.emplace_back(), counter->Read());
  }
  return absl::OkStatus();
}

absl::StatusOr<double> EnergyMeter::Joules() {
  double joules = 0;
  for (size_t i = 0; i < counters_.size(); ++i) {
    ASSIGN_OR_RETURN(const uint64_t now, counters_[i]->Read());
    if (now < started_[i] && counters_[i]->range() < started_[i]) {
      return absl::UnavailableError(absl::StrCat(counters_[i]->name(), " was set back while it counted"));
    }
    joules += JoulesBetween(started_[i], now, counters_[i]->range());
  }
  return joules;
}

}  // namespace fuselage::harness
