#include "harness/gates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/exit_code.h"

namespace fuselage::harness {
namespace {

enum class Bound { kAtLeast, kAtMost };

// What there is to judge by.
struct Finding {
  std::optional<double> value;
  std::string reason = {};  // Why there is no value, or why it does not count.
  bool fails = false;       // Whatever the value.
  bool excused = false;     // That there is none.
};

Finding Measured(bool has, double value) { return has ? Finding{value} : Finding{std::nullopt, "not measured"}; }

Results::Gate MakeGate(const std::string& name, Bound bound, double wanted, const Finding& finding) {
  Results::Gate gate;
  gate.set_name(name);
  gate.set_wanted(wanted);
  gate.set_reason(finding.reason);
  gate.set_judged(finding.value.has_value() || finding.fails);
  gate.set_excused(!gate.judged() && finding.excused);
  if (!finding.value.has_value()) return gate;
  gate.set_found(*finding.value);
  gate.set_passed(!finding.fails && (bound == Bound::kAtLeast ? gate.found() >= wanted : gate.found() <= wanted));
  return gate;
}

// "91.20", "1.2e-05"
std::string BoundText(double value) {
  return std::abs(value) < 0.01 ? absl::StrFormat("%.2g", value) : absl::StrFormat("%.2f", value);
}

// The gates of variants: which they are, and what each finds.
struct VariantGate {
  std::string name;
  Bound bound;
  std::optional<double> wanted;  // None: not a gate of this config.
  bool against_baseline;
  std::function<Finding(const Results::Variant& baseline, const Results::Variant& variant)> find;
};

Finding Top1Drop(const Results::Variant& baseline, const Results::Variant& variant) {
  return Measured(baseline.has_top1() && variant.has_top1(), baseline.top1() - variant.top1());
}

Finding BitsIncrease(const Results::Variant& baseline, const Results::Variant& variant) {
  return Measured(baseline.has_bits_per_byte() && variant.has_bits_per_byte(),
                  100 * (variant.bits_per_byte() / baseline.bits_per_byte() - 1));
}

Finding SmallestSnr(const Results::Variant&, const Results::Variant& variant) {
  std::optional<double> smallest;
  for (const auto& layer : variant.layers()) {
    if (!layer.has_snr_db()) continue;
    if (std::isnan(layer.snr_db())) return {layer.snr_db()};  // Which passes no gate.
    smallest = std::min(smallest.value_or(layer.snr_db()), layer.snr_db());
  }
  return Measured(smallest.has_value(), smallest.value_or(0));
}

Finding Speedup(const GatedMeasurement& wanted, const Results::Variant& baseline, const Results::Variant& variant) {
  if (baseline.reference_steps() > 0) {
    return {std::nullopt,
            absl::StrCat("reference evaluation runs ", baseline.reference_steps(), " steps of ", baseline.name()),
            /*fails=*/true};
  }
  for (const auto& measurement : variant.measurements()) {
    if (measurement.batch() != wanted.batch || measurement.threads() != wanted.threads) continue;
    Finding finding = Measured(measurement.has_speedup(), measurement.speedup());
    if (!measurement.baseline_backend().empty()) {
      finding.fails = true;
      finding.reason = absl::StrCat("across devices: over ", baseline.name(), " on ", measurement.baseline_backend());
    }
    return finding;
  }
  return {std::nullopt, absl::StrCat("not measured at batch ", wanted.batch, ", threads ", wanted.threads)};
}

std::vector<VariantGate> GatesOfVariants(const HarnessConfig::Gates& gates, const GatedMeasurement& measurement) {
  const auto wanted = [](bool has, double value) { return has ? std::optional<double>(value) : std::nullopt; };
  const auto top1 = [](const Results::Variant&, const Results::Variant& variant) {
    return Measured(variant.has_top1(), variant.top1());
  };
  const auto bits = [](const Results::Variant&, const Results::Variant& variant) {
    return Measured(variant.has_bits_per_byte(), variant.bits_per_byte());
  };
  const auto speedup = [measurement](const Results::Variant& baseline, const Results::Variant& variant) {
    return Speedup(measurement, baseline, variant);
  };
  return {
      {"min_top1", Bound::kAtLeast, wanted(gates.has_min_top1(), gates.min_top1()), false, top1},
      {"max_top1_drop", Bound::kAtMost, wanted(gates.has_max_top1_drop(), gates.max_top1_drop()), true, Top1Drop},
      {"max_bits_per_byte", Bound::kAtMost, wanted(gates.has_max_bits_per_byte(), gates.max_bits_per_byte()), false,
       bits},
      {"max_bits_per_byte_increase_percent", Bound::kAtMost,
       wanted(gates.has_max_bits_per_byte_increase_percent(), gates.max_bits_per_byte_increase_percent()), true,
       BitsIncrease},
      {"min_speedup", Bound::kAtLeast, wanted(gates.has_min_speedup(), gates.min_speedup()), true, speedup},
      {"min_snr_db", Bound::kAtLeast, wanted(gates.has_min_snr_db(), gates.min_snr_db()), true, SmallestSnr},
  };
}

// The first of those that a gate compares and that was not run leaves it without a finding.
Finding Find(const VariantGate& gate, const Results::Variant& baseline, const Results::Variant& variant) {
  if (gate.against_baseline && !baseline.not_run().empty()) {
    return {std::nullopt, absl::StrCat("the baseline ", baseline.name(), " was not run: ", baseline.not_run()), false,
            baseline.optional() || (variant.optional() && !variant.not_run().empty())};
  }
  if (!variant.not_run().empty()) {
    return {std::nullopt, absl::StrCat("not run: ", variant.not_run()), false, variant.optional()};
  }
  return gate.find(baseline, variant);
}

}  // namespace

std::vector<Results::Gate> CheckGates(const HarnessConfig::Gates& gates, const GatedMeasurement& measurement,
                                      const Results& results) {
  std::vector<Results::Gate> checked;
  for (const VariantGate& gate : GatesOfVariants(gates, measurement)) {
    if (!gate.wanted.has_value()) continue;
    const int first = gate.against_baseline ? 1 : 0;
    for (int i = first; i < results.variants_size(); ++i) {
      const auto& variant = results.variants(i);
      checked.push_back(MakeGate(gate.name, gate.bound, *gate.wanted, Find(gate, results.variants(0), variant)));
      checked.back().set_variant(variant.name());
    }
    if (results.variants_size() > first) continue;
    const char* none = first == 0 ? "no variant to judge" : "no variant beside the baseline";
    checked.push_back(MakeGate(gate.name, gate.bound, *gate.wanted, {std::nullopt, none}));
  }
  if (gates.has_max_abs_error()) {
    for (const auto& pass : results.passes()) {
      if (!pass.changed()) continue;
      checked.push_back(MakeGate("max_abs_error", Bound::kAtMost, gates.max_abs_error(),
                                 Measured(pass.has_max_abs_error(), pass.max_abs_error())));
      checked.back().set_pass(pass.name());
    }
  }
  return checked;
}

absl::Status GateStatus(const std::vector<Results::Gate>& gates) {
  std::string failed;
  for (const auto& gate : gates) {
    if (gate.passed() || gate.excused()) continue;
    const std::string of = gate.pass().empty() ? gate.variant() : absl::StrCat("pass ", gate.pass());
    absl::StrAppend(&failed, failed.empty() ? "" : "; ", gate.name(), of.empty() ? "" : " of ", of, " is ",
                    gate.has_found() ? BoundText(gate.found())
                    : gate.judged()  ? "failed"
                                     : "not judged",
                    ", wanted ", BoundText(gate.wanted()), gate.reason().empty() ? "" : " (", gate.reason(),
                    gate.reason().empty() ? "" : ")");
  }
  return failed.empty() ? absl::OkStatus() : GateError(failed);
}

}  // namespace fuselage::harness
