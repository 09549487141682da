#include "harness/session.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/onnx/onnx.h"
#include "harness/base/exit_code.h"
#include "harness/base/machine_load.h"
#include "harness/environment.h"
#include "harness/gates.h"
#include "harness/measure/peaks.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"

namespace fuselage::harness {
namespace {

constexpr int kDefaultRandomInputs = 16;

// 0 means all cores; each number once, in order.
std::vector<int> ResolvedThreads(const HarnessConfig::Benchmark& benchmark, int cores) {
  std::vector<int> wanted(benchmark.threads().begin(), benchmark.threads().end());
  if (wanted.empty()) wanted = {1, 0};
  std::vector<int> threads;
  for (int count : wanted) {
    if (count == 0) count = cores;
    if (std::find(threads.begin(), threads.end(), count) == threads.end()) threads.push_back(count);
  }
  return threads;
}

// The names that `steps` give to graphs.
absl::Status AppendStepNames(const google::protobuf::RepeatedPtrField<PipelineConfig::Step>& steps,
                             const passes::PassRegistry& registry, std::vector<std::string>* names) {
  for (const PipelineConfig::Step& step : steps) {
    if (step.has_fixed_point()) {
      RETURN_IF_ERROR(AppendStepNames(step.fixed_point().steps(), registry, names));
      continue;
    }
    if (!step.has_pass()) return UsageError("pipeline: a step holds neither a pass nor a fixed_point");
    if (!step.name().empty()) {
      names->push_back(step.name());
      continue;
    }
    // A pass that needs what is not known yet (a runner) is made later; here only its name matters.
    const auto pass = registry.Create(step.pass(), {});
    if (!pass.ok()) return UsageError(absl::StrCat("pipeline: ", pass.status().message()));
    names->push_back(std::string((*pass)->name()));
  }
  return absl::OkStatus();
}

}  // namespace

Session::Session(const RunRequest& request, report::Progress& progress, Recorder& recorder)
    : request_(request),
      config_(request.config),
      progress_(progress),
      recorder_(recorder),
      library_(request.library != nullptr ? *request.library : compiler::BuiltIn()) {
  threads_ = ResolvedThreads(config_.benchmark(), AvailableCores());
  pool_ = std::make_unique<runtime::ThreadPool>(*std::max_element(threads_.begin(), threads_.end()));
}

void Session::Warn(const std::string& text) {
  progress_.Warn(text);
  recorder_.Update([&](Results& results) { *results.add_warnings() = text; });
}

absl::Status Session::CheckStepNames() const {
  std::vector<std::string> names = {"input"};
  RETURN_IF_ERROR(AppendStepNames(config_.pipeline().steps(), library_.passes, &names));
  for (const auto& variant : config_.variants()) {
    if (variant.after().empty() || std::find(names.begin(), names.end(), variant.after()) != names.end()) continue;
    return UsageError(absl::StrCat("variant ", variant.name(), ": the pipeline has no step \"", variant.after(), "\"",
                                   DidYouMean(variant.after(), names)));
  }
  return absl::OkStatus();
}

// Variants that cannot run for want of CUDA are not run, unless there are no others.
absl::Status Session::OpenCuda() {
  std::vector<std::string> on_cuda;
  for (const auto& config : config_.variants()) {
    if (config.backend() == "cuda") on_cuda.push_back(config.name());
  }
  if (on_cuda.empty() || request_.explain) return absl::OkStatus();
  auto backend = request_.open_cuda();
  if (!backend.ok()) {
    const std::string what =
        absl::StrCat(absl::StrJoin(on_cuda, ", "), " cannot run on cuda: ", backend.status().message());
    if (static_cast<int>(on_cuda.size()) == config_.variants_size()) {
      return UsageError(absl::StrCat(what, "; or use --backend=cpu"));
    }
    Warn(absl::StrCat(what, "; the other variants are measured"));
    no_cuda_ = std::string(backend.status().message());
    return absl::OkStatus();
  }
  cuda_ = *std::move(backend);
  recorder_.Update([&](Results& results) {
    results.mutable_environment()->set_gpu(cuda_->device().name());
    results.mutable_environment()->set_gpu_arch(cuda_->device().arch());
    results.mutable_environment()->set_cuda_driver(cuda_->device().driver());
  });
  return absl::OkStatus();
}

absl::Status Session::CheckVariants() {
  RETURN_IF_ERROR(CheckStepNames());
  RETURN_IF_ERROR(OpenCuda());
  for (const auto& config : config_.variants()) {
    Variant variant;
    variant.config = &config;
    const bool on_cuda = config.backend() == "cuda" && !request_.explain;
    if (on_cuda) variant.not_run = no_cuda_;
    variant.engine.cuda = cuda_.get();
    if (!config.backend().empty()) variant.engine.backend = config.backend();
    if (config.precision() == "fp16" && variant.engine.backend == "cpu") {
      return UsageError(
          absl::StrCat("variant ", config.name(), ": precision fp16 runs on cuda or reference, not on cpu"));
    }
    if (!config.isa().empty()) {
      const auto isa = kernels::IsaFromName(config.isa());
      if (!isa.ok()) return UsageError(absl::StrCat("variant ", config.name(), ": ", isa.status().message()));
      if (!kernels::CpuSupports(*isa)) {
        return UsageError(absl::StrCat("variant ", config.name(), ": this CPU does not run ", config.isa(),
                                       "; it runs ", kernels::IsaName(kernels::BestIsa())));
      }
      variant.engine.isa = *isa;
    }
    variant.engine.max_memory_bytes = request_.max_memory_bytes;
    variants_.push_back(std::move(variant));
    recorder_.Update([&](Results& results) {
      auto* result = results.add_variants();
      result->set_name(config.name());
      result->set_backend(variants_.back().engine.backend);
      result->set_not_run(variants_.back().not_run);
      result->set_optional(config.optional());
      if (!variants_.back().not_run.empty()) return;
      result->set_isa(on_cuda ? cuda_->device().arch() : std::string(kernels::IsaName(variants_.back().engine.isa)));
    });
  }
  return absl::OkStatus();
}

absl::Status Session::OpenDatasets() { return config_.has_dataset() ? OpenImages() : absl::OkStatus(); }

absl::Status Session::OpenImages() {
  progress_.Begin("open dataset");
  const auto calibration_split =
      config_.calibration().split() == HarnessConfig::TEST ? HarnessConfig::TEST : HarnessConfig::TRAIN;
  const auto evaluation_split =
      config_.evaluation().split() == HarnessConfig::TRAIN ? HarnessConfig::TRAIN : HarnessConfig::TEST;
  ASSIGN_OR_RETURN(evaluation_, datasets::Open(config_.dataset(), evaluation_split, request_.search));
  const int wanted = std::max(config_.calibration().images(), config_.numeric_check().samples());
  if (wanted > 0) {
    ASSIGN_OR_RETURN(calibration_, datasets::Open(config_.dataset(), calibration_split, request_.search));
    const int64_t images = std::min<int64_t>(config_.calibration().images(), calibration_.data->size());
    if (images == 1) Warn("calibration on a single image");
    const bool labelled = evaluation_.data->num_classes() > 0;
    if (images > 0 && labelled && calibration_.path == evaluation_.path && calibration_.split == evaluation_.split) {
      Warn("calibration and evaluation use the same images: the accuracy is not an independent one");
    }
    recorder_.Update([&](Results& results) {
      results.mutable_calibration()->set_split(calibration_.split);
      results.mutable_calibration()->set_images(static_cast<int32_t>(images));
    });
  }
  recorder_.Update([&](Results& results) {
    auto* dataset = results.mutable_dataset();
    dataset->set_name(evaluation_.name);
    dataset->set_path(evaluation_.path);
    dataset->set_split(evaluation_.split);
    dataset->set_images(evaluation_.data->size());
    dataset->set_unlabelled(evaluation_.data->num_classes() == 0);
  });
  return absl::OkStatus();
}

// `external`: the other files that hold the model.
absl::Status Session::ReadModel(const std::string& path, std::vector<std::string>* external) {
  LoadOptions options;
  for (const std::string& text : config_.model().shapes()) {
    ASSIGN_OR_RETURN(const auto shape, onnx::ParseShape(text));
    options.shapes[shape.first] = shape.second;
  }
  options.max_memory_bytes = request_.max_memory_bytes;
  options.allow_nonfinite = request_.allow_nonfinite;
  auto loaded = compiler::LoadGraph(path, library_.ops, options, external);
  if (IsUsageError(loaded.status())) {
    return UsageError(
        absl::StrCat(loaded.status().message(), "\nShapes are given by model.shapes, or by --shape=NAME:DIMENSIONS."));
  }
  RETURN_IF_ERROR(loaded.status());
  graph_ = std::move(loaded->graph);
  names_ = std::move(loaded->names);
  for (const std::string& warning : loaded->warnings) Warn(warning);
  return absl::OkStatus();
}

absl::Status Session::RecordModel(const std::string& path, std::vector<std::string> external) {
  std::vector<std::string> files = {path};
  for (std::string& file : external) {
    if (FileExists(file)) files.push_back(std::move(file));
  }
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFiles(files));
  recorder_.Update([&](Results& results) {
    auto* model = results.mutable_model();
    model->set_path(path);
    model->set_sha256(digest.sha256);
    model->set_bytes(digest.bytes);
    for (size_t i = 1; i < files.size(); ++i) *model->add_external() = files[i];
  });
  return absl::OkStatus();
}

absl::Status Session::LoadModel() {
  progress_.Begin("read model");
  const std::string path = request_.search.Find(config_.model().path());
  RETURN_IF_ERROR(RecordModel(path, {}));  // Before it is read: an incomplete report names it as well.
  std::vector<std::string> external;
  RETURN_IF_ERROR(ReadModel(path, &external));
  if (!external.empty()) RETURN_IF_ERROR(RecordModel(path, std::move(external)));
  if (config_.has_dataset()) RETURN_IF_ERROR(ImageInputOf(*graph_).status());
  if (!config_.inputs().empty()) RETURN_IF_ERROR(ReadInputs());
  if (config_.has_dataset()) return PrepareImages();
  PrepareInputs();
  return absl::OkStatus();
}

absl::Status Session::PrepareImages() {
  const TensorType& input = graph_->placeholders()[0]->tensor_type();
  const auto& preprocessing = config_.preprocessing();
  datasets::PreprocessOptions preprocess;
  preprocess.channels = static_cast<int>(input.shape[1]);
  preprocess.height = static_cast<int>(input.shape[2]);
  preprocess.width = static_cast<int>(input.shape[3]);
  if ((preprocessing.height() > 0 && preprocessing.height() != preprocess.height) ||
      (preprocessing.width() > 0 && preprocessing.width() != preprocess.width)) {
    return UsageError(absl::StrCat("preprocessing: ", preprocessing.height(), "x", preprocessing.width(),
                                   ", but the model's input is ", ToString(input)));
  }
  preprocess.mean.assign(preprocessing.mean().begin(), preprocessing.mean().end());
  preprocess.shorter_side = preprocessing.shorter_side();
  preprocess.std.assign(preprocessing.std().begin(), preprocessing.std().end());
  auto preprocessor = datasets::Preprocessor::Create(std::move(preprocess));
  if (!preprocessor.ok()) return UsageError(preprocessor.status().message());
  preprocessor_ = *std::move(preprocessor);
  auto images = std::make_unique<ImageSamples>(*evaluation_.data, *preprocessor_, pool_.get());
  if (evaluation_.data->num_classes() > 0) images_ = images.get();
  inputs_ = std::move(images);
  if (calibration_.data != nullptr) {
    calibration_samples_ = std::make_unique<ImageSamples>(*calibration_.data, *preprocessor_, pool_.get());
  }
  return absl::OkStatus();
}

