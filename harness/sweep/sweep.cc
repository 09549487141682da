#include "harness/sweep/sweep.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/html/redraw.h"
#include "harness/report/json.h"
#include "ir/base/claim.h"
#include "ir/base/status.h"

namespace fuselage::harness::sweep {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);
// Stands for an attempt while it runs, and after it where its process died. A run may be killed for reasons that are
// not the unit's: so it may happen more often than a failure.
constexpr char kDied[] = "its process ended in the middle";
constexpr int kMostDeaths = 5;

class Folder {
 public:
  explicit Folder(const std::string& path) : path_(path + "/units") {}

  std::string Of(const Unit& unit) const { return absl::StrCat(path_, "/", unit.key); }
  absl::StatusOr<std::unique_ptr<Claim>> Take(const Unit& unit) const { return Claim::Try(Of(unit) + ".claim"); }

  // Without reading all of the result: its status stands first.
  bool Done(const Unit& unit) const {
    std::ifstream file(Of(unit) + "/results.json");
    std::string brace, status;
    return std::getline(file, brace) && std::getline(file, status) &&
           absl::StrContains(status, "\"status\": \"complete\"");
  }

  std::optional<Results> ResultOf(const Unit& unit) const {
    auto results = html::ReadResults(Of(unit) + "/results.json");
    if (!results.ok() || results->status() != "complete") return std::nullopt;
    return *std::move(results);
  }

  // Why the attempts so far failed, a line each.
  std::vector<std::string> Failures(const Unit& unit) const {
    const auto text = ReadFile(Of(unit) + ".failures");
    if (!text.ok()) return {};
    return absl::StrSplit(*text, '\n', absl::SkipEmpty());
  }
  // The claim is the caller's.
  absl::Status SetFailures(const Unit& unit, const std::vector<std::string>& lines) const {
    const std::string path = Of(unit) + ".failures";
    if (!lines.empty()) return WriteFileAtomic(path, absl::StrJoin(lines, "\n"));
    unlink(path.c_str());
    return absl::OkStatus();
  }

 private:
  const std::string path_;
};

// One process's way through the units.
class Worker {
 public:
  Worker(const std::vector<Unit>& units, const SweepOptions& options, const RunUnit& run_unit)
      : units_(units), options_(options), run_unit_(run_unit), folder_(options.folder) {}

  absl::Status Work() {
    for (size_t i = 0; i < units_.size(); ++i) open_.push_back((i + options_.first) % units_.size());
    while (!open_.empty()) {
      bool ran = false;
      // What failed here goes to the end of the list: another process may take it first.
      for (const size_t i : std::vector<size_t>(open_)) {
        ASSIGN_OR_RETURN(const bool ran_this, Visit(units_[i], i));
        ran |= ran_this;
      }
      if (!ran && !open_.empty()) std::this_thread::sleep_for(kPoll);  // Others run the rest.
    }
    return absl::OkStatus();
  }

 private:
  bool Closed(const Unit& unit) const {
    if (folder_.Done(unit)) return true;
    const std::vector<std::string> failures = folder_.Failures(unit);
    const auto deaths = std::count(failures.begin(), failures.end(), kDied);
    return deaths >= kMostDeaths || static_cast<int64_t>(failures.size()) - deaths >= options_.attempts;
  }

  // True where this process ran it.
  absl::StatusOr<bool> Visit(const Unit& unit, size_t i) {
    const auto place = std::find(open_.begin(), open_.end(), i);
    if (Closed(unit)) {
      open_.erase(place);
      return false;
    }
    ASSIGN_OR_RETURN(const auto claim, folder_.Take(unit));
    if (claim == nullptr) return false;
    open_.erase(place);
    if (Closed(unit)) return false;  // Between the look and the claim.
    std::vector<std::string> failures = folder_.Failures(unit);
    failures.push_back(kDied);
    RETURN_IF_ERROR(folder_.SetFailures(unit, failures));
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = run_unit_(unit, folder_.Of(unit));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (status.ok()) {
      RETURN_IF_ERROR(folder_.SetFailures(unit, {}));
      options_.progress(absl::StrCat(unit.name, ": ", absl::SixDigits(std::round(10 * seconds) / 10), " s"));
      return true;
    }
    failures.back() = absl::StrReplaceAll(status.message(), {{"\n", "; "}});
    RETURN_IF_ERROR(folder_.SetFailures(unit, failures));
    options_.progress(absl::StrCat(unit.name, ": failed: ", status.message()));
    open_.push_back(i);
    return true;
  }

