#include "harness/gates.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/exit_code.h"

namespace fuselage::harness {
namespace {

enum class Bound { kAtLeast, kAtMost };

Results::Gate MakeGate(const std::string& name, const std::string& variant, Bound bound, double wanted,
                       std::optional<double> found) {
  Results::Gate gate;
  gate.set_name(name);
  gate.set_variant(variant);
  gate.set_wanted(wanted);
  if (found.has_value()) {
    gate.set_found(*found);
    gate.set_passed(bound == Bound::kAtLeast ? *found >= wanted : *found <= wanted);
  }
  return gate;
}

// "91.20", "1.2e-05"
std::string BoundText(double value) {
  return std::abs(value) < 0.01 ? absl::StrFormat("%.2g", value) : absl::StrFormat("%.2f", value);
}

std::optional<double> SmallestSnr(const Results::Variant& variant) {
  std::optional<double> smallest;
  for (const auto& layer : variant.layers()) {
    if (layer.has_snr_db()) smallest = std::min(smallest.value_or(layer.snr_db()), layer.snr_db());
  }
  return smallest;
}

}  // namespace

std::vector<Results::Gate> CheckGates(const HarnessConfig::Gates& gates, const Results& results) {
  std::vector<Results::Gate> checked;
  for (int i = 0; i < results.variants_size(); ++i) {
    const auto& variant = results.variants(i);
    const auto& baseline = results.variants(0);
    std::optional<double> top1, drop, speedup;
    if (variant.has_top1()) top1 = variant.top1();
    if (variant.has_top1() && baseline.has_top1()) drop = baseline.top1() - variant.top1();
    if (variant.measurements_size() > 0 && variant.measurements(0).has_speedup()) {
      speedup = variant.measurements(0).speedup();
    }
    if (gates.has_min_top1()) {
      checked.push_back(MakeGate("min_top1", variant.name(), Bound::kAtLeast, gates.min_top1(), top1));
    }
    if (i == 0) continue;
    if (gates.has_max_top1_drop()) {
      checked.push_back(MakeGate("max_top1_drop", variant.name(), Bound::kAtMost, gates.max_top1_drop(), drop));
    }
    if (gates.has_min_speedup()) {
      checked.push_back(MakeGate("min_speedup", variant.name(), Bound::kAtLeast, gates.min_speedup(), speedup));
    }
    if (gates.has_min_snr_db()) {
      checked.push_back(
          MakeGate("min_snr_db", variant.name(), Bound::kAtLeast, gates.min_snr_db(), SmallestSnr(variant)));
    }
  }
  if (gates.has_max_abs_error()) {
    for (const auto& pass : results.passes()) {
      if (!pass.changed()) continue;
      std::optional<double> error;
      if (pass.has_max_abs_error()) error = pass.max_abs_error();
      checked.push_back(MakeGate("max_abs_error", "", Bound::kAtMost, gates.max_abs_error(), error));
      checked.back().set_pass(pass.name());
    }
  }
  return checked;
}

absl::Status GateStatus(const std::vector<Results::Gate>& gates) {
  std::string failed;
  for (const auto& gate : gates) {
    if (gate.passed()) continue;
    absl::StrAppend(&failed, failed.empty() ? "" : "; ", gate.name(), " of ",
                    gate.pass().empty() ? gate.variant() : absl::StrCat("pass ", gate.pass()), " is ",
                    gate.has_found() ? BoundText(gate.found()) : "not measured", ", wanted ", BoundText(gate.wanted()));
  }
  return failed.empty() ? absl::OkStatus() : GateError(failed);
}

}  // namespace fuselage::harness
