#include "passes/quantize/calibration_cache.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "ir/base/tensor.h"

namespace fuselage::quantize {
namespace {

namespace fs = std::filesystem;
using google::protobuf::TextFormat;

// Keeps the first error, and off the standard error stream.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Text(const google::protobuf::Message& message) {
  std::string text;
  TextFormat::PrintToString(message, &text);
  return text;
}

std::string FingerprintOf(CalibrationCacheFile file) {
  file.clear_fingerprint();
  return TextFingerprint(Text(file));
}

}  // namespace

std::string TextFingerprint(const std::string& text) {
  Tensor bytes(TensorType{DType::kU8, {static_cast<int64_t>(text.size())}, std::nullopt, Layout::kRowMajor});
  std::copy(text.begin(), text.end(), bytes.data<uint8_t>());
  return absl::StrCat(absl::Hex(Fingerprint(bytes), absl::kZeroPad16));
}

CalibrationCache::CalibrationCache(const std::string& folder, CalibrationCacheFile::Key key,
                                   std::vector<std::string> nodes)
    : key_(std::move(key)), nodes_(std::move(nodes)), folder_(folder) {
  const std::string name = TextFingerprint(absl::StrCat(Text(key_), absl::StrJoin(nodes_, "\n")));
  path_ = (fs::path(folder) / absl::StrCat("calibration-", name, ".textproto")).string();
}

absl::StatusOr<Calibration> CalibrationCache::Read() const {
  std::ifstream stream(path_, std::ios::binary);
  if (!stream) return absl::NotFoundError(path_);
  std::stringstream text;
  text << stream.rdbuf();
  CalibrationCacheFile file;
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text.str(), &file)) return absl::DataLossError(error.text());
  if (file.fingerprint() != FingerprintOf(file))
    return absl::DataLossError("its fingerprint is that of other contents");
  if (Text(file.key()) != Text(key_)) return absl::DataLossError("it is about other data");
  if (file.samples() < 1) return absl::DataLossError("it has no samples");
  if (file.activations_size() != static_cast<int>(nodes_.size())) {
    return absl::DataLossError(
        absl::StrCat("it has ", file.activations_size(), " activations, wanted ", nodes_.size()));
  }
  Calibration calibration;
  calibration.samples = file.samples();
  for (int i = 0; i < file.activations_size(); ++i) {
    const auto& found = file.activations(i);
    if (found.node() != nodes_[i] || !std::isfinite(found.min()) || !std::isfinite(found.max()) ||
        found.min() > found.max()) {
      return absl::DataLossError(absl::StrCat("its activation ", i, " is no range of %", nodes_[i]));
    }
    calibration.ranges.push_back({found.min(), found.max()});
  }
  return calibration;
}

absl::Status CalibrationCache::Write(const Calibration& calibration) const {
  CalibrationCacheFile file;
  *file.mutable_key() = key_;
  file.set_samples(calibration.samples);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    auto* activation = file.add_activations();
    activation->set_node(nodes_[i]);
    activation->set_min(calibration.ranges[i].min);
    activation->set_max(calibration.ranges[i].max);
  }
  file.set_fingerprint(FingerprintOf(file));

  std::error_code error;
  fs::create_directories(folder_, error);
  std::string temporary = path_ + ".XXXXXX";
  const int descriptor = mkstemp(&temporary[0]);
  if (descriptor < 0) return absl::UnavailableError(absl::StrCat("cannot write to ", folder_));
  close(descriptor);
  std::ofstream stream(temporary, std::ios::binary);
  stream << Text(file);
  stream.close();
  if (stream) fs::rename(temporary, path_, error);
  if (stream && !error) return absl::OkStatus();
  fs::remove(temporary, error);
  return absl::UnavailableError(absl::StrCat("cannot write ", path_));
}

}  // namespace fuselage::quantize