void Session::PrepareInputs() {
  if (given_inputs_ != nullptr) {
    calibration_samples_ = std::make_unique<compiler::TensorSamples>(given_inputs_, pool_.get());
    inputs_ = std::make_unique<compiler::TensorSamples>(given_inputs_, pool_.get());
  } else {
    const uint64_t seed = config_.random_inputs().seed();
    // Like two splits of a dataset: what calibration sees is not what variants are compared by.
    calibration_samples_ = std::make_unique<compiler::RandomSamples>(2 * seed, random_inputs(), pool_.get());
    inputs_ = std::make_unique<compiler::RandomSamples>(2 * seed + 1, random_inputs(), pool_.get());
  }
  recorder_.Update([&](Results& results) {
    results.mutable_calibration()->set_split(given_inputs_ != nullptr ? "inputs" : "random");
    results.mutable_calibration()->set_images(calibration_samples());
  });
}

int Session::random_inputs() const {
  return config_.random_inputs().count() > 0 ? config_.random_inputs().count() : kDefaultRandomInputs;
}

int Session::calibration_samples() const {
  const int wanted = config_.calibration().images();
  if (config_.has_dataset()) return wanted;
  const int samples = static_cast<int>(std::min<int64_t>(calibration_samples_->size(), INT32_MAX));
  return wanted > 0 ? std::min(wanted, samples) : samples;
}

absl::Status Session::FindPeaks() {
  // Passes weigh by them, and variants are predicted.
  if (config_.pipeline().steps().empty() && variants_.empty()) return absl::OkStatus();
  progress_.Begin("machine peaks");
  const std::string file = request_.cache_folder.empty() ? "" : PeaksFile(request_.cache_folder);
  absl::StatusOr<Results::Peaks> peaks = absl::NotFoundError("");
  if (!file.empty()) peaks = ReadPeaks(file);
  if (!peaks.ok()) {
    const MachineLoad load;
    ASSIGN_OR_RETURN(peaks, MeasurePeaks(library_.ops, library_.kernels));
    peaks->set_measured(UtcNow());
    if (load.OtherCores().value_or(0) > kQuietCores) {
      Warn("the machine's peaks were measured beside other programs; --remeasure_peaks when it is quiet");
    }
    if (!file.empty()) {
      const absl::Status kept = WritePeaks(file, *peaks);
      if (!kept.ok()) Warn(absl::StrCat("the machine's peaks are not kept: ", kept.message(), "; see --no_cache"));
    }
  }
  peaks_ = ToMachinePeaks(*peaks);
  recorder_.Update([&](Results& results) { *results.mutable_environment()->mutable_peaks() = *peaks; });
  return absl::OkStatus();
}

absl::Status Session::ApplyGates() {
  const std::vector<Results::Gate> gates =
      CheckGates(config_.gates(), {first_batch(), threads_[0]}, recorder_.Snapshot());
  recorder_.Update([&](Results& results) {
    for (const Results::Gate& gate : gates) *results.add_gates() = gate;
  });
  return GateStatus(gates);
}

}  // namespace fuselage::harness
