#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

std::string Percent(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.2f %%", *value) : "-";
}

std::string RunsOn(const Results::Variant& variant) {
  return variant.not_run().empty() ? absl::StrCat(variant.backend(), " ", variant.isa()) : "not run";
}

// Without labels: how far the outputs are from the baseline's.
std::string Differences(const Results& results) {
  Table table("Variants",
              {{"variant", Align::kLeft}, {"runs on", Align::kLeft}, {"max difference"}, {"SNR dB"}, {"weights"}});
  for (const auto* variant : All(results)) {
    table.AddRow({variant->name(), RunsOn(*variant), ErrorText(FUSELAGE_OPTIONAL(*variant, max_abs_error)),
                  Number(FUSELAGE_OPTIONAL(*variant, snr_db), 1), Megabytes(variant->weight_bytes())});
  }
  return table.empty() ? "" : table.ToString();
}

std::string Accuracy(const Results& results) {
  Table table("Variants", {{"variant", Align::kLeft},
                           {"runs on", Align::kLeft},
                           {"images"},
                           {"top-1"},
                           {"top-5"},
                           {"agreement"},
                           {"weights"}});
  for (const auto* variant : All(results)) {
    table.AddRow({variant->name(), RunsOn(*variant), absl::StrCat(variant->images()),
                  Percent(FUSELAGE_OPTIONAL(*variant, top1)), Percent(FUSELAGE_OPTIONAL(*variant, top5)),
                  Percent(FUSELAGE_OPTIONAL(*variant, agreement_with_fp32)), Megabytes(variant->weight_bytes())});
  }
  return table.empty() ? "" : table.ToString();
}

// On a text.
std::string Bits(const Results& results) {
  Table table("Variants", {{"variant", Align::kLeft},
                           {"runs on", Align::kLeft},
                           {absl::StrCat(Unit(results), "s")},
                           {"bits per byte"},
                           {"KL divergence, bits"},
                           {"weights"}});
  for (const auto* variant : All(results)) {
    table.AddRow({variant->name(), RunsOn(*variant), absl::StrCat(variant->images()),
                  Number(FUSELAGE_OPTIONAL(*variant, bits_per_byte), 4),
                  Number(FUSELAGE_OPTIONAL(*variant, kl_divergence_bits), 4), Megabytes(variant->weight_bytes())});
  }
  return table.empty() ? "" : table.ToString();
}

}  // namespace

std::string Variants(const Results& results, const Options&) {
  if (results.has_explanation()) return "";  // `explain` measures no variant.
  if (!HasAccuracy(results)) return Differences(results);
  const auto& variants = results.variants();
  const bool bits = std::any_of(variants.begin(), variants.end(), [](const auto& v) { return v.has_bits_per_byte(); });
  return bits ? Bits(results) : Accuracy(results);
}

}  // namespace fuselage::report::sections
