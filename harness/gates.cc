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

// What a variant is held to, by the name of the field of Gates that says it, and what it finds.
struct VariantGate {
  std::string name;
  Bound bound;
  bool against_baseline;
  std::function<Finding(const Results::Variant& baseline, const Results::Variant& variant)> find;
};

// None: not a gate of these.
std::optional<double> Wanted(const HarnessConfig::Gates& gates, const std::string& name) {
  const auto* field = HarnessConfig::Gates::descriptor()->FindFieldByName(name);
  const auto* reflection = HarnessConfig::Gates::GetReflection();
  if (!reflection->HasField(gates, field)) return std::nullopt;
  return reflection->GetDouble(gates, field);
}

// The run's, but for those that the variant has itself.
HarnessConfig::Gates GatesOf(const HarnessConfig& config, const Results::Variant& variant) {
  HarnessConfig::Gates gates = config.gates();
  for (const auto& own : config.variants()) {
    if (own.name() == variant.name()) gates.MergeFrom(own.gates());
  }
  return gates;
}

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

std::vector<VariantGate> GatesOfVariants(const GatedMeasurement& measurement) {
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
      {"min_top1", Bound::kAtLeast, false, top1},
      {"max_top1_drop", Bound::kAtMost, true, Top1Drop},
      {"max_bits_per_byte", Bound::kAtMost, false, bits},
      {"max_bits_per_byte_increase_percent", Bound::kAtMost, true, BitsIncrease},
      {"min_speedup", Bound::kAtLeast, true, speedup},
      {"min_snr_db", Bound::kAtLeast, true, SmallestSnr},
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

std::vector<Results::Gate> CheckGates(const HarnessConfig& config, const GatedMeasurement& measurement,
                                      const Results& results) {
  std::vector<Results::Gate> checked;
  for (const VariantGate& gate : GatesOfVariants(measurement)) {
    const int first = gate.against_baseline ? 1 : 0;
    for (int i = first; i < results.variants_size(); ++i) {
      const auto& variant = results.variants(i);
      const std::optional<double> wanted = Wanted(GatesOf(config, variant), gate.name);
      if (!wanted.has_value()) continue;
      checked.push_back(MakeGate(gate.name, gate.bound, *wanted, Find(gate, results.variants(0), variant)));
      checked.back().set_variant(variant.name());
    }
    const std::optional<double> wanted = Wanted(config.gates(), gate.name);
    if (results.variants_size() > first || !wanted.has_value()) continue;
    const char* none = first == 0 ? "no variant to judge" : "no variant beside the baseline";
    checked.push_back(MakeGate(gate.name, gate.bound, *wanted, {std::nullopt, none}));
  }
  if (config.gates().has_max_abs_error()) {
    for (const auto& pass : results.passes()) {
      if (!pass.changed()) continue;
      checked.push_back(MakeGate("max_abs_error", Bound::kAtMost, config.gates().max_abs_error(),
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
