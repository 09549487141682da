#include "harness/measure/layer_errors.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/load.h"
#include "ir/base/comparison.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr int kBins = 64;
constexpr int kMostWeightRanges = 256;

bool IsQuantizedLayer(const ir::Node& node) {
  return node.op() != nullptr && absl::StartsWith(node.op()->name, "int8.") && !node.IsOp("int8.quantize") &&
         !node.IsOp("int8.dequantize");
}

// Its range holds these alone (passes/quantize/maxima.h).
bool OnlyMaximaMatter(const ir::Node& node) {
  const std::vector<ir::Node*> users = node.users();
  return !users.empty() && std::all_of(users.begin(), users.end(), [](const ir::Node* user) {
    return user->op() != nullptr && user->op()->takes_maxima;
  });
}

const ir::Node* CounterpartOrNull(const ir::Graph& baseline, const ir::Node& node) {
  const ir::Node* found = baseline.FindNodeOrNull(node.name());
  if (found == nullptr && !node.sources().empty()) found = baseline.FindNodeOrNull(node.sources().back());
  if (found == nullptr || !(found->is_call() || found->kind() == ir::NodeKind::kPlaceholder)) return nullptr;
  if (!found->type().is_tensor() || !node.type().is_tensor()) return nullptr;
  return found->tensor_type().shape == node.tensor_type().shape ? found : nullptr;
}

// Values of a graph, by the names of their nodes.
using Values = std::map<std::string, Tensor>;

// Runs the graph with the nodes in `taps`, whose values stay null until then, as further outputs.
absl::Status RunTapped(const ir::Graph& graph, const compiler::EngineOptions& options, absl::Span<const Tensor> inputs,
                       const kernels::KernelRegistry& kernels, runtime::ThreadPool* pool, Values* taps) {
  const std::unique_ptr<ir::Graph> clone = graph.Clone();
  int next = clone->output()->num_operands();
  for (const auto& [name, value] : *taps) clone->AppendOutput(clone->FindNodeOrNull(name));
  ASSIGN_OR_RETURN(const auto engine, compiler::MakeEngine(*clone, /*batch=*/0, kernels, pool, options));
  std::vector<Tensor> outputs(engine->output_types().begin(), engine->output_types().end());
  std::vector<Tensor*> output_pointers;
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  std::vector<const Tensor*> input_pointers;
  for (const Tensor& input : inputs) input_pointers.push_back(&input);
  RETURN_IF_ERROR(engine->RunInto(input_pointers, output_pointers));
  for (auto& [name, value] : *taps) value = std::move(outputs[next++]);
  return absl::OkStatus();
}

// Rewrites a quantized graph so that layers read values of the baseline.
class FloatInputs {
 public:
  // A placeholder, and the node of the baseline whose value it takes.
  struct Feed {
    std::string baseline;
    TensorType type;
  };

  FloatInputs(const ir::Graph& baseline, ir::Graph* graph)
      : baseline_(baseline), graph_(*graph), first_(graph->first()) {}

  // Whether what `node` computes now follows from constants and values of the baseline alone. Conversions and views
  // before it stay.
  absl::StatusOr<bool> Cut(ir::Node* node) {
    const auto [known, is_new] = cut_.try_emplace(node, true);
    if (!is_new) return known->second;
    bool all = true;
    for (int i = 0; i < node->num_operands(); ++i) {
      ir::Node* operand = node->operand(i);
      if (operand == nullptr || operand->kind() == ir::NodeKind::kGetAttr) continue;
      ASSIGN_OR_RETURN(ir::Node * stand_in, StandInOrNull(*operand));
      if (stand_in != nullptr) {
        node->set_operand(i, stand_in);
      } else if (!operand->is_call() || IsQuantizedLayer(*operand)) {
        all = false;
      } else {
        ASSIGN_OR_RETURN(const bool cut, Cut(operand));
        all = all && cut;
      }
    }
    return cut_[node] = all;
  }

