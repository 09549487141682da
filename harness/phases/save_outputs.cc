#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/npz/npz.h"
#include "harness/phases/phases.h"
#include "ir/base/check.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {
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

absl::Status SaveOutputs(RunState& run) {
  if (run.config.save_outputs().empty()) return absl::OkStatus();
  std::unique_ptr<compiler::Samples> given;
  if (run.given_inputs != nullptr) given = std::make_unique<compiler::TensorSamples>(run.given_inputs, run.pool.get());
  const compiler::Samples& samples = given != nullptr ? *given : *run.inputs;
  const SampleRange range = given != nullptr ? SampleRange{0, given->size()} : run.EvaluatedSamples();
  const int64_t count = range.end - range.first;
  std::vector<npz::Array> arrays;
  for (size_t i = 0; i < run.variants.size(); ++i) {
    if (!run.variants[i].runs()) continue;
    const std::string& variant = run.variants[i].name();
    run.progress.Begin(absl::StrCat("save outputs of ", variant));
    ASSIGN_OR_RETURN(const auto engine, run.MakeEngine(run.variants[i], 1, run.pool.get()));
    // Random values are known to nobody else.
    const bool with_inputs = arrays.empty() && given == nullptr && !run.config.has_dataset();
    std::vector<Stack> inputs(with_inputs ? run.names.inputs.size() : 0, Stack(count));
    std::vector<Stack> outputs(run.names.outputs.size(), Stack(count));
    for (int64_t sample = 0; sample < count; ++sample) {
      ASSIGN_OR_RETURN(const std::vector<Tensor> batch, samples.Batch(range.first + sample, engine->input_types()));
      ASSIGN_OR_RETURN(const std::vector<Tensor>* found, engine->Run(batch));
      FUSELAGE_CHECK(found->size() == outputs.size());
      for (size_t j = 0; j < inputs.size(); ++j) inputs[j].Add(sample, batch[j]);
      for (size_t j = 0; j < outputs.size(); ++j) outputs[j].Add(sample, (*found)[j]);
      run.progress.Update(sample + 1, count, "samples");
    }
    for (size_t j = 0; j < inputs.size(); ++j) {
      arrays.push_back({absl::StrCat("inputs/", run.names.inputs[j]), inputs[j].Take()});
    }
    for (size_t j = 0; j < outputs.size(); ++j) {
      arrays.push_back({absl::StrCat(variant, "/", run.names.outputs[j]), outputs[j].Take()});
    }
  }
  return npz::Write(run.request.search.InCaller(run.config.save_outputs()), arrays);
}

}  // namespace fuselage::harness::phases
