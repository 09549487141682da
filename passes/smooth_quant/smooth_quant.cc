#include "passes/smooth_quant/smooth_quant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/base/hash_map.h"
#include "passes/equalization/channel_scales.h"
#include "passes/equalization/scale_layer.h"
#include "passes/quantize/scales.h"
#include "passes/quantize/weight_grid.h"
#include "passes/smooth_quant/groups.h"

namespace fuselage::smooth_quant {
namespace {

using equalization::ChannelStatistics;
using ir::Node;
using passes::Remarks;

constexpr int kRounds = 8;  // At most.
constexpr int kGrid = 8;    // a in steps of 1 / kGrid.
// In dB: what is scaled loses its plain weights, which should gain something.
constexpr double kLeastGain = 0.5;
// The rows that candidates are compared on are at most twice as many, spread over all samples.
constexpr size_t kRows = 64;

// About one row in n of what it is shown, n as small as kRows allows. Which ones, a hash of their place says: in steps
// of n it would be the same token of every window of a text.
class SomeRows {
 public:
  void Add(const Tensor& value) {
    const int64_t size = value.rank() == 0 ? 0 : value.type().shape.back();
    if (size == 0) return;
    for (int64_t first = 0; first < value.num_elements(); first += size, ++seen_) {
      if (!IsKept(seen_)) continue;
      const absl::Span<const float> row = value.values<float>().subspan(first, size);
      places_.push_back(seen_);
      rows_.emplace_back(row.begin(), row.end());
      while (rows_.size() >= 2 * kRows) Thin();
    }
  }
  const std::vector<std::vector<float>>& rows() const { return rows_; }

 private:
  bool IsKept(uint64_t place) const { return (place * 0x9E3779B97F4A7C15 >> 32) % stride_ == 0; }
  void Thin() {
    stride_ *= 2;
    size_t kept = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!IsKept(places_[i])) continue;
      places_[kept] = places_[i];
      if (kept != i) rows_[kept] = std::move(rows_[i]);
      ++kept;
    }
    places_.resize(kept);
    rows_.resize(kept);
  }

  uint64_t seen_ = 0, stride_ = 1;
  std::vector<uint64_t> places_;
  std::vector<std::vector<float>> rows_;
};

struct Samples {
  ChannelStatistics statistics;
  SomeRows rows;
};

// By group.
absl::StatusOr<std::vector<Samples>> Sample(const std::vector<Group>& groups, const ir::Graph& graph,
                                            passes::Runner* runner) {
  if (runner == nullptr) return UsageError("smooth_quant needs calibration data: the caller gives none");
  std::vector<const Node*> nodes;
  std::vector<Samples> samples;
  for (const Group& group : groups) {
    const TensorType& type = group.value->tensor_type();
    nodes.push_back(group.value);
    samples.push_back({ChannelStatistics(type.shape.back(), type.rank() - 1), SomeRows()});
  }
  int count = 0;
  RETURN_IF_ERROR(
      runner->ForEachSample(graph, nodes, [&](int sample, absl::Span<const Tensor* const> values) -> absl::Status {
        ++count;
        for (size_t i = 0; i < nodes.size(); ++i) {
          const absl::Status status = samples[i].statistics.Add(*values[i]);
          if (!status.ok()) return Annotate(status, absl::StrCat("sample ", sample, ": %", nodes[i]->name()));
          samples[i].rows.Add(*values[i]);
        }
        return absl::OkStatus();
      }));
  if (count == 0) return UsageError("smooth_quant needs calibration data: the calibration set is empty");
  return samples;
}

// [K, N] of a weight [N, K]: loops run over outputs, each of which is one chain of sums.
std::vector<float> Transposed(const Tensor& weight) {
  const int64_t outputs = weight.dim(0), inputs = weight.dim(1);
  std::vector<float> transposed(weight.num_elements());
  for (int64_t n = 0; n < outputs; ++n) {
    for (int64_t k = 0; k < inputs; ++k) transposed[k * outputs + n] = weight.data<float>()[n * inputs + k];
  }
  return transposed;
}

