#include "harness/decide/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// Gains below this share of all are noise: such groups count as gaining so much.
constexpr double kLeastShare = 1e-3;

class Search {
 public:
  using Evaluate = std::function<absl::StatusOr<Verdict>(const std::vector<int>&)>;

  Search(const std::vector<LayerGroup>& groups, const MixedPrecisionOptions& options, const Evaluate& evaluate)
      : groups_(groups), options_(options), evaluate_(evaluate), order_(groups.size()) {
    double all = 0;
    for (const LayerGroup& group : groups) all += std::max(0.0, group.gain_ms);
    for (const LayerGroup& group : groups) {
      const double gain = std::max({group.gain_ms, kLeastShare * all, 1e-9});
      worth_.push_back(std::isnan(group.harm) ? std::numeric_limits<double>::infinity() : group.harm / gain);
    }
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return worth_[a] > worth_[b]; });
  }

  absl::StatusOr<MixedPrecision> Run() {
    RETURN_IF_ERROR(FindPrefix());
    if (best_.has_value()) RETURN_IF_ERROR(Refine());
    MixedPrecision found;
    found.fp32 = best_.has_value() ? *best_ : nearest_;
    found.verdict = verdicts_.at(found.fp32);
    found.evaluations = static_cast<int>(verdicts_.size());
    return found;
  }

 private:
  bool Spent() const { return static_cast<int>(verdicts_.size()) >= options_.evaluations; }

  std::vector<int> First(int count) const {
    std::vector<int> fp32(order_.begin(), order_.begin() + count);
    std::sort(fp32.begin(), fp32.end());
    return fp32;
  }

  bool IsBetter(const std::vector<int>& fp32, const std::vector<int>& than) const {
    const Verdict &a = verdicts_.at(fp32), &b = verdicts_.at(than);
    const bool told_apart = std::abs(a.cost - b.cost) > a.noise + b.noise;
    return told_apart || fp32.size() == than.size() ? a.cost < b.cost : fp32.size() < than.size();
  }

  // Is the network within? The best that is so far is kept.
  absl::StatusOr<bool> Try(const std::vector<int>& fp32) {
    auto found = verdicts_.find(fp32);
    if (found == verdicts_.end()) {
      ASSIGN_OR_RETURN(const Verdict verdict, evaluate_(fp32));
      found = verdicts_.emplace(fp32, verdict).first;
    }
    const Verdict& verdict = found->second;
    if (verdict.within && (!best_.has_value() || IsBetter(fp32, *best_))) best_ = fp32;
    if (!verdict.within && !best_.has_value()) nearest_ = fp32;
    return verdict.within;
  }

  // The boundary between `none` groups and all of them.
  absl::Status FindPrefix() {
    const int all = static_cast<int>(groups_.size());
    ASSIGN_OR_RETURN(const bool int8, Try({}));
    if (int8 == options_.fp32_helps) return absl::OkStatus();  // Nothing to do, or nothing that can be done.
    int same = 0, other = all + 1;  // Prefixes that go like INT8, and the least that is known not to.
    for (int step = 1; same < all && other > all && !Spent(); step *= 2) {
      const int count = std::min(all, same + step);
      ASSIGN_OR_RETURN(const bool within, Try(First(count)));
      (within == int8 ? same : other) = count;
    }
    while (other - same > 1 && other <= all && !Spent()) {
      const int middle = same + (other - same) / 2;
      ASSIGN_OR_RETURN(const bool within, Try(First(middle)));
      (within == int8 ? same : other) = middle;
    }
    return absl::OkStatus();
  }

  // One group more, or one less, where that is better.
  absl::Status Refine() {
    std::vector<int> groups = order_;
    if (options_.fp32_helps) {
      std::stable_sort(groups.begin(), groups.end(),
                       [&](int a, int b) { return groups_[a].gain_ms > groups_[b].gain_ms; });
    }
    for (const int group : groups) {
      if (Spent()) break;
      std::vector<int> fp32 = *best_;
      const auto at = std::lower_bound(fp32.begin(), fp32.end(), group);
      const bool there = at != fp32.end() && *at == group;
      if (there != options_.fp32_helps) continue;
      if (there) {
        fp32.erase(at);
      } else {
        fp32.insert(at, group);
      }
      RETURN_IF_ERROR(Try(fp32).status());
    }
    return absl::OkStatus();
  }

  const std::vector<LayerGroup>& groups_;
  const MixedPrecisionOptions& options_;
  const Evaluate& evaluate_;
  std::vector<double> worth_;  // Of leaving a group in FP32.
  std::vector<int> order_;     // The groups, the most worth first.
  std::map<std::vector<int>, Verdict> verdicts_;
  std::optional<std::vector<int>> best_;  // Of those within.
  std::vector<int> nearest_;              // The last that was tried before any was within.
};

}  // namespace

absl::StatusOr<MixedPrecision> SearchMixedPrecision(
    const std::vector<LayerGroup>& groups, const MixedPrecisionOptions& options,
    const std::function<absl::StatusOr<Verdict>(const std::vector<int>& fp32)>& evaluate) {
  return Search(groups, options, evaluate).Run();
}

}  // namespace fuselage::harness
