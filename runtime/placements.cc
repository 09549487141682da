#include "runtime/placements.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/regrouping.h"
#include "runtime/reorder.h"

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

// In NHWC it puts channels beside each other; where pixels have one channel or images one pixel, any layout is NHWC.
bool IsChannelCat(const Node& node) {
  if (!node.IsOp("cat") || !MayBePlaced(node)) return false;
  const int64_t dim = node.attribute("dim").as_int();
  return (dim == 1 || dim == -3) && !SameInBothLayouts(node.tensor_type().shape);
}

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const Constants& constants, const kernels::KernelRegistry& kernels, kernels::Isa isa,
          int threads) {
    const auto in_nhwc = [&](const Node* value) { return nhwc_.contains(value); };
    HashMap<const Node*, Regrouping> regroupings;
    for (const Regrouping& regrouping : RegroupingsOf(graph)) regroupings.emplace(regrouping.last, regrouping);
    const KernelEntry* permute = kernels.FindOrNull("permute");
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      const auto regrouping = regroupings.find(node);
      if (permute != nullptr && regrouping != regroupings.end() && in_nhwc(&regrouping->second.x())) {
        calls_.emplace(node, Call{permute, {InNhwc(regrouping->second), {&regrouping->second.x()}}});
        nhwc_.insert(node);
        continue;
      }
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
      const auto operands = node->operands();
      const bool same = entry->layout == LayoutRule::kSame && std::any_of(operands.begin(), operands.end(), in_nhwc);
      if (entry->layout == LayoutRule::kNhwc || same) nhwc_.insert(node);
    }
  }

  // The operands of a cat in its result, or in that of a later one: those come first. Adds what it decides to `places`.
  void PlaceOperands(const Node& cat, Places& places) {
    if (!IsChannelCat(cat) || !calls_.contains(&cat)) return;
    const auto found = places.find(&cat);
    const Place place = found != places.end() ? found->second : PlaceAmong(cat, places);
    bool any = false;
    int64_t channel = place.channel;
    for (const Node* operand : cat.operands()) {
      any |= LiesIn(*operand, *place.whole, channel, places);
      channel += operand->tensor_type().shape[1];
    }
    if (any) places.emplace(&cat, place);
  }

  // Dense where nobody has a wish that all can take.
  Placement Choose(const Node& value) {
    if (!AllCallsKnown(value)) return Placement();
    for (const Placement& candidate : Candidates(value)) {
      if (AllTake(value, candidate)) return candidate;
    }
    return Placement();
  }

 private:
  // May the value, its writer and its readers be asked?
  bool AllCallsKnown(const Node& value) const {
    const auto users = value.users();
    return MayBePlaced(value) && calls_.contains(&value) &&
           std::all_of(users.begin(), users.end(), [&](const Node* user) { return calls_.contains(user); });
  }

  // A cat's result: a slice of the tensor that its operands lie in, if they lie there side by side; else its own
  // tensor.
  Place PlaceAmong(const Node& cat, const Places& places) {
    const auto first = places.find(cat.operand(0));
    const Place own = {Placement(), &cat, 0};
    if (first == places.end() || first->second.whole == nullptr) return own;
    const Place slice = first->second;
    int64_t channel = slice.channel;
    for (const Node* operand : cat.operands()) {
      const auto place = places.find(operand);
      if (place == places.end() || place->second.whole != slice.whole || place->second.channel != channel) return own;
      channel += operand->tensor_type().shape[1];
    }
    return AllCallsKnown(cat) && AllTake(cat, slice.placement) ? slice : own;
  }

  // Does the value lie in `whole` from this channel on, now or already?
  bool LiesIn(const Node& value, const Node& whole, int64_t channel, Places& places) {
    const auto found = places.find(&value);
    if (found != places.end()) return found->second.whole == &whole && found->second.channel == channel;
    if (!nhwc_.contains(&value) || !AllCallsKnown(value) || !AllTake(value, SliceOf(whole))) return false;
    places.emplace(&value, Place{SliceOf(whole), &whole, channel});
    return true;
  }

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
    if (writer.entry->layout == LayoutRule::kSame && !nhwc_.contains(&value)) return false;  // May be row-major.
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
  HashSet<const Node*> nhwc_;  // Calls whose results are in NHWC, whatever else is in the graph.
};

}  // namespace

Places ChoosePlacements(const ir::Graph& graph, const Constants& constants, const kernels::KernelRegistry& kernels,
                        kernels::Isa isa, int threads) {
  Chooser chooser(graph, constants, kernels, isa, threads);
  Places places;
  for (const Node* node = graph.last(); node != nullptr; node = node->previous()) chooser.PlaceOperands(*node, places);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (places.contains(node)) continue;
    const Placement placement = chooser.Choose(*node);
    if (!placement.dense()) places.emplace(node, Place{placement});
  }
  return places;
}

}  // namespace fuselage::runtime
