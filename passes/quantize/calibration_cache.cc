#include "passes/quantize/calibration_cache.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "passes/core/kept_message.h"

namespace fuselage::quantize {

using passes::TextFingerprint;
using passes::TextOf;

CalibrationCache::CalibrationCache(const std::string& folder, CalibrationCacheFile::Key key,
                                   std::vector<std::string> nodes)
    : key_(std::move(key)), nodes_(std::move(nodes)) {
  const std::string name = TextFingerprint(absl::StrCat(TextOf(key_), absl::StrJoin(nodes_, "\n")));
  path_ = (std::filesystem::path(folder) / absl::StrCat("calibration-", name, ".textproto")).string();
}

absl::StatusOr<Calibration> CalibrationCache::Read() const {
  CalibrationCacheFile file;
  RETURN_IF_ERROR(passes::ReadKeptMessage(path_, &file));
  if (TextOf(file.key()) != TextOf(key_)) return absl::DataLossError("it is about other data");
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
  return passes::KeepMessage(path_, &file);
}

}  // namespace fuselage::quantize