  const std::vector<Feed>& feeds() const { return feeds_; }  // In the order of the placeholders, which are the first.

 private:
  absl::StatusOr<ir::Node*> StandInOrNull(const ir::Node& value) {
    const ir::Node* counterpart = CounterpartOrNull(baseline_, value);
    if (counterpart == nullptr) return nullptr;
    const TensorType& type = value.tensor_type();
    const bool is_codes = type.quant.has_value() && type.quant->per_tensor();
    if (counterpart->tensor_type().dtype != DType::kF32 || !(is_codes || type.dtype == DType::kF32)) return nullptr;
    ir::Node*& stand_in = stand_ins_[&value];
    if (stand_in != nullptr) return stand_in;
    ASSIGN_OR_RETURN(stand_in, graph_.AddPlaceholder(absl::StrCat(value.name(), ".float"), type, first_));
    feeds_.push_back({counterpart->name(), type});
    return stand_in;
  }

  const ir::Graph& baseline_;
  ir::Graph& graph_;
  ir::Node* const first_;
  std::map<const ir::Node*, ir::Node*> stand_ins_;
  std::map<const ir::Node*, bool> cut_;
  std::vector<Feed> feeds_;
};

// As quantize has it (ir/ops/quantize/quantize.h); floats stay.
Tensor AsType(const Tensor& values, const TensorType& type) {
  if (!type.quant.has_value()) return values;
  const float scale = type.quant->scale();
  const double zero_point = type.quant->zero_point();
  Tensor codes(type);
  const float* x = values.data<float>();
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    codes.Set(i, std::isnan(x[i]) ? zero_point : std::nearbyint(x[i] / scale) + zero_point);
  }
  return codes;
}

double Cosine(absl::Span<const float> a, absl::Span<const float> b) {
  double product = 0, a_squares = 0, b_squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    a_squares += double{a[i]} * a[i];
    b_squares += double{b[i]} * b[i];
  }
  const double scale = std::sqrt(a_squares * b_squares);
  return scale > 0 ? product / scale : a_squares == b_squares ? 1 : 0;
}

void SetError(const Tensor& wanted, const Tensor& found, Results::Quantization::Error* error) {
  const Difference difference = Compare(wanted, found);
  error->set_snr_db(difference.snr_db);
  error->set_max_abs(difference.max_abs_error);
  error->set_cosine(Cosine(Dequantized(wanted).values<float>(), Dequantized(found).values<float>()));
}

// What the range of the codes has to hold.
void SetDistribution(absl::Span<const float> values, const TensorType& codes, Results::Quantization* result) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (const float x : values) {
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (low > high) return;
  result->set_value_min(low);
  result->set_value_max(high);
  std::vector<int64_t> histogram(kBins);
  const double bins_per_unit = high > low ? kBins / (double{high} - low) : 0;
  for (const float x : values) {
    if (std::isfinite(x)) ++histogram[std::min<int>(kBins - 1, static_cast<int>((double{x} - low) * bins_per_unit))];
  }
  result->mutable_histogram()->Add(histogram.begin(), histogram.end());
  if (!codes.quant.has_value() || !codes.quant->per_tensor()) return;
  const double scale = codes.quant->scale();
  const IntegerRange range = RangeOf(codes.dtype);
  const double range_low = scale * (range.min - codes.quant->zero_point());
  const double range_high = scale * (range.max - codes.quant->zero_point());
  result->set_range_low(range_low);
  result->set_range_high(range_high);
  const int64_t clipped = std::count_if(
      values.begin(), values.end(), [&](float x) { return x < range_low - scale / 2 || x > range_high + scale / 2; });
  result->set_clipped_percent(100.0 * static_cast<double>(clipped) / static_cast<double>(values.size()));
}

// Three digits are what a chart shows.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, std::floor(std::log10(std::fabs(value))) - 2);
  return std::round(value / unit) * unit;
}

