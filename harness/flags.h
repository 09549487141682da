// The command line: an optional command, then --name=value or --name value.
#ifndef FUSELAGE_HARNESS_FLAGS_H_
#define FUSELAGE_HARNESS_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/config.pb.h"

namespace fuselage::harness {

// The commands that take results.json of earlier runs in place of flags: to draw report.html again, to compare two
// runs, to make one of many.
inline constexpr char kReportCommand[] = "report", kCompareCommand[] = "compare", kMergeCommand[] = "merge";
// The command that takes two .ir files: how their graphs differ.
inline constexpr char kDiffCommand[] = "diff";

struct Flags {
  std::string config;
  // Empty: as the config says.
  std::string backend, isa, out, model, calibrate, labels, inputs, save_outputs, save_onnx, save_fuse, replay;
  std::vector<std::string> shapes, constants;
  std::vector<std::string> outputs;
  std::vector<std::string> pack;
  std::optional<int> threads, batch, streams, limit, unit, tune_ms;
  int64_t max_memory_bytes = 0;  // 0: the default of each part.
  bool allow_nonfinite = false, pixels = false;
  bool explain = false;  // Also the command `explain`, in front of the flags; and `compile`, whose --out is save_fuse.
  bool accuracy_only = false;  // As a sweep asks for it.
  bool sweep = false;          // The command `sweep`: `config` is a Sweep.
  bool no_cache = false, remeasure_peaks = false;
  bool help = false;
};

// `args` without the program's name. Usage errors name the flag, and the nearest one where it is unknown.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args);

// The flags and what they do, a line each.
std::string FlagsHelp();

// Puts what the flags override into the config.
void ApplyFlags(const Flags& flags, HarnessConfig* config);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_FLAGS_H_
