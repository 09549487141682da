// Ranges of activations, kept in a folder: the same graph, samples and method need no second calibration.
#ifndef FUSELAGE_PASSES_QUANTIZE_CALIBRATION_CACHE_H_
#define FUSELAGE_PASSES_QUANTIZE_CALIBRATION_CACHE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/quantize/calibration_cache.pb.h"
#include "passes/quantize/scales.h"

namespace fuselage::quantize {

struct Calibration {
  int samples = 0;
  std::vector<Range> ranges;  // By node.
};

// One file: <folder>/calibration-<fingerprint of key>.textproto, with the ranges of all nodes that were ever asked for.
class CalibrationCache {
 public:
  CalibrationCache(const std::string& folder, CalibrationCacheFile::Key key, std::vector<std::string> nodes);

  const CalibrationCacheFile::Key& key() const { return key_; }
  const std::string& path() const { return path_; }

  // NotFound: there is no such file, or it lacks one of the nodes. DataLoss says what is wrong with one that cannot be
  // believed.
  absl::StatusOr<Calibration> Read() const;

  // Makes the folder; a reader sees the whole file or none. `calibration` has a range for each node; what the file has
  // of other nodes stays.
  absl::Status Write(const Calibration& calibration) const;

 private:
  // The same errors, but for nodes that it lacks.
  absl::StatusOr<CalibrationCacheFile> ReadWhole() const;

  CalibrationCacheFile::Key key_;
  std::vector<std::string> nodes_;
  std::string path_;
};

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_CALIBRATION_CACHE_H_
