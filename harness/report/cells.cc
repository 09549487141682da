#include "harness/report/cells.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "harness/report/table.h"

namespace fuselage::report {

std::string ErrorText(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  return *value == 0 ? "0" : absl::StrFormat("%.2g", *value);
}

std::string Times(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.2fx", *value) : "-";
}

std::string Milliseconds(const std::optional<double>& value) {
  return value.has_value() ? Number(*value, *value < 0.1 ? 4 : *value < 1 ? 3 : 2) : "-";
}

std::string SignedMs(double value) {
  return absl::StrFormat("%+.*f", std::abs(value) < 0.1 ? 4 : std::abs(value) < 1 ? 3 : 2, value);
}

std::string AccuracyText(const Results::Candidate& network) {
  if (network.has_top1()) return absl::StrFormat("%.2f %%", network.top1());
  return network.has_bits_per_byte() ? absl::StrFormat("%.4f bits", network.bits_per_byte()) : "-";
}

bool HasDataset(const Results& results) { return !results.dataset().name().empty(); }

bool HasAccuracy(const Results& results) { return HasDataset(results) && !results.dataset().unlabelled(); }

std::string Unit(const Results& results) {
  if (!HasDataset(results)) return "sample";
  return results.dataset().unit().empty() ? "image" : results.dataset().unit();
}

std::vector<const Results::Variant*> All(const Results& results) {
  std::vector<const Results::Variant*> all;
  for (const auto& variant : results.variants()) all.push_back(&variant);
  for (const auto& peer : results.peers()) all.push_back(&peer);
  return all;
}

}  // namespace fuselage::report
