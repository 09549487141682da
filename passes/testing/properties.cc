#include "passes/testing/properties.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "interpreter/interpreter.h"
#include "ir/base/comparison.h"
#include "ir/base/hash_map.h"
#include "ir/text.h"
#include "passes/core/pipeline.h"
#include "passes/testing/rounding.h"

namespace fuselage::testing {
namespace {

using passes::NumericContract;

std::vector<Tensor> SeededInputs(const ir::Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const ir::Node* node : graph.placeholders()) inputs.push_back(SeededTensor(node->tensor_type(), seed++));
  return inputs;
}

class InterpreterRunner : public passes::Runner {
 public:
  absl::Status ForEachSample(
      const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
      const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) override {
    int sample = 0;
    for (const uint64_t seed : kSampleSeeds) {
      HashMap<const ir::Node*, std::vector<Tensor>> found;
      for (const ir::Node* node : nodes) found[node];
      const auto keep = [&](const ir::Node& node, absl::Span<const Tensor> value) {
        const auto it = found.find(&node);
        if (it != found.end()) it->second.assign(value.begin(), value.end());
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(interpreter::Run(graph, SeededInputs(graph, seed), keep).status());
      std::vector<const Tensor*> values;
      for (const ir::Node* node : nodes) values.push_back(&found.at(node)[0]);
      RETURN_IF_ERROR(visit(sample++, values));
    }
    return absl::OkStatus();
  }
};

// The magnitude of what is wanted: what cancels to nearly nothing has no relative accuracy.
constexpr double kLeastMagnitude = 0.01;

double CoarsestStep(const ir::Graph& graph) {
  float step = 0;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    for (const TensorType& type : node->type().elements()) {
      if (type.quant) step = std::max(step, *std::max_element(type.quant->scales.begin(), type.quant->scales.end()));
    }
  }
  return step;
}

struct Bounds {
  NumericContract contract;
  bool rounded = false;
  double step = 0;  // The step of the coarsest codes.
};

absl::Status CheckOutput(const Bounds& bounds, const Tensor& wanted, const Tensor& found) {
  const NumericContract& contract = bounds.contract;
  const bool rounds = contract.kind == NumericContract::kQuantizes || contract.kind == NumericContract::kOneCode;
  if (wanted.shape() != found.shape() || (!rounds && wanted.type() != found.type())) {
    return absl::InternalError(absl::StrCat("was ", ToString(wanted.type()), ", is ", ToString(found.type())));
  }
  if (contract.kind == NumericContract::kBitExact) {
    return wanted.SameBytes(found) ? absl::OkStatus() : absl::InternalError("changed its bits");
  }
  const Difference difference = Compare(wanted, found);
  if (difference.lost > 0) return absl::InternalError("is not finite any more");
  if (contract.kind == NumericContract::kQuantizes) return absl::OkStatus();
  const double magnitude = std::max(difference.magnitude, kLeastMagnitude);
  if (contract.kind == NumericContract::kTolerance && !bounds.rounded) {
    if (difference.max_abs_error <= contract.tolerance * magnitude) return absl::OkStatus();
    return absl::InternalError(absl::StrFormat("of up to %g moved by %g, allowed is %g relative", magnitude,
                                               difference.max_abs_error, contract.tolerance));
  }
  if (difference.rms_error <= std::max(magnitude / 32, 1.001 * bounds.step)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("of up to %g moved by %g (root mean square)", magnitude, difference.rms_error));
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> OutputsOnSeededInputs(const ir::Graph& graph, uint64_t seed) {
  return interpreter::Run(graph, SeededInputs(graph, seed));
}

std::unique_ptr<passes::Runner> SeededRunner() { return std::make_unique<InterpreterRunner>(); }

absl::StatusOr<PassOutcome> CheckPass(const passes::Pass& pass, bool rounded, ir::Graph& graph) {
  const auto fails = [&pass](absl::string_view property, absl::string_view what) {
    return absl::InternalError(absl::StrCat(pass.name(), ": ", property, ": ", what));
  };
  ASSIGN_OR_RETURN(const std::vector<Tensor> wanted, OutputsOnSeededInputs(graph));
  const std::string before = ir::Print(graph);
  const std::unique_ptr<ir::Graph> original = graph.Clone();
  passes::RemoveDeadNodes(*original);
  const Bounds bounds{pass.numeric_contract(), rounded, CoarsestStep(graph)};

  PassOutcome outcome;
  passes::Remarks remarks;
  const absl::StatusOr<bool> changed = pass.Run(graph, remarks);
  if (!changed.ok()) return fails("it fails", changed.status().ToString());
  outcome.changed = *changed;
  outcome.applied = remarks.CountApplied();
  if (absl::Status status = graph.Verify(); !status.ok()) return fails("the graph is broken", status.message());
  const std::string after = ir::Print(graph);
  if ((after != before) != *changed) return fails("the changed bit lies", *changed ? "true" : "false");

  const absl::StatusOr<std::vector<Tensor>> found = OutputsOnSeededInputs(graph);
  if (!found.ok()) return fails("the graph does not run any more", found.status().ToString());
  if (found->size() != wanted.size()) return fails("the outputs differ", "in number");
  for (size_t i = 0; i < wanted.size(); ++i) {
    absl::Status status = CheckOutput(bounds, wanted[i], (*found)[i]);
    if (!status.ok()) return fails("the outputs differ", absl::StrCat("output ", i, " ", status.message()));
    if (bounds.contract.kind == NumericContract::kQuantizes) {
      const double snr_db = Compare(wanted[i], (*found)[i]).snr_db;
      if (std::isfinite(snr_db)) outcome.worst_snr_db = std::min(outcome.worst_snr_db, snr_db);
    }
  }

  if (bounds.contract.kind == NumericContract::kQuantizes && outcome.applied > 0) {
    InterpreterRunner samples;
    absl::Status status = CheckRounding(*original, graph, samples);
    if (!status.ok()) return fails("it does more than round", status.message());
  }

  const absl::StatusOr<bool> again = pass.Run(graph, remarks);
  if (!again.ok()) return fails("a second run fails", again.status().ToString());
  if (*again || ir::Print(graph) != after) return fails("a second run changes the graph", "and must not");
  return outcome;
}

absl::Status CheckPasses(absl::Span<const passes::Pass* const> passes, bool rounded, ir::Graph& graph) {
  for (const passes::Pass* pass : passes) {
    ASSIGN_OR_RETURN(const PassOutcome outcome, CheckPass(*pass, rounded, graph));
    const NumericContract::Kind kind = pass->numeric_contract().kind;
    const bool rounds = kind == NumericContract::kQuantizes || kind == NumericContract::kOneCode;
    rounded = rounded || (rounds && outcome.changed);
  }
  return absl::OkStatus();
}

}  // namespace fuselage::testing
