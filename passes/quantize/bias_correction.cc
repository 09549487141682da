#include "passes/quantize/bias_correction.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "passes/quantize/rows.h"

namespace fuselage::quantize {
namespace {

using ir::Node;

// x rounded to the nearest code, as a difference of codes from the zero point. Adding 1.5 * 2^23 leaves a float no bits
// for fractions.
float Rounded(float x, const Codes& codes) {
  constexpr float kNoFractions = 12582912;
  const IntegerRange range = RangeOf(codes.dtype);
  const float least = static_cast<float>(range.min - codes.zero_point);
  const float most = static_cast<float>(range.max - codes.zero_point);
  return std::clamp(x / codes.scale, least, most) + kNoFractions - kNoFractions;
}

// Sums over the samples of what a call reads, one image or one row of features beside the other.
class InputSums {
 public:
  InputSums(const Node* call, std::optional<Codes> codes) : call_(call), codes_(codes) {
    Shape shape = call->operand(0)->tensor_type().shape;
    shape = call->IsOp("conv2d") ? Shape{1, shape[1], shape[2], shape[3]} : Shape{1, shape.back()};
    inputs_ = errors_ = Tensor(DType::kF32, std::move(shape));
  }

  const Node& call() const { return *call_; }

  void Add(const Tensor& value) {
    const int64_t size = inputs_.num_elements();
    float *inputs = inputs_.data<float>(), *errors = errors_.data<float>();
    for (int64_t first = 0; first < value.num_elements(); first += size, ++count_) {
      const float* x = value.data<float>() + first;
      for (int64_t i = 0; i < size; ++i) inputs[i] += x[i];
      for (int64_t i = 0; codes_ && i < size; ++i) errors[i] += codes_->scale * Rounded(x[i], *codes_) - x[i];
    }
  }

  // For each row of the outputs (rows.h), adds what `weight` and its error make of it to the sums of output channels.
  // Returns how many outputs of each channel that are.
  int64_t AddErrors(const Tensor& weight, const Tensor& rounded, absl::Span<double> sums) const {
    const int64_t groups = GroupsOf(*call_), channels = weight.dim(0), columns = weight.num_elements() / channels;
    int64_t rows = 0;
    const auto add = [&](const Tensor& values, const auto& weight_at) {
      std::vector<double> totals(groups * columns);
      ForEachRows(*call_, values, [&](int64_t group, absl::Span<const float> found) {
        for (size_t i = 0; i < found.size(); ++i) totals[group * columns + i % columns] += found[i];
        if (group == 0) rows += found.size() / columns;
      });
      for (int64_t c = 0; c < channels; ++c) {
        const double* total = &totals[c / (channels / groups) * columns];
        for (int64_t i = 0; i < columns; ++i) sums[c] += weight_at(c * columns + i) * total[i];
      }
    };
    const float *exact = weight.data<float>(), *codes = rounded.data<float>();
    add(inputs_, [&](int64_t i) { return static_cast<double>(codes[i]) - exact[i]; });
    rows = 0;
    add(errors_, [&](int64_t i) { return static_cast<double>(codes[i]); });
    return rows * count_;
  }

 private:
  const Node* call_;
  std::optional<Codes> codes_;
  Tensor inputs_, errors_;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> MeanErrors(const ir::Graph& graph,
                                                            absl::Span<const RoundedWeight> weights,
                                                            const InputCodes& input_codes, passes::Runner& runner) {
  std::vector<const Node*> nodes;
  std::vector<std::vector<InputSums>> sums(weights.size());
  std::vector<InputSums*> by_node;
  for (size_t i = 0; i < weights.size(); ++i) {
    const ir::Module* module = graph.FindModuleOrNull(weights[i].module);
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (node->module() == module) sums[i].emplace_back(node, input_codes(*node));
    }
    for (InputSums& of_call : sums[i]) {
      nodes.push_back(of_call.call().operand(0));
      by_node.push_back(&of_call);
    }
  }
  RETURN_IF_ERROR(
      runner.ForEachSample(graph, nodes, [&](int /*sample*/, absl::Span<const Tensor* const> values) -> absl::Status {
        for (size_t n = 0; n < values.size(); ++n) by_node[n]->Add(*values[n]);
        return absl::OkStatus();
      }));
  std::vector<std::vector<double>> errors(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const ir::Module& module = *graph.FindModuleOrNull(weights[i].module);
    const Tensor& weight = *graph.FindParameterOrNull(module.parameters.at("weight"))->tensor;
    const Tensor rounded = Dequantized(*weights[i].codes);
    errors[i].resize(weight.dim(0));
    int64_t count = 0;
    for (const InputSums& of_call : sums[i]) count += of_call.AddErrors(weight, rounded, absl::MakeSpan(errors[i]));
    for (double& error : errors[i]) error /= static_cast<double>(count);
  }
  return errors;
}

}  // namespace fuselage::quantize
