#include "harness/datasets/image_dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/datasets/classification.h"
#include "harness/datasets/image_samples.h"
#include "harness/datasets/preprocess.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

absl::StatusOr<TensorType> ImageInputOf(const ir::Graph& graph) {
  const std::vector<ir::Node*> placeholders = graph.placeholders();
  if (placeholders.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", placeholders.size(), " inputs, want one image batch"));
  }
  const TensorType& type = placeholders[0]->tensor_type();
  if ((type.dtype != DType::kF32 && type.dtype != DType::kU8) || type.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("input %", placeholders[0]->name(), " is ", ToString(type),
                                                   ", want f32 [batch, channels, height, width], or u8"));
  }
  return type;
}

// Bytes are in the order that the network was given, or else three or one are the channels.
bool HasPixels(const TensorType& bytes, HarnessConfig::Preprocessing::Input given) {
  const auto are_channels = [](int64_t size) { return size == 1 || size == 3; };
  if (given != HarnessConfig::Preprocessing::FLOATS) return given == HarnessConfig::Preprocessing::PIXELS;
  return are_channels(bytes.shape[3]) && !are_channels(bytes.shape[1]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<compiler::Samples>> ImageDataset::Inputs(
    const ir::Graph& graph, const HarnessConfig::Preprocessing& preprocessing, kernels::Parallel* parallel) const {
  ASSIGN_OR_RETURN(const TensorType input, ImageInputOf(graph));
  PreprocessOptions options;
  options.bytes = input.dtype == DType::kU8;
  options.pixels = options.bytes && HasPixels(input, preprocessing.input());
  options.channels = static_cast<int>(input.shape[options.pixels ? 3 : 1]);
  options.height = static_cast<int>(input.shape[options.pixels ? 1 : 2]);
  options.width = static_cast<int>(input.shape[options.pixels ? 2 : 3]);
  if ((preprocessing.height() > 0 && preprocessing.height() != options.height) ||
      (preprocessing.width() > 0 && preprocessing.width() != options.width)) {
    return UsageError(absl::StrCat("preprocessing: ", preprocessing.height(), "x", preprocessing.width(),
                                   ", but the model's input is ", ToString(input)));
  }
  options.shorter_side = preprocessing.shorter_side();
  if (!options.bytes) {
    options.mean.assign(preprocessing.mean().begin(), preprocessing.mean().end());
    options.std.assign(preprocessing.std().begin(), preprocessing.std().end());
  } else if (preprocessing.input() == HarnessConfig::Preprocessing::FLOATS &&
             preprocessing.mean_size() + preprocessing.std_size() > 0) {
    return UsageError(absl::StrCat("preprocessing has mean or std, but the model's input is ", ToString(input),
                                   ": its own operators normalize bytes"));
  }
  auto preprocessor = Preprocessor::Create(std::move(options));
  if (!preprocessor.ok()) return UsageError(preprocessor.status().message());
  return std::make_unique<ImageSamples>(*this, *std::move(preprocessor), parallel);
}

std::unique_ptr<Judge> ImageDataset::MakeJudge() const {
  return num_classes() > 0 ? std::make_unique<Classification>(*this) : nullptr;
}

}  // namespace fuselage::datasets
