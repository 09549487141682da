#include "harness/datasets/text.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/datasets/next_byte.h"
#include "harness/datasets/shuffle.h"
#include "ir/base/sha256.h"
#include "ir/base/status.h"

namespace fuselage::datasets {
namespace {

class Text : public Dataset {
 public:
  Text(std::string bytes, int64_t window, bool shuffled)
      : bytes_(std::move(bytes)), window_(window), order_((bytes_.size() - 1) / window) {
    std::iota(order_.begin(), order_.end(), 0);
    if (shuffled) Shuffle(&order_);
  }

  int64_t size() const override { return static_cast<int64_t>(order_.size()); }
  const char* unit() const override { return "window"; }
  absl::StatusOr<std::unique_ptr<compiler::Samples>> Inputs(const ir::Graph& graph,
                                                            const HarnessConfig::Preprocessing& preprocessing,
                                                            kernels::Parallel* parallel) const override;
  std::unique_ptr<Judge> MakeJudge() const override {
    return std::make_unique<NextByte>(window_, [this](int64_t i) { return Bytes(i, /*shift=*/1); });
  }

  // The bytes of window i, or with a shift of 1 those that follow each of them.
  absl::Span<const uint8_t> Bytes(int64_t i, int64_t shift) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(bytes_.data());
    return absl::MakeConstSpan(bytes + order_[i] * window_ + shift, window_);
  }

 private:
  const std::string bytes_;
  const int64_t window_;
  std::vector<int64_t> order_;
};

class Windows : public compiler::Samples {
 public:
  Windows(const Text& text, kernels::Parallel* parallel) : compiler::Samples(parallel), text_(text) {}

  int64_t size() const override { return text_.size(); }
  std::string Key(int64_t count) const override {
    Sha256 digest;
    for (int64_t i = 0; i < count; ++i) digest.UpdateArray<uint8_t>(text_.Bytes(i, 0));
    return absl::StrCat("windows of ", text_.Bytes(0, 0).size(), " bytes, sha256 ", digest.Finish());
  }

 private:
  absl::Status FillRow(int64_t sample, int, Tensor* batch, int64_t row) const override {
    const absl::Span<const uint8_t> bytes = text_.Bytes(sample, 0);
    std::copy(bytes.begin(), bytes.end(), batch->data<int64_t>() + row * static_cast<int64_t>(bytes.size()));
    return absl::OkStatus();
  }

  const Text& text_;
};

absl::StatusOr<std::unique_ptr<compiler::Samples>> Text::Inputs(const ir::Graph& graph,
                                                                const HarnessConfig::Preprocessing& preprocessing,
                                                                kernels::Parallel* parallel) const {
  if (preprocessing.ByteSizeLong() > 0) return UsageError("preprocessing is for images, want none of a text");
  const std::vector<ir::Node*> placeholders = graph.placeholders();
  if (placeholders.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", placeholders.size(), " inputs, want one batch of windows"));
  }
  const TensorType& type = placeholders[0]->tensor_type();
  if (type.dtype != DType::kI64 || type.rank() != 2 || type.shape[1] != window_) {
    return absl::InvalidArgumentError(absl::StrCat("input %", placeholders[0]->name(), " is ", ToString(type),
                                                   ", want i64 [batch, ", window_, "], as dataset.text.window says"));
  }
  return std::make_unique<Windows>(*this, parallel);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenText(const std::string& path, const TextOptions& options, bool train) {
  if (!harness::FileExists(path)) {
    return absl::NotFoundError(
        absl::StrCat("there is no text ", path, ": write it there (the config may say how), or set dataset.text.path"));
  }
  ASSIGN_OR_RETURN(const std::string text, harness::ReadFile(path));
  const int64_t size = static_cast<int64_t>(text.size());
  if (size < options.test_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", size, " bytes, want at least dataset.text.test_bytes, ", options.test_bytes));
  }
  const int64_t split = size - options.test_bytes;
  std::string part = train ? text.substr(0, split) : text.substr(split);
  if (static_cast<int64_t>(part.size()) <= options.window) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has ", size, " bytes, ", part.size(), " of them to ",
                                                   train ? "train" : "test", " on; want at least ", options.window + 1,
                                                   ": a window, and the byte after it"));
  }
  return std::make_unique<Text>(std::move(part), options.window, /*shuffled=*/train);
}

}  // namespace fuselage::datasets
