#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/load.h"
#include "frontend/onnx/onnx.h"
#include "harness/base/exit_code.h"
#include "harness/npz/npz.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kDefaultRandomInputs = 16;

// Of the file that holds the network's inputs, by their names.
using Arrays = std::map<std::string, Tensor>;

// `external`: the other files that hold the model.
absl::Status ReadModel(RunState& run, const std::string& path, const Arrays& given,
                       std::vector<std::string>* external) {
  LoadOptions options;
  for (const auto& [name, samples] : given) options.sample_shapes[name] = samples.shape();
  for (const std::string& text : run.config.model().shapes()) {
    ASSIGN_OR_RETURN(const auto shape, onnx::ParseShape(text));
    options.shapes[shape.first] = shape.second;
  }
  for (const std::string& text : run.config.model().constants()) {
    ASSIGN_OR_RETURN(auto constant, onnx::ParseConstant(text));
    options.constants.insert_or_assign(constant.first, std::move(constant.second));  // A flag's comes last.
  }
  options.outputs = {run.config.model().outputs().begin(), run.config.model().outputs().end()};
  options.max_memory_bytes = run.request.max_memory_bytes;
  options.allow_nonfinite = run.request.allow_nonfinite;
  if (const auto& images = run.config.preprocessing(); images.input() != HarnessConfig::Preprocessing::FLOATS) {
    options.bytes = {images.input() == HarnessConfig::Preprocessing::PIXELS,
                     {images.mean().begin(), images.mean().end()},
                     {images.std().begin(), images.std().end()}};
  }
  auto loaded = compiler::LoadGraph(path, run.library.ops, options, external);
  if (IsUsageError(loaded.status())) {
    return UsageError(absl::StrCat(loaded.status().message(),
                                   "\nShapes are given by model.shapes, or by --shape=NAME:DIMENSIONS; constants by "
                                   "model.constants, or by --constant=NAME:NUMBERS; outputs by model.outputs, or by "
                                   "--output=NAME; mean and std by preprocessing."));
  }
  if (absl::IsUnimplemented(loaded.status())) {
    return absl::UnimplementedError(absl::StrCat(
        loaded.status().message(),
        "\nWhat comes before can run alone: its outputs are given by model.outputs, or by --output=NAME. An input that "
        "never changes can be a constant: by model.constants, or by --constant=NAME:NUMBERS."));
  }
  RETURN_IF_ERROR(loaded.status());
  run.graph = std::move(loaded->graph);
  run.names = std::move(loaded->names);
  run.model_warnings = std::move(loaded->warnings);
  for (const std::string& warning : run.model_warnings) run.Warn(warning);
  return absl::OkStatus();
}

absl::Status RecordModel(RunState& run, const std::string& path, std::vector<std::string> external) {
  std::vector<std::string> files = {path};
  for (std::string& file : external) {
    if (FileExists(file)) files.push_back(std::move(file));
  }
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFiles(files));
  run.recorder.Update([&](Results& results) {
    auto* model = results.mutable_model();
    model->set_path(path);
    model->set_sha256(digest.sha256);
    model->set_bytes(digest.bytes);
    for (size_t i = 1; i < files.size(); ++i) *model->add_external() = files[i];
  });
  return absl::OkStatus();
}

absl::StatusOr<Arrays> ReadInputs(const RunState& run, const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<npz::Array> arrays,
                   run.request.max_memory_bytes > 0 ? npz::Read(path, run.request.max_memory_bytes) : npz::Read(path));
  Arrays given;
  for (npz::Array& array : arrays) {
    if (!given.emplace(array.name, std::move(array.tensor)).second) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": found the array \"", array.name, "\" twice"));
    }
  }
  return given;
}

absl::Status UseInputs(RunState& run, const std::string& path, Arrays given) {
  auto inputs = compiler::SortInputs(std::move(given), run.names.inputs, *run.graph);
  if (!inputs.ok()) return Annotate(inputs.status(), path);
  run.given_inputs = std::make_shared<const std::vector<Tensor>>(*std::move(inputs));
  run.recorder.Update([&](Results& results) { results.set_inputs(path); });
  return absl::OkStatus();
}

absl::Status PrepareDatasets(RunState& run) {
  const auto inputs = [&run](const datasets::Dataset& dataset) {
    return dataset.Inputs(*run.graph, run.config.preprocessing(), run.pool.get());
  };
  ASSIGN_OR_RETURN(run.inputs, inputs(*run.evaluation.data));
  if (run.calibration.data == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(run.calibration_samples, inputs(*run.calibration.data));
  return absl::OkStatus();
}

int RandomInputs(const HarnessConfig& config) {
  return config.random_inputs().count() > 0 ? config.random_inputs().count() : kDefaultRandomInputs;
}

void PrepareInputs(RunState& run) {
  if (run.given_inputs != nullptr) {
    run.calibration_samples = std::make_unique<compiler::TensorSamples>(run.given_inputs, run.pool.get());
    run.inputs = std::make_unique<compiler::TensorSamples>(run.given_inputs, run.pool.get());
  } else {
    const uint64_t seed = run.config.random_inputs().seed();
    const int count = RandomInputs(run.config);
    const auto samples = [&](uint64_t seed) {
      return std::make_unique<compiler::RandomSamples>(seed, count, run.pool.get(),
                                                       compiler::IntegerBounds(*run.graph));
    };
    // Like two splits of a dataset: what calibration sees is not what variants are compared by.
    run.calibration_samples = samples(2 * seed);
    run.inputs = samples(2 * seed + 1);
  }
  run.recorder.Update([&](Results& results) {
    results.mutable_calibration()->set_split(run.given_inputs != nullptr ? "inputs" : "random");
    results.mutable_calibration()->set_images(run.CalibrationSamples());
  });
}

}  // namespace

absl::Status LoadModel(RunState& run) {
  run.progress.Begin("read model");
  const std::string path = run.request.search.Find(run.config.model().path());
  RETURN_IF_ERROR(RecordModel(run, path, {}));  // Before it is read: an incomplete report names it as well.
  std::vector<std::string> external;
  const std::string inputs = run.config.inputs().empty() ? "" : run.request.search.Find(run.config.inputs());
  Arrays given;
  if (!inputs.empty()) {
    ASSIGN_OR_RETURN(given, ReadInputs(run, inputs));
  }
  RETURN_IF_ERROR(ReadModel(run, path, given, &external));
  if (!external.empty()) RETURN_IF_ERROR(RecordModel(run, path, std::move(external)));
  if (run.config.has_dataset()) RETURN_IF_ERROR(PrepareDatasets(run));
  if (!inputs.empty()) RETURN_IF_ERROR(UseInputs(run, inputs, std::move(given)));
  if (!run.config.has_dataset()) PrepareInputs(run);
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases
