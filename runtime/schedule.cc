#include "runtime/schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/hash_map.h"
#include "runtime/bands.h"
#include "runtime/describe.h"
#include "runtime/executor.h"
#include "runtime/placements.h"
#include "runtime/reference_kernel.h"
#include "runtime/regrouping.h"
#include "runtime/reorder.h"

namespace fuselage::runtime {
namespace {

using ir::Node;
using ir::NodeKind;
using kernels::KernelDesc;
using kernels::KernelEntry;
using kernels::LayoutRule;
using kernels::Placement;

// Is the result the operand itself?
bool IsIdentity(const Node& node) {
  if (node.IsOp("dropout")) return !node.attribute("training").as_bool();
  return node.op()->view == ir::View::kSameOrder && node.type() == node.operand(0)->type();
}

// A permute that moves nothing: what lies in `from` is its result in `to`.
struct Relabelling {
  Layout from, to;
};
std::optional<Relabelling> RelabellingOf(const Node& node) {
  if (!node.IsOp("permute") || node.tensor_type().rank() != 4) return std::nullopt;
  std::vector<int64_t> dims = node.attribute("dims").as_ints();
  for (int64_t& dim : dims) dim += dim < 0 ? 4 : 0;
  if (dims == std::vector<int64_t>{0, 2, 3, 1}) return Relabelling{Layout::kNhwc, Layout::kRowMajor};
  if (dims == std::vector<int64_t>{0, 3, 1, 2}) return Relabelling{Layout::kRowMajor, Layout::kNhwc};
  return std::nullopt;
}

class Scheduler {
 public:
  Scheduler(const ir::Graph& graph, const kernels::KernelRegistry& kernels, const Executor& executor,
            const ScheduleOptions& options)
      : graph_(graph), kernels_(kernels), executor_(executor), options_(options) {}

  absl::StatusOr<Schedule> Make() {
    if (graph_.output() == nullptr) return absl::InvalidArgumentError("the graph has no output");
    MarkLive();
    MarkNhwc();
    RETURN_IF_ERROR(CheckTypes());
    ASSIGN_OR_RETURN(constants_, ConstantsOf(graph_, options_.max_memory_bytes));
    places_ = ChoosePlacements(graph_, constants_, kernels_, options_.isa, options_.threads);
    for (const Regrouping& regrouping : RegroupingsOf(graph_)) {
      for (const Node* node : {regrouping.view, regrouping.permute}) waits_.insert(node);
      regroupings_.emplace(regrouping.last, regrouping);
    }
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      switch (node->kind()) {
        case NodeKind::kPlaceholder: AddInput(*node); break;
        case NodeKind::kGetAttr: break;  // Where an operand needs it in memory, as other constants.
        case NodeKind::kOutput: AddOutputs(*node); break;
        default:
          if (!live_.contains(node) || constants_.contains(node) || waits_.contains(node)) break;
          RETURN_IF_ERROR(Annotate(AddCalls(*node), absl::StrCat("%", node->name())));
      }
    }
    if (!missing_.empty()) {
      return absl::UnimplementedError(absl::StrCat(missing_.size(), " nodes have no ", executor_.name(), " kernel:\n  ",
                                                   absl::StrJoin(missing_, "\n  ")));
    }
    if (InBands()) MakeBands(items_, options_, &schedule_);
    executor_.PairSteps(absl::MakeSpan(schedule_.steps));
    return std::move(schedule_);
  }

 private:
  // A tensor at run time: its buffer in each layout, or -1 where it has none yet. Views may share one.
  struct Value {
    TensorType type;
    int buffers[2] = {-1, -1};  // By Layout.
  };

  static int& BufferOf(Value& value, Layout layout) {
    return value.buffers[value.type.rank() == 4 ? static_cast<int>(layout) : 0];
  }

  void MarkLive() {
    std::vector<const Node*> stack = {graph_.output()};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      if (!live_.insert(node).second) continue;
      for (const Node* operand : node->operands()) {
        if (operand != nullptr) stack.push_back(operand);
      }
    }
  }

