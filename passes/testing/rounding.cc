#include "passes/testing/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/text.h"
#include "passes/fusion/subpixel.h"

namespace fuselage::testing {
namespace {

constexpr int kSteps = 255;  // Between the smallest and the largest code.
// Scales are floats: what 255 of them may differ by from the extent, and half a step from half a step.
constexpr double kRounding = 256 * std::numeric_limits<float>::epsilon();

struct Extent {
  double min = 0, max = 0;  // Over all samples, and zero.
  double size() const { return max - min; }
};

bool IsPair(const ir::Node& node) { return node.IsOp("dequantize") && node.operand(0)->IsOp("quantize"); }

// What `node` is the rounded value of, with one step for all or, of the last dimension, for each row; null: of none.
ir::Node* RoundedOrNull(const ir::Node& node) {
  if (IsPair(node)) return node.operand(0)->operand(0);
  const bool of_rows = node.IsOp("mul") && node.operand(0)->IsOp("to") && node.operand(1)->IsOp("getitem") &&
                       node.operand(1)->operand(0)->IsOp("dynamic_quantize_symmetric");
  return of_rows ? node.operand(1)->operand(0)->operand(0) : nullptr;
}

// `before` with its transposed convolutions as convolutions, where `after` has them so (quantize/transposed.h).
absl::StatusOr<std::unique_ptr<ir::Graph>> WithConvolutions(const ir::Graph& before, const ir::Graph& after) {
  std::unique_ptr<ir::Graph> graph = before.Clone();
  for (const ir::Node* node = before.first(); node != nullptr; node = node->next()) {
    if (!node->IsOp("conv_transpose2d") || !after.FindNodeOrNull(node->name())->IsOp("conv2d")) continue;
    ir::Node* transposed = graph->FindNodeOrNull(node->name());
    ir::Node* reader = transposed->has_one_use() ? transposed->only_user() : nullptr;
    const bool taken_in = reader != nullptr && reader->is_call() && after.FindNodeOrNull(reader->name()) == nullptr;
    RETURN_IF_ERROR(fusion::RewriteAsSubpixel(transposed, taken_in ? reader : nullptr, *graph));
  }
  passes::RemoveDeadNodes(*graph);
  return graph;
}

// `after` with the values and parameters of `before` in the place of their codes.
absl::StatusOr<std::string> UndoneText(const ir::Graph& before, const ir::Graph& after) {
  const std::unique_ptr<ir::Graph> graph = after.Clone();
  for (ir::Node* node : graph->Snapshot()) {
    ir::Node* value = before.FindNodeOrNull(node->name()) == nullptr ? RoundedOrNull(*node) : nullptr;
    if (value != nullptr) node->ReplaceAllUsesWith(value);
  }
  for (const auto& [path, module] : graph->modules()) {
    const ir::Module* old = before.FindModuleOrNull(path);
    if (old == nullptr) continue;
    for (const auto& [operand, name] : old->parameters) {
      const ir::Parameter& parameter = *before.FindParameterOrNull(name);
      if (graph->FindParameterOrNull(name) == nullptr) graph->AddParameter(name, parameter.tensor, parameter.seed);
    }
    RETURN_IF_ERROR(graph->UpdateModule(module.get(), module->op->name, module->attributes, old->parameters));
  }
  passes::RemoveDeadNodes(*graph);
  return ir::Print(*graph);
}

void Widen(const Tensor& tensor, Extent& extent) {
  for (const double value : ToDoubles(tensor)) {
    extent.min = std::min(extent.min, value);
    extent.max = std::max(extent.max, value);
  }
}

// The ranges of all float values, by name.
absl::StatusOr<std::map<std::string, Extent>> Extents(const ir::Graph& graph, passes::Runner& samples) {
  std::map<std::string, Extent> extents;
  std::vector<const ir::Node*> computed;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->type().is_tensor() || node->tensor_type().dtype != DType::kF32) continue;
    if (node->kind() == ir::NodeKind::kGetAttr) {
      Widen(*graph.FindParameterOrNull(node->target())->tensor, extents[node->name()]);
    } else {
      computed.push_back(node);
    }
  }
  RETURN_IF_ERROR(samples.ForEachSample(graph, computed, [&](int, absl::Span<const Tensor* const> values) {
    for (size_t i = 0; i < computed.size(); ++i) Widen(*values[i], extents[computed[i]->name()]);
    return absl::OkStatus();
  }));
  return extents;
}

