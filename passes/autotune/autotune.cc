#include "passes/autotune/autotune.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/base/hash_map.h"
#include "ir/match/sharing.h"
#include "passes/module_call/module_call.h"

namespace fuselage::autotune {
namespace {

using ir::Node;
using passes::Profiler;
using passes::Remarks;

constexpr double kLeastGainPercent = 2;

// A call with a choice.
struct Candidate {
  Node* node;
  std::vector<std::string> variants;  // The one that it has first.
  size_t best = 0;                    // Of them.
};

std::vector<Candidate> CandidatesOf(const kernels::KernelRegistry& kernels, ir::Graph& graph, Remarks& remarks) {
  std::vector<Candidate> candidates;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->module() == nullptr) continue;
    std::vector<std::string> variants = module_call::VariantsOf(*node, kernels);
    if (variants.size() < 2) continue;
    const std::string shared = match::SharedModule(*node);
    if (shared.empty()) {
      candidates.push_back({node, std::move(variants)});
    } else {
      remarks.Missed(*node, absl::StrCat("keeps its variant: ", shared));
    }
  }
  return candidates;
}

absl::Status Ask(const std::string& path, const std::string& variant, ir::Graph& graph) {
  ir::Module* module = graph.FindModuleOrNull(path);
  AttributeMap attributes = module->attributes;
  attributes.insert_or_assign("variant", Attribute(variant));
  return graph.UpdateModule(module, module->op->name, std::move(attributes), module->parameters);
}

// A copy whose candidates have the variants that `choose` gives.
template <typename Choose>
absl::StatusOr<std::unique_ptr<ir::Graph>> With(const ir::Graph& graph, const std::vector<Candidate>& candidates,
                                                Choose choose) {
  std::unique_ptr<ir::Graph> copy = graph.Clone();
  for (const Candidate& candidate : candidates) {
    const size_t variant = choose(candidate);
    if (variant == 0 || variant >= candidate.variants.size()) continue;
    RETURN_IF_ERROR(Ask(candidate.node->module()->path, candidate.variants[variant], *copy));
  }
  return copy;
}

// The time of the calls that come from the same nodes.
std::string KeyOf(absl::string_view op, const std::vector<std::string>& sources) {
  return absl::StrCat(op, " ", absl::StrJoin(sources, ","));
}

class Times {
 public:
  explicit Times(const std::vector<Profiler::Call>& calls) {
    for (const Profiler::Call& call : calls) {
      total_ += call.seconds;
      of_calls_[KeyOf(call.op, call.sources)] += call.seconds;
    }
  }

  double total() const { return total_; }
  // Infinite where the passes that are still to come have left no such call.
  double Of(const Node& node) const {
    const auto it = of_calls_.find(KeyOf(node.op()->name, node.SourcesOrSelf()));
    return it == of_calls_.end() ? std::numeric_limits<double>::infinity() : it->second;
  }

 private:
  double total_ = 0;
  HashMap<std::string, double> of_calls_;
};

absl::StatusOr<std::vector<Times>> Measure(const std::vector<std::unique_ptr<ir::Graph>>& graphs, Profiler& profiler) {
  std::vector<const ir::Graph*> pointers;
  for (const auto& graph : graphs) pointers.push_back(graph.get());
  ASSIGN_OR_RETURN(const std::vector<std::vector<Profiler::Call>> runs, profiler.Profile(pointers));
  return std::vector<Times>(runs.begin(), runs.end());
}

// What each of the candidates takes in its best variant, which is chosen, and in its own, in seconds.
using Gains = std::vector<std::pair<double, double>>;

absl::StatusOr<Gains> ChooseByCall(double least_share, const ir::Graph& graph, Profiler& profiler,
                                   std::vector<Candidate>& candidates) {
  size_t most = 0;
  for (const Candidate& candidate : candidates) most = std::max(most, candidate.variants.size());
  std::vector<std::unique_ptr<ir::Graph>> graphs(most);
  for (size_t i = 0; i < most; ++i) {
    ASSIGN_OR_RETURN(graphs[i], With(graph, candidates, [i](const Candidate&) { return i; }));
  }
  ASSIGN_OR_RETURN(const std::vector<Times> times, Measure(graphs, profiler));
  Gains gains;
  for (Candidate& candidate : candidates) {
    const double own = times[0].Of(*candidate.node);
    double least = own * (1 - least_share);
    for (size_t i = 1; i < candidate.variants.size(); ++i) {
      const double seconds = times[i].Of(*candidate.node);
      if (!(seconds < least)) continue;
      least = seconds;
      candidate.best = i;
    }
    gains.emplace_back(least, own);
  }
  return gains;
}

}  // namespace

absl::StatusOr<bool> Autotune::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  if (kernels_ == nullptr) return absl::InvalidArgumentError("needs kernels, and the caller gives none");
  if (profiler_ == nullptr) return false;
  std::vector<Candidate> candidates = CandidatesOf(*kernels_, graph, remarks);
  if (candidates.empty()) return false;
  const double percent = options_.least_gain_percent() > 0 ? options_.least_gain_percent() : kLeastGainPercent;
  ASSIGN_OR_RETURN(const Gains gains, ChooseByCall(percent / 100, graph, *profiler_, candidates));
  if (std::all_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.best == 0; })) {
    remarks.Note(absl::StrCat("no variant is faster than the kernels' own choice by ", percent, " %"));
    return false;
  }
  std::vector<std::unique_ptr<ir::Graph>> graphs(2);
  graphs[0] = graph.Clone();
  ASSIGN_OR_RETURN(graphs[1], With(graph, candidates, [](const Candidate& candidate) { return candidate.best; }));
  ASSIGN_OR_RETURN(const std::vector<Times> times, Measure(graphs, *profiler_));
  const double before = times[0].total() * 1e3, after = times[1].total() * 1e3;
  remarks.Note(absl::StrFormat("the network took %.3f ms, %.3f with the fastest variant of each call%s", before, after,
                               after < before ? "" : ": it stays as it is"));
  if (!(after < before)) return false;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& [node, variants, best] = candidates[i];
    if (best == 0) continue;
    RETURN_IF_ERROR(Ask(node->module()->path, variants[best], graph));
    remarks.Applied(*node, absl::StrFormat("%s: %.4f ms, where %s took %.4f", variants[best], gains[i].first * 1e3,
                                           variants[0], gains[i].second * 1e3));
  }
  return true;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<AutotuneOptions>([](const AutotuneOptions& options, const passes::PassEnvironment& environment) {
    return std::make_unique<Autotune>(options, environment.kernels, environment.profiler);
  });
}

}  // namespace fuselage::autotune
