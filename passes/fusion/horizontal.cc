#include "passes/fusion/horizontal.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"
#include "passes/core/roofline.h"

namespace fuselage::fusion {
namespace {

using ir::Node;
using passes::MachinePeaks;
using passes::Remarks;

// linear, or a convolution whose window is one pixel; of f32.
bool IsPointwise(const Node& node) {
  if (node.kind() != ir::NodeKind::kCallModule) return false;
  if (!node.type().is_tensor() || node.tensor_type().dtype != DType::kF32) return false;
  if (node.IsOp("linear")) return true;
  if (!node.IsOp("conv2d") || node.attribute("groups").as_int() != 1) return false;
  const Tensor* weight = node.graph().ParameterOfOrNull(node, "weight");
  return weight->dim(2) == 1 && weight->dim(3) == 1;
}

// Why the node cannot share a call; empty where it can.
std::string WhyNot(const Node& node) {
  std::string shared = SharedWeight(node);
  if (!shared.empty()) return shared;
  if (node.num_operands() > 1) return "it has a residual";
  const Tensor* bias = node.graph().ParameterOfOrNull(node, "bias");
  return bias != nullptr && bias->type().quant ? "its bias is quantized" : "";
}

bool SameButForParameters(const Node& a, const Node& b) {
  const Tensor& wa = *a.graph().ParameterOfOrNull(a, "weight");
  const Tensor& wb = *b.graph().ParameterOfOrNull(b, "weight");
  const auto& quant_a = wa.type().quant;
  const auto& quant_b = wb.type().quant;
  const auto outer = [](const std::optional<QuantParams>& q) { return !q || q->per_tensor() || q->axis == 0; };
  return a.op() == b.op() && a.attributes() == b.attributes() && wa.dtype() == wb.dtype() &&
         quant_a.has_value() == quant_b.has_value() && outer(quant_a) && outer(quant_b);
}

// Parts one after the other along axis 0. With quantized parts the result is quantized along axis 0.
std::shared_ptr<const Tensor> Concatenated(const std::vector<const Tensor*>& parts) {
  TensorType type = parts[0]->type();
  type.shape[0] = 0;
  if (type.quant) type.quant = QuantParams{{}, {}, 0};
  for (const Tensor* part : parts) {
    type.shape[0] += part->dim(0);
    if (!type.quant) continue;
    const QuantParams& quant = *part->type().quant;
    for (int64_t i = 0; i < part->dim(0); ++i) {
      const size_t k = quant.per_tensor() ? 0 : static_cast<size_t>(i);
      type.quant->scales.push_back(quant.scales[k]);
      type.quant->zero_points.push_back(quant.zero_points[k]);
    }
  }
  auto whole = std::make_shared<Tensor>(std::move(type));
  char* to = static_cast<char*>(whole->raw_data());
  for (const Tensor* part : parts) {
    std::memcpy(to, part->raw_data(), part->byte_size());
    to += part->byte_size();
  }
  return whole;
}

class Horizontal {
 public:
  Horizontal(const MachinePeaks& peaks, ir::Graph& graph, Remarks& remarks)
      : peaks_(peaks), graph_(graph), remarks_(remarks) {}

  absl::StatusOr<bool> Run() {
    bool changed = false;
    // What a join adds and removes stands behind the value that is read.
    for (Node* value = graph_.first(); value != nullptr; value = value->next()) {
      if (value->num_uses() < 2 || !value->type().is_tensor()) continue;
      for (std::vector<Node*>& group : GroupsOf(*value)) {
        const std::string why = WhyItDoesNotPay(group);
        if (!why.empty()) {
          remarks_.Missed(*group[0], absl::StrCat("not joined with ", Names(group, 1), ": ", why));
          continue;
        }
        RETURN_IF_ERROR(Join(group));
        changed = true;
      }
    }
    return changed;
  }

 private:
  // Readers that can share a call, in groups of two or more.
  std::vector<std::vector<Node*>> GroupsOf(const Node& value) {
    std::vector<Node*> readers;
    for (const ir::Use& use : value.uses()) {
      if (use.index == 0 && IsPointwise(*use.user)) readers.push_back(use.user);
    }
    std::vector<std::vector<Node*>> groups;
    if (readers.size() < 2) return groups;
    // Uses are in order of creation; the joined layer stands where the first reader stands.
    if (position_.empty()) {
      int64_t position = 0;
      for (const Node* node = graph_.first(); node != nullptr; node = node->next()) position_[node] = position++;
    }
    std::sort(readers.begin(), readers.end(),
              [this](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
    for (Node* reader : readers) {
      const std::string why = WhyNot(*reader);
      if (!why.empty()) {
        remarks_.Missed(*reader, absl::StrCat("not joined with its neighbours: ", why));
        continue;
      }
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Node*>& g) {
        return SameButForParameters(*g[0], *reader);
      });
      if (group == groups.end()) {
        groups.push_back({reader});
      } else {
        group->push_back(reader);
      }
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(), [](const auto& group) { return group.size() < 2; }),
                 groups.end());
    return groups;
  }