  // The values that a kernel takes in NHWC alone, be it behind others that take either layout.
  void MarkNhwc() {
    const auto wants = [&](const Node* user) {
      if (!user->is_call()) return false;
      if (user->IsOp("getitem") || IsIdentity(*user)) return wants_nhwc_.contains(user);
      if (const auto relabelling = RelabellingOf(*user)) return relabelling->from == Layout::kNhwc;
      const KernelEntry* entry = kernels_.FindOrNull(user->op()->name);
      if (entry == nullptr || entry->layout == LayoutRule::kRowMajor) return false;
      return entry->layout == LayoutRule::kNhwc || wants_nhwc_.contains(user);
    };
    for (const Node* node = graph_.last(); node != nullptr; node = node->previous()) {
      const auto users = node->users();
      if (std::any_of(users.begin(), users.end(), wants)) wants_nhwc_.insert(node);
    }
  }

  // So that sums of bytes cannot overflow, and outputs are tensors.
  absl::Status CheckTypes() const {
    constexpr int64_t kMostElements = int64_t{1} << 40;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      for (const TensorType& type : node->type().elements()) {
        if (type.num_elements() <= kMostElements) continue;
        return absl::ResourceExhaustedError(absl::StrCat("%", node->name(), ": ", ToString(type), " has ",
                                                         type.num_elements(), " elements, the limit is ",
                                                         kMostElements));
      }
    }
    for (const Node* value : graph_.output()->operands()) {
      if (value->type().is_tensor()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("output %", value->name(), " is ", ir::ToString(value->type()), ", wanted a tensor"));
    }
    return absl::OkStatus();
  }

  // --- Buffers and values.
  int AddBuffer(BufferSpec buffer) {
    schedule_.buffers.push_back(std::move(buffer));
    return static_cast<int>(schedule_.buffers.size()) - 1;
  }

  int AddArenaBuffer(int64_t bytes) {
    BufferSpec buffer;
    buffer.bytes = bytes;
    return AddBuffer(std::move(buffer));
  }

  // Where a value of this type lies.
  int AddBufferAt(const Place& place, const TensorType& type) {
    const int whole = place.whole == nullptr ? -1 : BufferOfWhole(*place.whole);
    const int buffer = AddArenaBuffer(kernels::PlacedBytes(type, place.placement));
    schedule_.buffers[buffer].whole = whole;
    schedule_.buffers[buffer].offset = place.channel;
    return buffer;
  }

  int BufferOfWhole(const Node& cat) {
    const auto found = wholes_.find(&cat);
    if (found != wholes_.end()) return found->second;
    const int buffer = AddArenaBuffer(kernels::PlacedBytes(cat.tensor_type(), SliceOf(cat)));
    wholes_.emplace(&cat, buffer);
    return buffer;
  }

  int AddConstant(std::shared_ptr<const Tensor> tensor) {
    BufferSpec buffer;
    buffer.home = BufferSpec::Home::kConstant;
    buffer.bytes = tensor->byte_size();
    buffer.constant = std::move(tensor);
    return AddBuffer(std::move(buffer));
  }

  int NewValue(TensorType type) {
    values_.push_back({RowMajorType(std::move(type))});
    return static_cast<int>(values_.size()) - 1;
  }

  // The value that holds element `element` of the node's result.
  int ValueOf(const Node& node, int element = 0) {
    std::vector<int>& elements = results_[&node];
    if (elements.empty()) {
      elements = {NewValue(node.tensor_type())};
      values_[elements[0]].buffers[0] = AddConstant(constants_.at(&node));
    }
    return elements[element];
  }

  // The value's buffer in `layout`, reordered where it lies in the other.
  int InLayout(int id, Layout layout) {
    const TensorType type = values_[id].type;
    if (type.rank() != 4) return values_[id].buffers[0];
    int& wanted = BufferOf(values_[id], layout);
    if (wanted >= 0) return wanted;
    const Layout other = layout == Layout::kNhwc ? Layout::kRowMajor : Layout::kNhwc;
    const int source = BufferOf(values_[id], other);
    if (SameInBothLayouts(type.shape)) return wanted = source;

    TensorType from = type;
    from.layout = other;
    if (schedule_.buffers[source].home == BufferSpec::Home::kConstant) {
      auto tensor = std::make_shared<Tensor>(type);
      kernels::Serial serial;
      Reorder(from, schedule_.buffers[source].constant->raw_data(), tensor->raw_data(), serial);
      return wanted = AddConstant(std::move(tensor));
    }
    wanted = AddArenaBuffer(type.byte_size());
    StepSpec step{StepKind::kReorder, nullptr, "", "reorder", {source}, {wanted}};
    const int64_t stride = from.byte_size() / std::max<int64_t>(1, from.shape[0]);
    step.reordered = std::move(from);
    AddStep(std::move(step), {type.shape[0], {stride}, {stride}});
    return wanted;
  }

  void AddStep(StepSpec step, Items items = {}) {
    if (step.kernel != nullptr) {
      schedule_.weight_bytes += step.kernel->own_weight_bytes();
      for (const auto& packed : step.kernel->packed()) {
        if (packed_.insert(packed.get()).second) schedule_.weight_bytes += packed->byte_size();
      }
    }
    items_.push_back(std::move(items));
    runtime::AddStep(std::move(step), &schedule_);
  }

  // --- Nodes.
  void AddInput(const Node& node) {
    const int value = NewValue(node.tensor_type());
    BufferSpec buffer;
    buffer.home = BufferSpec::Home::kInput;
    buffer.bytes = node.tensor_type().byte_size();
    buffer.index = static_cast<int>(schedule_.input_types.size());
    values_[value].buffers[0] = AddBuffer(std::move(buffer));
    results_[&node] = {value};
    schedule_.input_names.push_back(node.name());
    schedule_.input_types.push_back(values_[value].type);
  }

  void AddOutputs(const Node& node) {
    for (int i = 0; i < node.num_operands(); ++i) {
      const int value = ValueOf(*node.operand(i));
      int buffer = InLayout(value, Layout::kRowMajor);
      if (schedule_.buffers[buffer].home != BufferSpec::Home::kArena) {
        const int copy = AddArenaBuffer(schedule_.buffers[buffer].bytes);
        AddStep({StepKind::kCopy, nullptr, "", "copy", {buffer}, {copy}});
        buffer = copy;
      }
      schedule_.buffers[buffer].home = BufferSpec::Home::kOutput;
      schedule_.buffers[buffer].index = i;
      schedule_.output_types.push_back(values_[value].type);
    }
  }

  // The node's, and those of a regrouping that have waited for it.
  absl::Status AddCalls(const Node& node) {
    const auto found = regroupings_.find(&node);
    if (found == regroupings_.end()) return AddCall(node);
    const Regrouping& regrouping = found->second;
    const absl::Status in_nhwc = AddInNhwc(regrouping);
    if (!absl::IsUnimplemented(in_nhwc)) return in_nhwc;
    FUSELAGE_CHECK(PlaceOf(node).placement.dense());
    RETURN_IF_ERROR(AddCall(*regrouping.view));
    RETURN_IF_ERROR(AddCall(*regrouping.permute));
    return AddCall(node);
  }

  // Unimplemented without a trace where x does not lie in NHWC, one pixel after the other, or no kernel takes it.
  absl::Status AddInNhwc(const Regrouping& regrouping) {
    const int x = ValueOf(regrouping.x()), source = BufferOf(values_[x], Layout::kNhwc);
    const KernelEntry* entry = kernels_.FindOrNull("permute");
    if (source < 0 || !PlaceOf(regrouping.x()).placement.dense() || entry == nullptr) {
      return absl::UnimplementedError("no permute in NHWC");
    }
    KernelDesc desc = InNhwc(regrouping);
    desc.isa = options_.isa;
    desc.threads = options_.threads;
    const Place place = PlaceOf(*regrouping.last);
    desc.output_placement = place.placement;
    ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel, entry->create(desc));
    StepSpec step{StepKind::kKernel, std::move(kernel), regrouping.permute->name(), "permute", {source}};
    step.layout = LayoutText(Layout::kNhwc, place);
    results_[regrouping.last] = {NewResult(regrouping.last->tensor_type(), Layout::kNhwc, step, place)};
    Items items = ItemsOf(*entry, desc, regrouping.x().tensor_type().shape[0], step);
    AddStep(std::move(step), std::move(items));
    return absl::OkStatus();
  }

  absl::Status AddCall(const Node& node) {
    if (node.IsOp("getitem")) {
      const int64_t elements = static_cast<int64_t>(node.operand(0)->type().elements().size());
      const int64_t index = node.attribute("index").as_int();
      results_[&node] = {ValueOf(*node.operand(0), static_cast<int>(index < 0 ? index + elements : index))};
      return absl::OkStatus();
    }
    if (IsIdentity(node)) {
      results_[&node] = {ValueOf(*node.operand(0))};
      return absl::OkStatus();
    }
    if (node.op()->view == ir::View::kSameOrder) {
      const int buffer = InLayout(ValueOf(*node.operand(0)), Layout::kRowMajor);
      const int value = NewValue(node.tensor_type());
      values_[value].buffers[0] = buffer;
      results_[&node] = {value};
      return absl::OkStatus();
    }
    if (const auto relabelling = RelabellingOf(node); relabelling && Relabel(node, *relabelling)) {
      return absl::OkStatus();
    }
    if (PlaceOf(node).whole != nullptr && node.IsOp("cat")) return AddCatInPlace(node);
    absl::Status status = AddKernel(node);
    if (absl::IsUnimplemented(status)) status = AddReference(node, status);
    RETURN_IF_ERROR(status);
    if (options_.max_memory_bytes > 0 && schedule_.weight_bytes > options_.max_memory_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the weights up to this node take ", schedule_.weight_bytes,
                                                       " bytes, the limit is ", options_.max_memory_bytes));
    }
    return absl::OkStatus();
  }

  // False where the operand does not lie in that layout, or nobody wants the result in the other.
  bool Relabel(const Node& node, const Relabelling& relabelling) {
    const Node& operand = *node.operand(0);
    const int source = ValueOf(operand);
    const bool may =
        relabelling.from == Layout::kNhwc ? BufferOf(values_[source], Layout::kNhwc) >= 0 : wants_nhwc_.contains(&node);
    if (!may || !PlaceOf(operand).placement.dense()) return false;
    const int buffer = InLayout(source, relabelling.from), value = NewValue(node.tensor_type());
    BufferOf(values_[value], relabelling.to) = buffer;
    results_[&node] = {value};
    return true;
  }

  // Unimplemented without a trace where no kernel takes the call.
  absl::Status AddKernel(const Node& node) {
    const KernelEntry* entry = kernels_.FindOrNull(node.op()->name);
    if (entry == nullptr) return absl::UnimplementedError("no kernel");
    ASSIGN_OR_RETURN(Description description, Describe(node, constants_));
    KernelDesc& desc = description.desc;
    desc.isa = options_.isa;
    desc.threads = options_.threads;
    desc.weights = options_.weights == nullptr ? &own_weights_ : options_.weights;
    std::vector<int> inputs;  // Values.
    for (const Node* input : description.inputs) {
      inputs.push_back(input == nullptr ? StepSpec::kAbsent : ValueOf(*input));
      desc.input_placements.push_back(input == nullptr ? Placement() : PlaceOf(*input).placement);
    }
    const Place place = PlaceOf(node);
    desc.output_placement = place.placement;
    ChooseLayouts(*entry, node, inputs, desc);

    ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel, entry->create(desc));
    StepSpec step{StepKind::kKernel, std::move(kernel), node.name(), node.op()->name};
    step.macs = graph_.CostOf(node).macs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      step.inputs.push_back(inputs[i] < 0 ? StepSpec::kAbsent : InLayout(inputs[i], desc.inputs[i]->layout));
    }
    std::vector<int> results;
    for (const TensorType& type : desc.outputs) results.push_back(NewResult(type, type.layout, step, place));
    results_[&node] = std::move(results);
    if (desc.output().rank() == 4) step.layout = LayoutText(desc.output().layout, place);
    Items items = ItemsOf(*entry, desc, ItemCount(node, desc), step);
    AddStep(std::move(step), std::move(items));
    return absl::OkStatus();
  }

  // A cat with operands that lie in its result already: the others are copied there, each in a step of its own.
  absl::Status AddCatInPlace(const Node& node) {
    const KernelEntry& entry = *kernels_.FindOrNull(node.op()->name);
    const Place place = PlaceOf(node);
    ASSIGN_OR_RETURN(Description description, Describe(node, constants_));
    KernelDesc& desc = description.desc;
    desc.isa = options_.isa;
    desc.threads = options_.threads;
    std::vector<int> parts;
    Place part = {SliceOf(*place.whole), place.whole, place.channel};
    for (const Node* operand : description.inputs) {
      const Place from = PlaceOf(*operand);
      const int source = InLayout(ValueOf(*operand), Layout::kNhwc);
      if (from.whole == part.whole && from.channel == part.channel) {
        parts.push_back(source);
      } else {
        TensorType type = operand->tensor_type();
        type.layout = Layout::kNhwc;
        desc.inputs = {type};
        desc.outputs = {type};
        desc.input_placements = {from.placement};
        desc.output_placement = part.placement;
        ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel, entry.create(desc));
        parts.push_back(AddBufferAt(part, type));
        StepSpec step{StepKind::kKernel, std::move(kernel), node.name(), node.op()->name, {source}, {parts.back()}};
        step.layout = LayoutText(type.layout, part);
        Items items = ItemsOf(entry, desc, type.shape[0], step);
        AddStep(std::move(step), std::move(items));
      }
      part.channel += operand->tensor_type().shape[1];
    }
    const int value = NewValue(node.tensor_type());
    const int buffer = place.whole == &node ? BufferOfWhole(node) : AddBufferAt(place, node.tensor_type());
    schedule_.buffers[buffer].parts = std::move(parts);
    BufferOf(values_[value], Layout::kNhwc) = buffer;
    results_[&node] = {value};
    return absl::OkStatus();
  }

  // --- Items.
  bool InBands() const { return options_.cache_bytes > 0 && executor_.on_host(); }

  // How many the node computes, each from the same items of its operands; 0: it does not.
  static int64_t ItemCount(const Node& node, const KernelDesc& desc) {
    const ir::OpSchema& op = *node.op();
    if (!op.elementwise && !op.itemwise) return 0;
    const TensorType& result = desc.output();
    if (result.rank() < (op.elementwise ? 1 : 2)) return 0;
    for (const char* axis : {"axis", "dim"}) {
      const auto found = desc.attributes.find(axis);
      if (found == desc.attributes.end()) continue;
      if (found->second.as_int() == 0 || found->second.as_int() == -result.rank()) return 0;
    }
    return result.shape[0];
  }

  // `count` of them, unless an operand has not as many, or each has its own scale.
  Items ItemsOf(const KernelEntry& entry, const KernelDesc& desc, int64_t count, const StepSpec& step) const {
    if (!InBands() || count < 2) return {};
    const auto stride = [count](const TensorType& type, const Placement& placement) {
      return placement.dense() ? type.byte_size() / count : kernels::PlacedTensor(type.shape, placement).image_bytes;
    };
    const auto apart = [count](const TensorType& type) {
      return type.rank() > 0 && type.shape[0] == count && !(type.quant && type.quant->axis == 0);
    };
    const bool elementwise = graph_.ops().FindOrNull(desc.op)->elementwise;
    const int64_t rank = desc.output().rank();
    std::vector<int64_t> input_strides(desc.inputs.size()), output_strides;
    for (size_t i = 0; i < desc.inputs.size(); ++i) {
      if (!desc.inputs[i]) continue;
      const TensorType& type = *desc.inputs[i];
      const bool constant = schedule_.buffers[step.inputs[i]].home == BufferSpec::Home::kConstant;
      const bool broadcast = elementwise && (type.rank() < rank || type.shape[0] == 1);
      if (broadcast) continue;
      if (constant || !apart(type)) return {};
      input_strides[i] = stride(type, desc.input_placement(static_cast<int>(i)));
    }
    for (const TensorType& type : desc.outputs) {
      if (!apart(type)) return {};
      output_strides.push_back(stride(type, desc.output_placement));
    }
    auto describe = [desc, input_strides](int64_t fewer) {
      KernelDesc now = desc;
      for (size_t i = 0; i < input_strides.size(); ++i) {
        if (input_strides[i] > 0) now.inputs[i]->shape[0] = fewer;
      }
      for (TensorType& type : now.outputs) type.shape[0] = fewer;
      return now;
    };
    return {count, std::move(input_strides), std::move(output_strides), &entry, std::move(describe)};
  }

  static std::string LayoutText(Layout layout, const Place& place) {
    const char* order = layout == Layout::kNhwc ? "nhwc" : "row-major";
    if (place.whole != nullptr) {
      return absl::StrCat(order, ", in %", place.whole->name(), " from channel ", place.channel);
    }
    return place.placement.dense() ? order : absl::StrCat(order, ", ", kernels::PlacementText(place.placement));
  }

  Place PlaceOf(const Node& value) const {
    const auto found = places_.find(&value);
    return found == places_.end() ? Place() : found->second;
  }

  int NewResult(const TensorType& type, Layout layout, StepSpec& step, const Place& place = {}) {
    const int value = NewValue(type);
    const int buffer = AddBufferAt(place, type);
    BufferOf(values_[value], layout) = buffer;
    step.outputs.push_back(buffer);
    return value;
  }

  void ChooseLayouts(const KernelEntry& entry, const Node& node, const std::vector<int>& inputs, KernelDesc& desc) {
    const auto has_nhwc = [&](int value) {
      return value >= 0 && values_[value].type.rank() == 4 && BufferOf(values_[value], Layout::kNhwc) >= 0;
    };
    const Layout wanted = wants_nhwc_.contains(&node) ? Layout::kNhwc : Layout::kRowMajor;
    Layout in = Layout::kNhwc, out = Layout::kNhwc;
    switch (entry.layout) {
      case LayoutRule::kNhwc: break;
      case LayoutRule::kRowMajor: in = out = Layout::kRowMajor; break;
      case LayoutRule::kSame:
        in = out = std::any_of(inputs.begin(), inputs.end(), has_nhwc) ? Layout::kNhwc : Layout::kRowMajor;
        break;
      case LayoutRule::kAnyInput:
        if (inputs.empty() || !has_nhwc(inputs[0])) {
          in = Layout::kRowMajor;
          out = wanted;
        }
        break;
      case LayoutRule::kAnyOutput:
        out = wanted;
        if (out == Layout::kRowMajor && !inputs.empty() && !has_nhwc(inputs[0])) in = out;
        break;
    }
    for (auto& input : desc.inputs) {
      if (input.has_value() && input->rank() == 4) input->layout = in;
    }
    for (TensorType& output : desc.outputs) {
      if (output.rank() == 4) output.layout = out;
    }
  }

  // Falls back to the op's reference evaluation, on the host; int8 ops have a kernel or do not run. `reason`: why there
  // is no kernel.
  absl::Status AddReference(const Node& node, const absl::Status& reason) {
    StepSpec step{StepKind::kReference, nullptr, node.name(), node.op()->name};
    if (!executor_.on_host() || absl::StartsWith(node.op()->name, "int8.")) {
      missing_.push_back(absl::StrCat("%", node.name(), " (", node.op()->name, "): ", reason.message()));
      // So that the nodes behind it are looked at too.
      for (const TensorType& type : node.type().elements()) {
        const int value = NewResult(type, Layout::kRowMajor, step);
        results_[&node].push_back(value);
      }
      return absl::OkStatus();
    }
    std::vector<ReferenceOperand> operands;
    for (const ir::Argument& argument : node.arguments()) {
      ReferenceOperand reference;
      reference.constant = ConstantOrNull(argument, constants_);
      if (reference.constant == nullptr && !argument.absent()) {
        const int elements = static_cast<int>(argument.value->type().elements().size());
        for (int i = 0; i < elements; ++i) {
          const int value = ValueOf(*argument.value, i);
          reference.types.push_back(values_[value].type);
          step.inputs.push_back(InLayout(value, Layout::kRowMajor));
        }
      }
      operands.push_back(std::move(reference));
    }
    step.macs = graph_.CostOf(node).macs;
    step.kernel = MakeReferenceKernel(*node.op(), CompleteAttributes(node), std::move(operands), node.type());
    std::vector<int> results;
    for (const TensorType& type : node.type().elements()) results.push_back(NewResult(type, Layout::kRowMajor, step));
    results_[&node] = std::move(results);
    AddStep(std::move(step));
    return absl::OkStatus();
  }

  const ir::Graph& graph_;
  const kernels::KernelRegistry& kernels_;
  const Executor& executor_;
  const ScheduleOptions& options_;
  Schedule schedule_;
  std::vector<Items> items_;  // Of its steps.
  std::vector<Value> values_;
  HashMap<const Node*, std::vector<int>> results_;  // Node -> a value per element.
  HashSet<const Node*> live_, wants_nhwc_;
  HashSet<const Tensor*> packed_;  // Of the steps so far.
  kernels::PackedWeights own_weights_;  // Where no other program shares them.
  Constants constants_;
  Places places_;
  HashMap<const Node*, Regrouping> regroupings_;  // By their last nodes, for which the others wait.
  HashSet<const Node*> waits_;
  HashMap<const Node*, int> wholes_;  // Cats that others lie in -> the buffers of their results.
  std::vector<std::string> missing_;
};

}  // namespace

absl::StatusOr<Schedule> MakeSchedule(const ir::Graph& graph, const kernels::KernelRegistry& kernels,
                                      const Executor& executor, const ScheduleOptions& options) {
  return Scheduler(graph, kernels, executor, options).Make();
}

}  // namespace fuselage::runtime
