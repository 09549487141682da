#include "runtime/placements.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace fuselage::runtime {
namespace {

using ir::Node;
using kernels::Blocking;
using kernels::KernelDesc;
using kernels::KernelEntry;
using kernels::LayoutRule;
using kernels::Placement;

// A call with a kernel that may take placements.
struct Call {
  const KernelEntry* entry;
  Description description;
};

bool MayBePlaced(const Node& value) {
  if (!value.is_call() || !value.type().is_tensor()) return false;
  const TensorType& type = value.tensor_type();
  return type.rank() == 4 && (type.dtype == DType::kU8 || type.dtype == DType::kI8);
}

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const Constants& constants, const kernels::KernelRegistry& kernels, kernels::Isa isa,
          int threads) {
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      const KernelEntry* entry = node->is_call() ? kernels.FindOrNull(node->op()->name) : nullptr;
      if (entry == nullptr || entry->takes_placements == nullptr || constants.contains(node)) continue;
      auto description = Describe(*node, constants);
      if (!description.ok()) continue;
      KernelDesc& desc = description->desc;
      desc.isa = isa;
      desc.threads = threads;
      desc.input_placements.resize(desc.inputs.size());
      for (auto& input : desc.inputs) {
        if (input && input->rank() == 4 && entry->layout != LayoutRule::kAnyInput) input->layout = Layout::kNhwc;
      }
      for (TensorType& output : desc.outputs) {
        if (output.rank() == 4) output.layout = Layout::kNhwc;
      }
      calls_.emplace(node, Call{entry, *std::move(description)});
    }
  }

  // Dense where nobody has a wish that all can take.
  Placement Choose(const Node& value) {
    if (!MayBePlaced(value) || !calls_.contains(&value)) return Placement();
    for (const Node* user : value.users()) {
      if (!calls_.contains(user)) return Placement();
    }
    for (const Placement& candidate : Candidates(value)) {
      if (AllTake(value, candidate)) return candidate;
    }
    return Placement();
  }

 private:
  // Unblocked, with room for every wish.
  static Placement Unblocked(absl::Span<const Placement> wishes) {
    Placement all;
    for (const Placement& wish : wishes) {
      if (wish.blocking != Blocking::kNone) continue;
      all.halo = std::max(all.halo, wish.halo);
      all.pixel_bytes = std::max(all.pixel_bytes, wish.pixel_bytes);
    }
    return all;
  }

  // From the best to the plainest.
  std::vector<Placement> Candidates(const Node& value) {
    std::vector<Placement> wishes;
    for (const Node* user : value.users()) {
      Call& call = calls_.at(user);
      if (call.entry->preferred_placement == nullptr || call.description.inputs[0] != &value) continue;
      wishes.push_back(call.entry->preferred_placement(call.description.desc));
    }
    const bool agree = std::all_of(wishes.begin(), wishes.end(), [&](const Placement& p) { return p == wishes[0]; });
    std::vector<Placement> candidates;
    if (agree && !wishes.empty()) candidates.push_back(wishes[0]);
    candidates.push_back(Unblocked(wishes));
    return candidates;
  }

  bool AllTake(const Node& value, const Placement& placement) {
    if (placement.dense()) return false;
    Call& writer = calls_.at(&value);
    KernelDesc& desc = writer.description.desc;
    desc.output_placement = placement;
    const bool written = writer.entry->takes_placements(desc);
    desc.output_placement = Placement();
    if (!written) return false;
    const auto users = value.users();
    return std::all_of(users.begin(), users.end(),
                       [&](const Node* user) { return Reads(calls_.at(user), value, placement); });
  }

  static bool Reads(Call& call, const Node& value, const Placement& placement) {
    KernelDesc& desc = call.description.desc;
    for (size_t i = 0; i < call.description.inputs.size(); ++i) {
      if (call.description.inputs[i] == &value) desc.input_placements[i] = placement;
    }
    const bool reads = call.entry->takes_placements(desc);
    std::fill(desc.input_placements.begin(), desc.input_placements.end(), Placement());
    return reads;
  }

  HashMap<const Node*, Call> calls_;
};

}  // namespace

Placements ChoosePlacements(const ir::Graph& graph, const Constants& constants, const kernels::KernelRegistry& kernels,
                            kernels::Isa isa, int threads) {
  Chooser chooser(graph, constants, kernels, isa, threads);
  Placements placements;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const Placement placement = chooser.Choose(*node);
    if (!placement.dense()) placements.emplace(node, placement);
  }
  return placements;
}

}  // namespace fuselage::runtime