// The largest magnitude in each output channel; where there are many, in each group of neighbours.
void SetWeightRanges(const Tensor& weight, Results::Quantization* result) {
  if (!weight.type().quant.has_value() || weight.rank() == 0 || weight.num_elements() == 0) return;
  const QuantParams& quant = *weight.type().quant;
  const int axis = std::max(0, quant.axis);
  int64_t inner = 1;
  for (int i = axis + 1; i < weight.rank(); ++i) inner *= weight.dim(i);
  const int64_t channels = weight.dim(axis);
  const int64_t groups = std::min<int64_t>(channels, kMostWeightRanges);
  std::vector<double> ranges(groups);
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    const int64_t channel = i / inner % channels, parameter = quant.per_tensor() ? 0 : channel;
    const double value = quant.scales[parameter] * (weight.At(i) - quant.zero_points[parameter]);
    double& range = ranges[channel * groups / channels];
    range = std::max(range, std::fabs(value));
  }
  for (const double range : ranges) result->add_weight_ranges(Rounded(range));
}

}  // namespace

absl::StatusOr<LayerErrors> MeasureLayerErrors(const PlacedGraph& baseline, const PlacedGraph& quantized,
                                               absl::Span<const Tensor> inputs, const kernels::KernelRegistry& kernels,
                                               runtime::ThreadPool* pool) {
  const int64_t batch = inputs[0].dim(0);
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> wanted_graph, compiler::WithBatch(baseline.graph, batch));
  ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> found_graph, compiler::WithBatch(quantized.graph, batch));
  std::map<std::string, std::string> counterparts;
  Values wanted, found, alone;
  for (const ir::Node* node : found_graph->Snapshot()) {
    if (!IsQuantizedLayer(*node) || OnlyMaximaMatter(*node)) continue;
    const ir::Node* counterpart = CounterpartOrNull(*wanted_graph, *node);
    if (counterpart == nullptr) continue;
    counterparts[node->name()] = counterpart->name();
    wanted[counterpart->name()];
    found[node->name()];
  }
  LayerErrors errors;
  if (found.empty()) return errors;

  const std::unique_ptr<ir::Graph> alone_graph = found_graph->Clone();
  FloatInputs float_inputs(*wanted_graph, alone_graph.get());
  for (const auto& [layer, counterpart] : counterparts) {
    ASSIGN_OR_RETURN(const bool cut, float_inputs.Cut(alone_graph->FindNodeOrNull(layer)));
    if (cut) alone[layer];
  }
  for (const auto& feed : float_inputs.feeds()) wanted[feed.baseline];

  RETURN_IF_ERROR(RunTapped(*wanted_graph, baseline.engine, inputs, kernels, pool, &wanted));
  RETURN_IF_ERROR(RunTapped(*found_graph, quantized.engine, inputs, kernels, pool, &found));
  std::vector<Tensor> alone_inputs;
  for (const auto& feed : float_inputs.feeds()) alone_inputs.push_back(AsType(wanted[feed.baseline], feed.type));
  alone_inputs.insert(alone_inputs.end(), inputs.begin(), inputs.end());
  errors.local = RunTapped(*alone_graph, quantized.engine, alone_inputs, kernels, pool, &alone);

  for (const auto& [layer, counterpart] : counterparts) {
    LayerError& error = errors.layers[layer];
    Results::Quantization& result = error.quantization;
    const Tensor& value = wanted[counterpart];
    SetError(value, found[layer], result.mutable_accumulated());
    error.snr_db = result.accumulated().snr_db();
    if (errors.local.ok() && alone.count(layer) > 0) SetError(value, alone[layer], result.mutable_local());
    SetDistribution(Dequantized(value).values<float>(), found[layer].type(), &result);
    const Tensor* weight = found_graph->ParameterOfOrNull(*found_graph->FindNodeOrNull(layer), "weight");
    if (weight != nullptr) SetWeightRanges(*weight, &result);
  }
  return errors;
}

}  // namespace fuselage::harness