// That of what `value` hands on: where its readers, behind views that lose nothing or not, take maxima, that of these.
Extent HandedOn(const ir::Node& value, const std::map<std::string, Extent>& extents) {
  const Extent& whole = extents.at(value.name());
  const std::vector<ir::Node*> readers = value.users();
  if (readers.empty() || value.kind() == ir::NodeKind::kGetAttr) return whole;
  Extent maxima;
  for (const ir::Node* reader : readers) {
    if (!reader->is_call()) return whole;
    const bool is_view = reader->op()->view == ir::View::kSameOrder || reader->op()->view == ir::View::kMoves;
    if (!is_view && !reader->op()->takes_maxima) return whole;
    const Extent next = HandedOn(*reader, extents);
    maxima = {std::min(maxima.min, next.min), std::max(maxima.max, next.max)};
  }
  return maxima;
}

absl::Status CheckStep(const ir::Node& quantize, const ir::Graph& before,
                       const std::map<std::string, Extent>& extents) {
  const std::string& name = quantize.operand(0)->name();
  if (extents.count(name) == 0) {
    return absl::InternalError(absl::StrCat("%", name, " is rounded, and was no float before"));
  }
  const Extent extent = HandedOn(*before.FindNodeOrNull(name), extents);
  const TensorType& type = quantize.tensor_type();
  const double step = type.quant->scale(), zero_point = type.quant->zero_point();
  const IntegerRange codes = RangeOf(type.dtype);
  const double low = (codes.min - zero_point - 0.5 - kRounding) * step;
  const double high = (codes.max - zero_point + 0.5 + kRounding) * step;
  if (extent.min < low || extent.max > high) {
    return absl::InternalError(
        absl::StrFormat("%%%s is in [%g, %g], and its codes hold [%g, %g]", name, extent.min, extent.max, low, high));
  }
  if (extent.size() == 0) return absl::OkStatus();  // Zeros are exact in any step.
  for (const auto& [least_name, least] : extents) {
    for (const auto& [largest_name, largest] : extents) {
      const double size = largest.max - least.min;
      if (std::fabs(size - kSteps * step) <= kRounding * size) return absl::OkStatus();
    }
  }
  return absl::InternalError(
      absl::StrFormat("%%%s is in [%g, %g], and %d steps of its codes are %g, which is the "
                      "extent of no values",
                      name, extent.min, extent.max, kSteps, kSteps * step));
}

// The least steps of its bias for which a channel may have coarser weights than its own ask for (quantize/scales.h).
constexpr double kManySteps = (1 << 30) * (1 - kRounding);

constexpr int kLargestOfSevenBits = 63;

// `bias_unit`: by channel, its bias over the input's step; 0 without.
absl::Status CheckWeight(const Tensor& weight, const Tensor& codes, absl::Span<const double> bias_unit) {
  const QuantParams& params = *codes.type().quant;
  const int64_t channels = static_cast<int64_t>(params.scales.size());
  int64_t inner = 1;  // Elements of a channel that follow each other.
  for (int axis = params.axis + 1; axis < weight.rank(); ++axis) inner *= weight.dim(axis);
  const Tensor values = Dequantized(codes);
  std::vector<double> largest(channels, 0), largest_code(channels, 0);
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    const int64_t c = i / inner % channels;
    largest[c] = std::max(largest[c], std::fabs(weight.At(i)));
    largest_code[c] = std::max(largest_code[c], std::fabs(codes.At(i)));
    if (!(std::fabs(values.At(i) - weight.At(i)) <= (0.5 + kRounding) * params.scales[c])) {
      return absl::InternalError(absl::StrFormat("channel %d has a weight %g for %g, and a step of %g", c, values.At(i),
                                                 weight.At(i), params.scales[c]));
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    const bool coarse = !bias_unit.empty() && std::fabs(bias_unit[c]) / params.scales[c] >= kManySteps;
    const bool is_largest = largest_code[c] == RangeOf(codes.dtype()).max || largest_code[c] == kLargestOfSevenBits;
    if (largest[c] > 0 && !is_largest && !coarse) {
      return absl::InternalError(absl::StrFormat("the largest code of channel %d is %g", c, largest_code[c]));
    }
  }
  return absl::OkStatus();
}

// A float weight that holds what i8 codes for each channel stand for.
absl::Status CheckGrid(const Tensor& weight, const Tensor& values) {
  const int64_t channels = weight.dim(0), inner = channels == 0 ? 0 : weight.num_elements() / channels;
  for (int64_t c = 0; c < channels; ++c) {
    double largest = 0, largest_value = 0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i) {
      largest = std::max(largest, std::fabs(weight.At(i)));
      largest_value = std::max(largest_value, std::fabs(values.At(i)));
    }
    if (largest != largest_value) {
      return absl::InternalError(
          absl::StrFormat("the largest value of channel %d was %g, is %g", c, largest, largest_value));
    }
    const double step = largest / 127;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i) {
      const double code = step == 0 ? 0 : values.At(i) / step;
      if (std::fabs(code - std::nearbyint(code)) <= kRounding * 127) continue;
      return absl::InternalError(absl::StrFormat("channel %d has a value %g, and a step of %g", c, values.At(i), step));
    }
  }
  return absl::OkStatus();
}

