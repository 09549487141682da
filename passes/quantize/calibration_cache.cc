#include "passes/quantize/calibration_cache.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/core/kept_message.h"

namespace fuselage::quantize {

using passes::TextFingerprint;
using passes::TextOf;

namespace {

using RangeOf = std::map<std::string, Range>;  // By node.

RangeOf RangesOf(const CalibrationCacheFile& file) {
  RangeOf ranges;
  for (const auto& activation : file.activations()) ranges[activation.node()] = {activation.min(), activation.max()};
  return ranges;
}

}  // namespace

CalibrationCache::CalibrationCache(const std::string& folder, CalibrationCacheFile::Key key,
                                   std::vector<std::string> nodes)
    : key_(std::move(key)), nodes_(std::move(nodes)) {
  path_ = (std::filesystem::path(folder) / absl::StrCat("calibration-", TextFingerprint(TextOf(key_)), ".textproto"))
              .string();
}

absl::StatusOr<CalibrationCacheFile> CalibrationCache::ReadWhole() const {
  CalibrationCacheFile file;
  RETURN_IF_ERROR(passes::ReadKeptMessage(path_, &file));
  if (TextOf(file.key()) != TextOf(key_)) return absl::DataLossError("it is about other data");
  if (file.samples() < 1) return absl::DataLossError("it has no samples");
  for (const auto& found : file.activations()) {
    if (!std::isfinite(found.min()) || !std::isfinite(found.max()) || found.min() > found.max()) {
      return absl::DataLossError(absl::StrCat("its activation %", found.node(), " has no range"));
    }
  }
  return file;
}

absl::StatusOr<Calibration> CalibrationCache::Read() const {
  ASSIGN_OR_RETURN(const CalibrationCacheFile file, ReadWhole());
  const RangeOf ranges = RangesOf(file);
  Calibration calibration;
  calibration.samples = file.samples();
  for (const std::string& node : nodes_) {
    const auto found = ranges.find(node);
    if (found == ranges.end()) return absl::NotFoundError(absl::StrCat(path_, " has no range of %", node));
    calibration.ranges.push_back(found->second);
  }
  return calibration;
}

absl::Status CalibrationCache::Write(const Calibration& calibration) const {
  const absl::StatusOr<CalibrationCacheFile> old = ReadWhole();
  RangeOf ranges = old.ok() ? RangesOf(*old) : RangeOf();
  for (size_t i = 0; i < nodes_.size(); ++i) ranges[nodes_[i]] = calibration.ranges[i];
  CalibrationCacheFile file;
  *file.mutable_key() = key_;
  file.set_samples(calibration.samples);
  for (const auto& [node, range] : ranges) {
    auto* activation = file.add_activations();
    activation->set_node(node);
    activation->set_min(range.min);
    activation->set_max(range.max);
  }
  return passes::KeepMessage(path_, &file);
}

}  // namespace fuselage::quantize
