#include "passes/fusion/split_linear.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "passes/core/roofline.h"
#include "passes/fusion/horizontal.h"

namespace fuselage::fusion {
namespace {

using ir::Node;
using passes::MachinePeaks;
using passes::Remarks;

// Reads the channels [begin, end) of a linear.
struct Part {
  Node* node;
  int64_t begin, end;
};

// What is between a linear and those who read parts of it.
struct Readers {
  std::vector<Node*> views;  // Reshapes and permutes, in their order.
  Node* split = nullptr;     // Whose elements the parts are; null: they are slices.
  int64_t axis = 0;          // Of the last view's result, along which they are taken.
  int64_t inner = 1;         // Channels for each index of it.
  std::vector<Part> parts;   // None where they are no such readers.
};

int64_t Axis(int64_t axis, const Node& value) { return axis < 0 ? axis + value.tensor_type().rank() : axis; }

int64_t Product(const Shape& shape, size_t begin) {
  int64_t product = 1;
  for (size_t axis = begin; axis < shape.size(); ++axis) product *= shape[axis];
  return product;
}

// Moves `axes`, those of the operand that hold a linear's channels, the outermost first, to the result. False where it
// is no view, or mixes them with others.
bool Follow(const Node& view, std::vector<int64_t>& axes) {
  if (view.kind() != ir::NodeKind::kCallFunction || !view.type().is_tensor()) return false;
  if (view.IsOp("permute")) {
    const std::vector<int64_t>& dims = view.attribute("dims").as_ints();
    for (int64_t& axis : axes) {
      axis =
          std::find_if(dims.begin(), dims.end(), [&](int64_t dim) { return Axis(dim, view) == axis; }) - dims.begin();
    }
    return true;
  }
  const Shape &from = view.operand(0)->tensor_type().shape, &to = view.tensor_type().shape;
  if (!view.IsOp("reshape") || axes != std::vector<int64_t>{static_cast<int64_t>(from.size()) - 1}) return false;
  size_t first = to.size();
  while (first > 0 && Product(to, first) < from.back()) --first;
  if (first == to.size() || Product(to, first) != from.back()) return false;
  axes.clear();
  for (size_t axis = first; axis < to.size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  return true;
}

// The slices of `value` along one axis, each of neighbours; none where it has other readers.
std::vector<Part> SlicesOf(const Node& value, int64_t axis) {
  std::vector<Part> parts;
  for (const ir::Use& use : value.uses()) {
    const Node& slice = *use.user;
    if (!slice.IsOp("slice")) return {};
    const std::vector<int64_t>&axes = slice.attribute("axes").as_ints(), &steps = slice.attribute("steps").as_ints();
    if (axes.size() != 1 || Axis(axes[0], value) != axis || (!steps.empty() && steps[0] != 1)) return {};
    const int64_t size = value.tensor_type().shape[axis], start = slice.attribute("starts").as_ints()[0];
    const int64_t begin = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
    parts.push_back({use.user, begin, begin + slice.tensor_type().shape[axis]});
  }
  return parts;
}

// The elements of a split along an axis; none where it has other readers.
std::vector<Part> ElementsOf(const Node& split, int64_t axis) {
  if (!split.IsOp("split") || Axis(split.attribute("dim").as_int(), *split.operand(0)) != axis) return {};
  const std::vector<int64_t>& sizes = split.attribute("sizes").as_ints();
  std::vector<Part> parts;
  for (const ir::Use& use : split.uses()) {
    if (!use.user->IsOp("getitem")) return {};
    int64_t index = use.user->attribute("index").as_int(), begin = 0;
    if (index < 0) index += static_cast<int64_t>(sizes.size());
    for (int64_t i = 0; i < index; ++i) begin += sizes[i];
    parts.push_back({use.user, begin, begin + sizes[index]});
  }
  return parts;
}

// At least two, of which each has channels and no two have the same.
bool AreApart(std::vector<Part> parts) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].begin >= parts[i].end || (i > 0 && parts[i].begin < parts[i - 1].end)) return false;
  }
  return parts.size() > 1;
}

Readers ReadersOf(Node& linear) {
  Readers readers;
  Node* value = &linear;
  std::vector<int64_t> axes = {linear.tensor_type().rank() - 1};
  while (value->has_one_use() && Follow(*value->uses()[0].user, axes)) {
    value = value->uses()[0].user;
    readers.views.push_back(value);
  }
  readers.axis = axes[0];
  for (size_t i = 1; i < axes.size(); ++i) readers.inner *= value->tensor_type().shape[axes[i]];
  if (value->has_one_use()) readers.split = value->uses()[0].user;
  readers.parts = readers.split != nullptr ? ElementsOf(*readers.split, readers.axis) : SlicesOf(*value, readers.axis);
  for (Part& part : readers.parts) {
    part.begin *= readers.inner;
    part.end *= readers.inner;
  }
  if (!AreApart(readers.parts)) readers.parts.clear();
  return readers;
}