  const std::vector<Unit>& units_;
  const SweepOptions& options_;
  const RunUnit& run_unit_;
  const Folder folder_;
  std::vector<size_t> open_;  // Not known to be done, in the order in which this process asks for them.
};

double Exact(double percent, int64_t images) { return std::round(percent / 100 * static_cast<double>(images)); }

}  // namespace

std::vector<Results::Variant> MergeShards(const std::vector<Results>& shards) {
  std::vector<Results::Variant> merged;
  for (const auto& first : shards[0].variants()) {
    Results::Variant variant = first;
    variant.clear_layers();
    if (shards.size() == 1) {
      merged.push_back(std::move(variant));
      continue;
    }
    variant.clear_logits_fingerprint();  // Of one shard's logits,
    variant.clear_snr_db();              // and of its signal.
    int64_t images = 0;
    double top1 = 0, top5 = 0, agreed = 0, bits = 0, divergence = 0;
    for (const Results& shard : shards) {
      const auto& part = shard.variants(static_cast<int>(merged.size()));
      const auto count = static_cast<double>(part.images());
      images += part.images();
      top1 += Exact(part.top1(), part.images());
      top5 += Exact(part.top5(), part.images());
      agreed += Exact(part.agreement_with_fp32(), part.images());
      bits += part.bits_per_byte() * count;
      divergence += part.kl_divergence_bits() * count;
      if (part.max_abs_error() > variant.max_abs_error()) variant.set_max_abs_error(part.max_abs_error());
    }
    const auto all = static_cast<double>(images);
    variant.set_images(images);
    if (variant.has_top1()) variant.set_top1(100 * top1 / all);
    if (variant.has_top5()) variant.set_top5(100 * top5 / all);
    if (variant.has_agreement_with_fp32()) variant.set_agreement_with_fp32(100 * agreed / all);
    if (variant.has_bits_per_byte()) variant.set_bits_per_byte(bits / all);
    if (variant.has_kl_divergence_bits()) variant.set_kl_divergence_bits(divergence / all);
    merged.push_back(std::move(variant));
  }
  return merged;
}

absl::StatusOr<SweepResults> RunUnits(const std::vector<Unit>& units, const SweepOptions& options,
                                      const RunUnit& run_unit) {
  RETURN_IF_ERROR(MakeWritableFolder(options.folder + "/units"));
  RETURN_IF_ERROR(Worker(units, options, run_unit).Work());
  SweepResults results;
  if (!options.merge) return results;
  const Folder folder(options.folder);
  for (size_t begin = 0, end = 0; begin < units.size(); begin = end) {
    std::vector<Results> shards;
    for (; end < units.size() && units[end].choices == units[begin].choices; ++end) {
      if (auto found = folder.ResultOf(units[end])) {
        shards.push_back(*std::move(found));
        continue;
      }
      auto* failure = results.add_failures();
      failure->set_unit(units[end].name);
      const std::vector<std::string> failures = folder.Failures(units[end]);
      failure->set_error(failures.empty() ? "" : failures.back());
    }
    if (shards.size() < end - begin) continue;
    auto* row = results.add_rows();
    for (const std::string& choice : units[begin].choices) row->add_choices(choice);
    for (Results::Variant& variant : MergeShards(shards)) *row->add_variants() = std::move(variant);
  }
  RETURN_IF_ERROR(WriteFileAtomic(options.folder + "/sweep.json", report::ToJson(results)));
  return results;
}

}  // namespace fuselage::harness::sweep