// sums[n] += sum_k row[k] * weight[k][n]
void Multiply(absl::Span<const float> row, const float* weight, float sign, absl::Span<float> sums) {
  for (const float x : row) {
    const float factor = sign * x;
    for (float& sum : sums) sum += factor * *weight++;
  }
}

// The readers of a group by the codes that the options name.
class Trial {
 public:
  Trial(const SmoothQuantOptions& options, const Group& group, const Samples& samples, const ir::Graph& graph)
      : options_(options), samples_(samples) {
    for (const Node* reader : group.readers) weights_.push_back(graph.ParameterOfOrNull(*reader, "weight"));
    for (const Tensor* weight : weights_) {
      const std::vector<float> transposed = Transposed(*weight);
      outputs_.emplace_back();
      for (const std::vector<float>& row : samples.rows.rows()) {
        outputs_.back().emplace_back(weight->dim(0));
        Multiply(row, transposed.data(), 1, absl::MakeSpan(outputs_.back().back()));
      }
    }
  }

  // The readers' mean square errors with the factors 2^exponents[c], each over its mean square output, added up.
  double Error(const std::vector<int>& exponents) const {
    std::vector<std::vector<float>> rows = samples_.rows.rows();
    for (std::vector<float>& row : rows) Round(exponents, row);
    double error = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      Tensor weight = *weights_[i];
      float* w = weight.data<float>();
      for (int64_t n = 0; n < weight.dim(0); ++n) {
        for (const int exponent : exponents) {
          *w = std::ldexp(*w, exponent);
          ++w;
        }
      }
      const std::vector<float> codes =
          Transposed(quantize::Rounded(weight, {options_.weights(), options_.group_size()}));
      double noise = 0, signal = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        std::vector<float> difference = outputs_[i][r];
        for (const float y : difference) signal += static_cast<double>(y) * y;
        Multiply(rows[r], codes.data(), -1, absl::MakeSpan(difference));
        for (const float y : difference) noise += static_cast<double>(y) * y;
      }
      if (signal > 0) error += noise / signal;
    }
    return error;
  }

 private:
  // Divides by the factors, and takes the values of codes.
  void Round(const std::vector<int>& exponents, std::vector<float>& row) const {
    float largest = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = std::ldexp(row[c], -exponents[c]);
      largest = std::max(largest, std::fabs(row[c]));
    }
    quantize::Codes codes{DType::kI8, largest / 127};
    if (!options_.per_token()) {
      quantize::Range range;
      for (int64_t c = 0; c < samples_.statistics.channels(); ++c) {
        range = quantize::Union(range, {std::ldexp(samples_.statistics.min(c), -exponents[c]),
                                        std::ldexp(samples_.statistics.max(c), -exponents[c])});
      }
      codes = quantize::ActivationCodes(range, options_.activations());
    } else if (codes.scale < std::numeric_limits<float>::min()) {
      codes.scale = 1;
    }
    const IntegerRange limits = RangeOf(codes.dtype);
    for (float& x : row) {
      const float code = std::nearbyint(x / codes.scale) + codes.zero_point;
      x = (std::clamp<float>(code, limits.min, limits.max) - codes.zero_point) * codes.scale;
    }
  }

  const SmoothQuantOptions& options_;
  const Samples& samples_;
  std::vector<const Tensor*> weights_;                    // By reader.
  std::vector<std::vector<std::vector<float>>> outputs_;  // By reader and row: in FP32, without bias and activation.
};

struct Choice {
  std::vector<int> exponents;
  int eighths = 0;
  double gain_db = 0;
};

