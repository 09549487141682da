#include "harness/report/compare.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/statistics.h"
#include "harness/report/cells.h"
#include "harness/report/table.h"

namespace fuselage::report {
namespace {

class Comparer {
 public:
  explicit Comparer(double tolerance_percent)
      : tolerance_(tolerance_percent / 100),
        table_("Now against before", {{"figure", Align::kLeft},
                                      {"before"},
                                      {"now"},
                                      {"change"},
                                      {"95 % of it within"},
                                      {"verdict", Align::kLeft}}) {}

  void AddLatency(const std::string& what, const Results::Measurement& before, const Results::Measurement& now) {
    const std::vector<double> old(before.samples_ms().begin(), before.samples_ms().end());
    const std::vector<double> fresh(now.samples_ms().begin(), now.samples_ms().end());
    const double ratio = now.latency_ms().median() / before.latency_ms().median();
    std::string within = "-", verdict;
    if (old.empty() || fresh.empty()) {
      verdict = Failure("NO SAMPLES");
    } else {
      const harness::Interval interval = harness::RatioOfMedians(old, fresh);
      within = absl::StrCat(Change(interval.low), " to ", Change(interval.high));
      verdict = Verdict(interval.low > 1 + tolerance_, interval.high < 1 - tolerance_);
    }
    table_.AddRow({what, absl::StrCat(Milliseconds(before.latency_ms().median()), " ms"),
                   absl::StrCat(Milliseconds(now.latency_ms().median()), " ms"), Change(ratio), within, verdict});
  }

  void AddExact(const std::string& what, const std::optional<double>& before, const std::optional<double>& now,
                bool less_is_better) {
    if (!before.has_value() || std::isnan(*before)) return;
    if (!now.has_value()) return AddGone(what);
    const double change = less_is_better ? *now - *before : *before - *now;
    // Infinity (the SNR of equal outputs) may stay; NaN is worse than any number.
    const double lost = *now == *before ? 0 : change / std::max(std::abs(*before), 1e-300);
    const bool better = lost < -tolerance_ || (std::isinf(*now) && change < 0);
    table_.AddRow({what, absl::StrFormat("%.6g", *before), absl::StrFormat("%.6g", *now), Change(*now / *before),
                   "exact", Verdict(!better && !(lost <= tolerance_), better)});
  }

  // What the earlier run has and the later one lacks cannot have passed.
  void AddGone(const std::string& what) { table_.AddRow({what, "there", "-", "-", "-", Failure("GONE")}); }

  Comparison Finish() {
    return {absl::StrCat(table_.ToString(), worse_ == 0 ? "nothing" : absl::StrCat(worse_, " of them"), " got worse\n"),
            worse_};
  }

 private:
  // Of 0, of infinity and to it there is no ratio.
  static std::string Change(double ratio) {
    return std::isfinite(ratio) ? absl::StrFormat("%+.1f %%", 100 * (ratio - 1)) : "-";
  }

  std::string Verdict(bool worse, bool better) { return worse ? Failure("WORSE") : better ? "better" : "same"; }

  std::string Failure(const char* verdict) {
    ++worse_;
    return verdict;
  }

  const double tolerance_;
  Table table_;
  int worse_ = 0;
};

// Accuracy on other samples says nothing of what changed.
bool SameSamples(const Results& before, const Results& now) {
  return before.dataset().name() == now.dataset().name() && before.dataset().split() == now.dataset().split() &&
         before.dataset().images() == now.dataset().images();
}

void CompareVariants(const Results::Variant& before, const Results::Variant& now, bool same_samples,
                     Comparer* comparer) {
  for (const auto& old : before.measurements()) {
    const std::string where = absl::StrCat(now.name(), ", batch ", old.batch(), ", threads ", old.threads());
    const auto same = [&](const auto& m) { return m.batch() == old.batch() && m.threads() == old.threads(); };
    const auto m = std::find_if(now.measurements().begin(), now.measurements().end(), same);
    if (m == now.measurements().end()) {
      comparer->AddGone(where);
      continue;
    }
    comparer->AddLatency(where, old, *m);
    comparer->AddExact(absl::StrCat(where, ": bytes of memory"), old.peak_memory_bytes(), m->peak_memory_bytes(), true);
  }
  comparer->AddExact(absl::StrCat(now.name(), ": bytes of weights"), before.weight_bytes(), now.weight_bytes(), true);
  if (!same_samples || before.images() != now.images()) return;
  const auto add = [&](absl::string_view what, const std::optional<double>& old, const std::optional<double>& fresh,
                       bool less_is_better) {
    comparer->AddExact(absl::StrCat(now.name(), ": ", what), old, fresh, less_is_better);
  };
  add("top-1, %", FUSELAGE_OPTIONAL(before, top1), FUSELAGE_OPTIONAL(now, top1), false);
  add("bits per byte", FUSELAGE_OPTIONAL(before, bits_per_byte), FUSELAGE_OPTIONAL(now, bits_per_byte), true);
  add("SNR, dB", FUSELAGE_OPTIONAL(before, snr_db), FUSELAGE_OPTIONAL(now, snr_db), false);
}

}  // namespace

Comparison Compare(const Results& before, const Results& now, double tolerance_percent) {
  Comparer comparer(tolerance_percent);
  for (const auto& old : before.variants()) {
    const auto variant = std::find_if(now.variants().begin(), now.variants().end(),
                                      [&](const auto& candidate) { return candidate.name() == old.name(); });
    if (variant == now.variants().end()) {
      comparer.AddGone(old.name());
    } else {
      CompareVariants(old, *variant, SameSamples(before, now), &comparer);
    }
  }
  return comparer.Finish();
}

}  // namespace fuselage::report
