// What a run takes and gives beside the config's data and the report: the user's inputs, the variants' outputs, and the
// quantized network.
#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/exit_code.h"
#include "harness/npz/npz.h"
#include "harness/session.h"
#include "ir/base/check.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// Collects one value for all samples, which come one at a time.
class Stack {
 public:
  explicit Stack(int64_t samples) : samples_(samples) {}

  void Add(int64_t sample, const Tensor& value) {
    const Tensor row = value.type().quant.has_value() ? Dequantized(value) : value;
    if (sample == 0) {
      TensorType type = row.type();
      // Dimension 0 counts samples; a value that does not depend on the batch gets one in front.
      if (type.rank() > 0 && type.shape[0] == 1) {
        type.shape[0] = samples_;
      } else {
        type.shape.insert(type.shape.begin(), samples_);
      }
      all_ = Tensor(std::move(type));
    }
    std::memcpy(static_cast<uint8_t*>(all_.raw_data()) + sample * row.byte_size(), row.raw_data(), row.byte_size());
  }
  Tensor Take() { return std::move(all_); }

 private:
  const int64_t samples_;
  Tensor all_;
};

}  // namespace

absl::Status Session::ReadInputs() {
  const std::string path = request_.search.Find(config_.inputs());
  ASSIGN_OR_RETURN(std::vector<npz::Array> arrays,
                   request_.max_memory_bytes > 0 ? npz::Read(path, request_.max_memory_bytes) : npz::Read(path));
  std::map<std::string, Tensor> given;
  for (npz::Array& array : arrays) {
    if (!given.emplace(array.name, std::move(array.tensor)).second) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": found the array \"", array.name, "\" twice"));
    }
  }
  auto inputs = compiler::SortInputs(std::move(given), names_.inputs, *graph_);
  if (!inputs.ok()) return Annotate(inputs.status(), path);
  given_inputs_ = std::make_shared<const std::vector<Tensor>>(*std::move(inputs));
  recorder_.Update([&](Results& results) { results.set_inputs(path); });
  return absl::OkStatus();
}

absl::Status Session::SaveOutputs() {
  if (config_.save_outputs().empty()) return absl::OkStatus();
  std::unique_ptr<compiler::Samples> given;
  if (given_inputs_ != nullptr) given = std::make_unique<compiler::TensorSamples>(given_inputs_, pool_.get());
  const compiler::Samples& samples = given != nullptr ? *given : *inputs_;
  const int64_t count = given != nullptr ? given->size() : evaluated_samples();
  std::vector<npz::Array> arrays;
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (!variants_[i].not_run.empty()) continue;
    const std::string& variant = variants_[i].config->name();
    progress_.Begin(absl::StrCat("save outputs of ", variant));
    ASSIGN_OR_RETURN(const auto engine, MakeVariantEngine(variants_[i], 1, pool_.get()));
    // Random values are known to nobody else.
    const bool with_inputs = arrays.empty() && given == nullptr && !config_.has_dataset();
    std::vector<Stack> inputs(with_inputs ? names_.inputs.size() : 0, Stack(count));
    std::vector<Stack> outputs(names_.outputs.size(), Stack(count));
    for (int64_t sample = 0; sample < count; ++sample) {
      ASSIGN_OR_RETURN(const std::vector<Tensor> batch, samples.Batch(sample, engine->input_types()));
      ASSIGN_OR_RETURN(const std::vector<Tensor>* found, engine->Run(batch));
      FUSELAGE_CHECK(found->size() == outputs.size());
      for (size_t j = 0; j < inputs.size(); ++j) inputs[j].Add(sample, batch[j]);
      for (size_t j = 0; j < outputs.size(); ++j) outputs[j].Add(sample, (*found)[j]);
      progress_.Update(sample + 1, count, "samples");
    }
    for (size_t j = 0; j < inputs.size(); ++j) {
      arrays.push_back({absl::StrCat("inputs/", names_.inputs[j]), inputs[j].Take()});
    }
    for (size_t j = 0; j < outputs.size(); ++j) {
      arrays.push_back({absl::StrCat(variant, "/", names_.outputs[j]), outputs[j].Take()});
    }
  }
  return npz::Write(request_.search.InCaller(config_.save_outputs()), arrays);
}

void Session::KeepForOnnx(const ir::Graph& graph) {
  if (config_.save_onnx().empty()) return;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != nullptr && absl::StartsWith(node->op()->name, "int8.")) return;
  }
  onnx_graph_ = graph.Clone();
}

absl::Status Session::SaveOnnx() {
  if (config_.save_onnx().empty()) return absl::OkStatus();
  progress_.Begin("save the quantized network");
  onnx::writer::WriteOptions options;
  options.names = names_;
  // Our kernels add biases as floats, so these keep every bit.
  options.bias = onnx::writer::WriteOptions::Bias::kFloat;
  return WriteOnnx(onnx_graph_ != nullptr ? *onnx_graph_ : *graph_, std::move(options),
                   request_.search.InCaller(config_.save_onnx()));
}

absl::Status WriteOnnx(const ir::Graph& graph, onnx::writer::WriteOptions options, const std::string& path) {
  options.batch = "N";
  const absl::StatusOr<std::string> bytes = onnx::writer::Write(graph, options);
  if (!bytes.ok()) return Annotate(bytes.status(), path);
  return WriteFileAtomic(path, *bytes);
}

}  // namespace fuselage::harness