Choice Choose(const SmoothQuantOptions& options, const Group& group, const Samples& samples, const ir::Graph& graph) {
  const int64_t channels = samples.statistics.channels();
  std::vector<double> ranges, weights(channels);  // By channel: of its values, and the largest weight for them.
  for (int64_t c = 0; c < channels; ++c) ranges.push_back(samples.statistics.magnitude(c));
  for (const Node* reader : group.readers) {
    const absl::Span<const float> values = graph.ParameterOfOrNull(*reader, "weight")->values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      double& largest = weights[i % channels];
      largest = std::max(largest, static_cast<double>(std::fabs(values[i])));
    }
  }
  const Trial trial(options, group, samples, graph);
  Choice best{std::vector<int>(channels)};
  const double before = trial.Error(best.exponents);
  double least = before;
  for (int eighths = 0; eighths <= kGrid; ++eighths) {
    std::vector<int> exponents = equalization::BalancingExponents(ranges, weights, eighths);
    const double error = trial.Error(exponents);
    if (!(error < least)) continue;  // Nor where a factor makes an infinity of a weight.
    least = error;
    best = {std::move(exponents), eighths, 10 * std::log10(before / error)};
  }
  return best;
}

std::string Names(const std::vector<Node*>& nodes) {
  return absl::StrJoin(nodes, ", ",
                       [](std::string* out, const Node* node) { absl::StrAppend(out, "%", node->name()); });
}

// One choice for each group by the graph as it is.
absl::StatusOr<bool> Smooth(const SmoothQuantOptions& options, passes::Runner* runner, ir::Graph& graph,
                            Remarks& remarks) {
  const std::vector<Group> groups = FindGroups(options, graph, remarks);
  if (groups.empty()) return false;
  ASSIGN_OR_RETURN(const std::vector<Samples> samples, Sample(groups, graph, runner));
  // A linear between two groups is a reader of one and the writer of the other: its factors are set together.
  HashMap<const Node*, equalization::LayerScales> scales;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Choice choice = Choose(options, groups[i], samples[i], graph);
    if (choice.gain_db < kLeastGain) {
      remarks.Missed(*groups[i].value, absl::StrFormat("its channels stay as they are: %s would gain %.1f dB at most",
                                                       Names(groups[i].readers), choice.gain_db));
      continue;
    }
    scales[groups[i].writer].rows = choice.exponents;
    for (const Node* reader : groups[i].readers) scales[reader].columns = choice.exponents;
    const auto [least, largest] = std::minmax_element(choice.exponents.begin(), choice.exponents.end());
    remarks.Applied(*groups[i].value,
                    absl::StrFormat("channels into %s scaled by 2^%d to 2^%d in %%%s (a = %d/%d): their outputs gain "
                                    "%.1f dB",
                                    Names(groups[i].readers), -*largest, -*least, groups[i].writer->name(),
                                    choice.eighths, kGrid, choice.gain_db));
  }
  for (Node* node : graph.Snapshot()) {
    const auto it = scales.find(node);
    if (it == scales.end()) continue;
    RETURN_IF_ERROR(node->IsOp("linear") ? equalization::ScaleLayer(node, it->second, "smoothed", graph)
                                         : equalization::ScaleNorm(node, it->second.rows, "smoothed", graph));
  }
  return !scales.empty();
}

}  // namespace

absl::StatusOr<bool> SmoothQuant::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  RETURN_IF_ERROR(quantize::CheckFormat({options_.weights(), options_.group_size()}));
  ASSIGN_OR_RETURN(bool changed, Smooth(options_, runner_, graph, remarks));
  if (!changed) return false;
  // What scaled the rows of a linear changed which of its columns are large: a choice behind it may have more to gain.
  Remarks repeated;
  for (int round = 1; changed && round < kRounds; ++round) {
    ASSIGN_OR_RETURN(changed, Smooth(options_, runner_, graph, repeated));
  }
  return true;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<SmoothQuantOptions>(
      [](const SmoothQuantOptions& options, const passes::PassEnvironment& environment) {
        return std::make_unique<SmoothQuant>(options, environment.runner);
      });
}

}  // namespace fuselage::smooth_quant
