#include "harness/measure/slower_threads.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "harness/base/machine_load.h"

namespace fuselage::harness {
namespace {

constexpr double kWorthAWarning = 1.1;

// A median beyond the 90th percentile of the other's runs is not their noise.
bool Slower(const Results::Latency& more, const Results::Latency& fewer) {
  return more.median() > std::max(fewer.p90(), kWorthAWarning * fewer.median());
}

bool Quiet(const Results::Measurement& measurement) { return measurement.other_cores_busy() <= kQuietCores; }

}  // namespace

std::vector<std::string> MarkSlowerThreads(Results::Variant* variant) {
  std::vector<std::string> warnings;
  for (Results::Measurement& more : *variant->mutable_measurements()) {
    for (const Results::Measurement& fewer : variant->measurements()) {
      if (fewer.batch() != more.batch() || fewer.threads() >= more.threads() || !Quiet(fewer) || !Quiet(more)) continue;
      if (!Slower(more.latency_ms(), fewer.latency_ms())) continue;
      more.set_slower_than_threads(fewer.threads());
      warnings.push_back(absl::StrFormat("variant %s, batch %d: %d threads take %.3g ms, %d only %.3g", variant->name(),
                                         more.batch(), more.threads(), more.latency_ms().median(), fewer.threads(),
                                         fewer.latency_ms().median()));
      break;
    }
  }
  return warnings;
}

}  // namespace fuselage::harness