// Rows [begin, end) of a parameter.
std::shared_ptr<const Tensor> Rows(const Tensor& whole, int64_t begin, int64_t end) {
  TensorType type = whole.type();
  type.shape[0] = end - begin;
  if (type.quant && type.quant->axis == 0) {
    QuantParams& quant = *type.quant;
    quant.scales = {quant.scales.begin() + begin, quant.scales.begin() + end};
    quant.zero_points = {quant.zero_points.begin() + begin, quant.zero_points.begin() + end};
  }
  auto part = std::make_shared<Tensor>(std::move(type));
  const int64_t row = static_cast<int64_t>(whole.byte_size()) / whole.dim(0);
  std::memcpy(part->raw_data(), static_cast<const char*>(whole.raw_data()) + begin * row, (end - begin) * row);
  return part;
}

// Predicted seconds of the linear and what takes it apart, and of a linear for each part.
std::pair<double, double> Predicted(const Node& linear, const Readers& readers, const MachinePeaks& peaks) {
  const passes::Work work = passes::WorkOf(linear);
  double before = PredictedSeconds(work, peaks), after = 0;
  if (readers.split != nullptr) before += PredictedSeconds(passes::WorkOf(*readers.split), peaks);
  const double channels = static_cast<double>(linear.tensor_type().shape.back());
  const double input = static_cast<double>(linear.operand(0)->tensor_type().byte_size());
  for (const Part& part : readers.parts) {
    if (readers.split == nullptr) before += PredictedSeconds(passes::WorkOf(*part.node), peaks);
    const double share = static_cast<double>(part.end - part.begin) / channels;
    passes::Work own = work;
    own.operations *= share;
    own.bytes = input + share * (work.bytes - input);
    after += PredictedSeconds(own, peaks);
  }
  return {before, after};
}

// A linear of its own for the part, which joins `linears`, with the views behind it: the value that the part is.
absl::StatusOr<Node*> Add(const Readers& readers, const Part& part, Node& linear, ir::Graph& graph,
                          std::vector<Node*>& linears) {
  const std::string path = graph.UniqueModulePath(absl::StrCat(linear.module()->path, ".part"));
  std::map<std::string, std::string> parameters;
  for (const auto& [operand, parameter] : linear.module()->parameters) {
    parameters[operand] = graph.AddParameter(absl::StrCat(path, ".", operand),
                                             Rows(*graph.ParameterOfOrNull(linear, operand), part.begin, part.end));
  }
  RETURN_IF_ERROR(graph.AddModule(path, linear.op()->name, linear.attributes(), std::move(parameters)).status());
  ASSIGN_OR_RETURN(Node * value,
                   graph.AddModuleCall(absl::StrCat(linear.name(), "_part"), path, {linear.operand(0)}, &linear));
  value->AddSources(linear.SourcesOrSelf());
  linears.push_back(value);
  std::vector<int64_t> axes = {readers.axis};  // In front of each view, from the last to the first.
  for (auto view = readers.views.rbegin(); view != readers.views.rend() && (*view)->IsOp("permute"); ++view) {
    axes.push_back(Axis((*view)->attribute("dims").as_ints()[axes.back()], **view));
  }
  for (Node* view : readers.views) {
    AttributeMap attributes = view->attributes();
    if (view->IsOp("reshape")) {
      std::vector<int64_t> shape = view->attribute("shape").as_ints();
      shape[axes.back()] = (part.end - part.begin) / readers.inner;
      attributes.insert_or_assign("shape", Attribute(std::move(shape)));
    } else {
      axes.pop_back();
    }
    ASSIGN_OR_RETURN(value, graph.AddFunction(absl::StrCat(view->name(), "_part"), view->target(), {value},
                                              std::move(attributes), &linear));
    value->AddSources(view->SourcesOrSelf());
  }
  return value;
}

absl::Status Split(const Readers& readers, Node* linear, ir::Graph& graph, std::vector<Node*>& linears) {
  for (const Part& part : readers.parts) {
    ASSIGN_OR_RETURN(Node * value, Add(readers, part, *linear, graph, linears));
    graph.Replace(part.node, value);
  }
  if (readers.split != nullptr) graph.Erase(readers.split);
  for (auto view = readers.views.rbegin(); view != readers.views.rend(); ++view) graph.Erase(*view);
  graph.Erase(linear);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> SplitLinears(const MachinePeaks& peaks, ir::Graph& graph, Remarks& remarks) {
  std::vector<Node*> linears;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->IsOp("linear") && node->kind() == ir::NodeKind::kCallModule) linears.push_back(node);
  }
  bool changed = false;
  for (size_t i = 0; i < linears.size(); ++i) {  // Parts join them: they may be read apart too.
    Node* linear = linears[i];
    const Readers readers = ReadersOf(*linear);
    if (readers.parts.empty()) continue;
    std::string why = SharedWeight(*linear);
    const auto [before, after] = Predicted(*linear, readers, peaks);
    if (why.empty() && after >= before) {
      why = absl::StrFormat("would not pay, predicted %.2f us apart, %.2f us as it is", after * 1e6, before * 1e6);
    }
    if (!why.empty()) {
      remarks.Missed(*linear, absl::StrCat("not split for its readers: ", why));
      continue;
    }
    remarks.Applied(*linear, absl::StrFormat("split for its %d readers, predicted %.2f us in place of %.2f us",
                                             readers.parts.size(), after * 1e6, before * 1e6));
    RETURN_IF_ERROR(Split(readers, linear, graph, linears));
    changed = true;
  }
  return changed;
}

}  // namespace fuselage::fusion
