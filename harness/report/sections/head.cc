#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

// "Peaks of one thread: 95 GFLOP/s FP32, 310 GOP/s INT8, 11.2 GB/s, 0.9 us a call"
std::string PeaksLine(const Results::Peaks& peaks) {
  return absl::StrFormat("Peaks of one thread: %.0f GFLOP/s FP32, %.0f GOP/s INT8, %.1f GB/s, %.2f us a call\n",
                         peaks.f32_flops_per_second() / 1e9, peaks.int8_ops_per_second() / 1e9,
                         peaks.bytes_per_second() / 1e9, peaks.seconds_per_call() * 1e6);
}

}  // namespace

// What was measured, on what.
std::string Head(const Results& results, const Options&) {
  const auto& environment = results.environment();
  std::string out;
  if (!results.title().empty()) absl::StrAppend(&out, Escaped(results.title()), "\n");
  absl::StrAppend(&out, Escaped(results.config()), " on ", Escaped(environment.cpu()), ", ", environment.cores(),
                  " cores, ", environment.isa(), "\n");
  if (!environment.gpu_arch().empty()) {
    absl::StrAppend(&out, Escaped(environment.gpu()), ", ", environment.gpu_arch(), ", driver for CUDA ",
                    environment.cuda_driver(), "\n");
  }
  if (environment.has_peaks()) absl::StrAppend(&out, PeaksLine(environment.peaks()));
  if (HasDataset(results)) {
    std::string unit = Escaped(Unit(results));
    unit[0] = absl::ascii_toupper(unit[0]);
    absl::StrAppend(&out, unit, "s of ", Escaped(results.dataset().name()), " (", results.dataset().split(), ")");
    if (results.calibration().images() > 0) {
      absl::StrAppend(&out, ", calibrated on ", results.calibration().images(), " (", results.calibration().split(),
                      ")");
    }
    absl::StrAppend(&out, HasAccuracy(results) ? "\n" : "; no labels: accuracy not measured\n");
  } else if (results.variants_size() > 0) {
    absl::StrAppend(&out, results.inputs().empty() ? "Random inputs" : "Inputs of " + Escaped(results.inputs()),
                    "; no dataset: accuracy not measured\n");
  }
  return out;
}

}  // namespace fuselage::report::sections
