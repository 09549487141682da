#include "passes/quantize/bias_correction.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/text.h"
#include "passes/core/kept_message.h"
#include "passes/quantize/calibration_cache.pb.h"
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
  InputSums(const Node* call, Codes codes) : call_(call), codes_(codes) {
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
      for (int64_t i = 0; i < size; ++i) {
        inputs[i] += x[i];
        errors[i] += codes_.scale * Rounded(x[i], codes_) - x[i];
      }
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
  Codes codes_;
  Tensor inputs_, errors_;
  int64_t count_ = 0;
};

std::vector<const Node*> CallsOf(const std::string& module, const ir::Graph& graph) {
  std::vector<const Node*> calls;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->module() != nullptr && node->module()->path == module) calls.push_back(node);
  }
  return calls;
}

using ErrorsByKey = std::map<std::string, std::vector<double>>;

// Counts changes of what MeanErrors computes; a new one makes kept files old.
constexpr int kErrorsVersion = 1;

std::string KeyOf(const RoundedWeight& weight, const InputCodes& input_codes, const ir::Graph& graph) {
  std::string text = absl::StrCat(weight.module, " ", Fingerprint(*weight.codes));
  for (const Node* call : CallsOf(weight.module, graph)) {
    const Codes codes = input_codes(*call);
    absl::StrAppend(&text, " ", DTypeName(codes.dtype), ToString(PerTensor(codes.scale, codes.zero_point)));
  }
  return passes::TextFingerprint(text);
}

absl::StatusOr<ErrorsByKey> ReadErrors(const std::string& path, const CalibrationCacheFile::Key& key) {
  MeanErrorsFile file;
  RETURN_IF_ERROR(passes::ReadKeptMessage(path, &file));
  if (passes::TextOf(file.key()) != passes::TextOf(key)) return absl::DataLossError("it is about other data");
  ErrorsByKey errors;
  for (const auto& layer : file.layers()) errors[layer.key()].assign(layer.errors().begin(), layer.errors().end());
  return errors;
}

absl::Status WriteErrors(const std::string& path, const CalibrationCacheFile::Key& key, const ErrorsByKey& errors) {
  MeanErrorsFile file;
  *file.mutable_key() = key;
  for (const auto& [layer, of_channels] : errors) {
    auto* entry = file.add_layers();
    entry->set_key(layer);
    entry->mutable_errors()->Assign(of_channels.begin(), of_channels.end());
  }
  return passes::KeepMessage(path, &file);
}

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> MeanErrors(const ir::Graph& graph,
                                                            absl::Span<const RoundedWeight> weights,
                                                            const InputCodes& input_codes, passes::Runner& runner) {
  std::vector<const Node*> nodes;
  std::vector<std::vector<InputSums>> sums(weights.size());
  std::vector<InputSums*> by_node;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const Node* call : CallsOf(weights[i].module, graph)) sums[i].emplace_back(call, input_codes(*call));
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
    for (double& error : errors[i]) error /= static_cast<double>(std::max<int64_t>(count, 1));  // None of no images.
  }
  return errors;
}

absl::StatusOr<std::vector<std::vector<double>>> KeptMeanErrors(const ir::Graph& graph,
                                                                absl::Span<const RoundedWeight> weights,
                                                                const InputCodes& input_codes, passes::Runner& runner,
                                                                const std::string& cache_folder,
                                                                passes::Remarks& remarks) {
  CalibrationCacheFile::Key key;
  key.set_data(runner.DataKey());
  if (cache_folder.empty() || key.data().empty()) return MeanErrors(graph, weights, input_codes, runner);
  key.set_version(kErrorsVersion);
  key.set_graph(passes::TextFingerprint(ir::Print(graph)));
  const std::string name = absl::StrCat("errors-", passes::TextFingerprint(passes::TextOf(key)), ".textproto");
  const std::string path = (std::filesystem::path(cache_folder) / name).string();
  absl::StatusOr<ErrorsByKey> read = ReadErrors(path, key);
  if (!read.ok() && !absl::IsNotFound(read.status())) {
    remarks.Process(absl::StrCat("warning: cache ", path, " is not used: ", read.status().message()));
  }
  ErrorsByKey known = read.ok() ? *std::move(read) : ErrorsByKey();
  std::vector<std::string> keys;
  std::vector<RoundedWeight> missing;
  std::vector<std::string> missing_keys;
  for (const RoundedWeight& weight : weights) {
    keys.push_back(KeyOf(weight, input_codes, graph));
    const auto it = known.find(keys.back());
    if (it != known.end() && it->second.size() == static_cast<size_t>(weight.codes->dim(0))) continue;
    missing.push_back(weight);
    missing_keys.push_back(keys.back());
  }
  if (missing.empty()) {
    remarks.Process(absl::StrCat("mean errors from cache ", path));
  } else {
    ASSIGN_OR_RETURN(std::vector<std::vector<double>> found, MeanErrors(graph, missing, input_codes, runner));
    for (size_t i = 0; i < found.size(); ++i) known[missing_keys[i]] = std::move(found[i]);
    const absl::Status status = WriteErrors(path, key, known);
    if (!status.ok()) remarks.Process(absl::StrCat("warning: mean errors are not kept: ", status.message()));
  }
  std::vector<std::vector<double>> errors;
  for (const std::string& layer : keys) errors.push_back(known.at(layer));
  return errors;
}

}  // namespace fuselage::quantize