// The bias that a module had over the least step of its inputs, by channel; empty where it had no such.
std::vector<double> BiasUnits(const ir::Module& module, const ir::Module& old, const ir::Graph& before) {
  const auto bias = old.parameters.find("bias");
  if (bias == old.parameters.end()) return {};
  double step = std::numeric_limits<double>::infinity();
  for (const ir::Node* call : module.call_sites) {
    const ir::Node& input = *call->operand(0);
    if (IsPair(input)) step = std::min<double>(step, input.operand(0)->tensor_type().quant->scale());
  }
  std::vector<double> units = ToDoubles(*before.FindParameterOrNull(bias->second)->tensor);
  for (double& unit : units) unit /= step;
  return units;
}

// A corrected bias takes back no more than half a step of the input and half a step of the weight make of the largest
// input.
absl::Status CheckBias(const ir::Module& module, const Tensor& bias, const ir::Module& old, const ir::Graph& before,
                       const ir::Graph& after, const std::map<std::string, Extent>& extents) {
  double step = 0, largest = 0;  // Of all calls' inputs.
  for (const ir::Node* call : module.call_sites) {
    const ir::Node& input = *call->operand(0);
    if (!IsPair(input)) return absl::InternalError("a bias is corrected where the input is not rounded");
    const Extent& extent = extents.at(input.operand(0)->operand(0)->name());
    step = std::max<double>(step, input.operand(0)->tensor_type().quant->scale());
    largest = std::max({largest, extent.max, -extent.min});
  }
  const Tensor& weight = *before.FindParameterOrNull(old.parameters.at("weight"))->tensor;
  const QuantParams& params = *after.FindParameterOrNull(module.parameters.at("weight"))->tensor->type().quant;
  const auto old_bias = old.parameters.find("bias");
  const int64_t inner = weight.num_elements() / weight.dim(0);
  for (int64_t c = 0; c < weight.dim(0); ++c) {
    double most = 0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i) {
      most += std::fabs(weight.At(i)) * step / 2 + (largest + step / 2) * params.scales[c] / 2;
    }
    const double was =
        old_bias == old.parameters.end() ? 0 : before.FindParameterOrNull(old_bias->second)->tensor->At(c);
    if (std::fabs(bias.At(c) - was) <= most * (1 + 1e-5) + std::fabs(was) * 1e-6) continue;
    return absl::InternalError(
        absl::StrFormat("channel %d was %g, is %g, and rounding moves it by %g at most", c, was, bias.At(c), most));
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const ir::Graph& before, const ir::Graph& after,
                          const std::map<std::string, Extent>& extents) {
  for (const auto& [path, module] : after.modules()) {
    for (const auto& [operand, name] : module->parameters) {
      const ir::Module& was = *before.FindModuleOrNull(path);
      const Tensor& now = *after.FindParameterOrNull(name)->tensor;
      if (name == absl::StrCat(path, ".corrected_bias")) {
        RETURN_IF_ERROR(Annotate(CheckBias(*module, now, was, before, after, extents), absl::StrCat("@", name)));
        continue;
      }
      const Tensor& old = *before.FindParameterOrNull(was.parameters.at(operand))->tensor;
      if (now.SameBytes(old)) continue;
      std::vector<double> bias_units = BiasUnits(*module, was, before);
      if (now.type().quant && bias_units.size() != now.type().quant->scales.size()) bias_units.clear();
      const absl::Status status = now.type().quant ? CheckWeight(old, now, bias_units) : CheckGrid(old, now);
      RETURN_IF_ERROR(Annotate(status, absl::StrCat("@", name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRounding(const ir::Graph& given, const ir::Graph& after, passes::Runner& samples) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> rewritten, WithConvolutions(given, after));
  const ir::Graph& before = *rewritten;
  ASSIGN_OR_RETURN(const std::string undone, UndoneText(before, after));
  if (undone != ir::Print(before)) return absl::InternalError(absl::StrCat("undone, the graph is another:\n", undone));
  ASSIGN_OR_RETURN(const auto extents, Extents(before, samples));
  for (const ir::Node* node = after.first(); node != nullptr; node = node->next()) {
    if (node->IsOp("quantize")) RETURN_IF_ERROR(CheckStep(*node, before, extents));
  }
  return CheckWeights(before, after, extents);
}

}  // namespace fuselage::testing