  static std::string Names(const std::vector<Node*>& nodes, size_t begin) {
    std::string names;
    for (size_t i = begin; i < nodes.size(); ++i) absl::StrAppend(&names, i == begin ? "%" : ", %", nodes[i]->name());
    return names;
  }

  // Predicted seconds of the calls as they are, and of the joined one with its split.
  std::pair<double, double> Predicted(const std::vector<Node*>& group) const {
    double before = 0;
    passes::Work wide, split;
    for (const Node* node : group) {
      const passes::Work work = passes::WorkOf(*node);
      before += PredictedSeconds(work, peaks_);
      wide.operations += work.operations;
      wide.bytes += work.bytes;
      split.bytes += 2.0 * static_cast<double>(node->tensor_type().byte_size());
    }
    wide.bytes -= static_cast<double>((group.size() - 1) * group[0]->operand(0)->tensor_type().byte_size());
    wide.calls = split.calls = 1;
    return {before, PredictedSeconds(wide, peaks_) + PredictedSeconds(split, peaks_)};
  }

  std::string WhyItDoesNotPay(const std::vector<Node*>& group) const {
    const auto [before, after] = Predicted(group);
    if (after < before) return "";
    return absl::StrFormat("would not pay, predicted %.2f us joined and split, %.2f us apart", after * 1e6,
                           before * 1e6);
  }

  absl::Status Join(const std::vector<Node*>& group) {
    Node* first = group[0];
    std::vector<const Tensor*> weights, biases;
    std::vector<std::unique_ptr<Tensor>> zeros;
    std::vector<int64_t> sizes;
    std::vector<std::string> sources;
    bool any_bias = false;
    for (const Node* node : group) {
      weights.push_back(graph_.ParameterOfOrNull(*node, "weight"));
      sizes.push_back(weights.back()->dim(0));
      biases.push_back(graph_.ParameterOfOrNull(*node, "bias"));
      any_bias = any_bias || biases.back() != nullptr;
      for (std::string& source : node->SourcesOrSelf()) sources.push_back(std::move(source));
    }
    const std::string path = graph_.UniqueModulePath(absl::StrCat(first->module()->path, ".joined"));
    std::map<std::string, std::string> parameters;
    parameters["weight"] = graph_.AddParameter(absl::StrCat(path, ".weight"), Concatenated(weights));
    if (any_bias) {
      for (size_t i = 0; i < biases.size(); ++i) {
        if (biases[i] != nullptr) continue;
        zeros.push_back(std::make_unique<Tensor>(DType::kF32, Shape{sizes[i]}));
        biases[i] = zeros.back().get();
      }
      parameters["bias"] = graph_.AddParameter(absl::StrCat(path, ".bias"), Concatenated(biases));
    }
    const auto [before, after] = Predicted(group);
    remarks_.Applied(*first, absl::StrFormat("joined with %s, predicted %.2f us in place of %.2f us", Names(group, 1),
                                             after * 1e6, before * 1e6));
    RETURN_IF_ERROR(graph_.AddModule(path, first->op()->name, first->attributes(), std::move(parameters)).status());
    ASSIGN_OR_RETURN(Node * wide,
                     graph_.AddModuleCall(absl::StrCat(first->name(), "_joined"), path, {first->operand(0)}, first));
    wide->AddSources(sources);
    const int64_t position = position_.at(first);  // Not a reference into a table that grows.
    position_[wide] = position;
    const int64_t axis = match::ChannelAxis(*first, first->tensor_type());
    ASSIGN_OR_RETURN(Node * split, graph_.AddFunction(absl::StrCat(first->name(), "_split"), "split", {wide},
                                                      {{"sizes", Attribute(sizes)}, {"dim", Attribute(axis)}}, first));
    split->AddSources(sources);
    std::vector<Node*> parts;
    for (size_t i = 0; i < group.size(); ++i) {
      ASSIGN_OR_RETURN(Node * part, graph_.AddFunction(group[i]->name(), "getitem", {split},
                                                       {{"index", Attribute(static_cast<int64_t>(i))}}, first));
      parts.push_back(part);
    }
    for (size_t i = 0; i < group.size(); ++i) {
      position_.erase(group[i]);
      graph_.Replace(group[i], parts[i]);
    }
    return absl::OkStatus();
  }

  const MachinePeaks& peaks_;
  ir::Graph& graph_;
  Remarks& remarks_;
  HashMap<const Node*, int64_t> position_;  // Empty until it is needed.
};

}  // namespace

std::string SharedWeight(const Node& layer) {
  std::string shared = match::SharedModule(layer);
  if (!shared.empty()) return shared;
  const std::string& weight = layer.module()->parameters.at("weight");
  return layer.graph().FindParameterOrNull(weight)->uses > 1 ? "its weight is tied" : "";
}

absl::StatusOr<bool> FuseHorizontally(const MachinePeaks& peaks, ir::Graph& graph, Remarks& remarks) {
  return Horizontal(peaks, graph, remarks).Run();
}

}  // namespace fuselage::fusion
