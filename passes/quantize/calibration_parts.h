// One calibration by all processes that share a folder: each observes those parts of the samples that no other does,
// and takes what the others saw from their files.
//
//   calibration-part-<fingerprint of key>.textproto         what was seen of one part, for good
//   calibration-part-<fingerprint of key>.textproto.claim   locked by the process that observes it
#ifndef FUSELAGE_PASSES_QUANTIZE_CALIBRATION_PARTS_H_
#define FUSELAGE_PASSES_QUANTIZE_CALIBRATION_PARTS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/core/remarks.h"
#include "passes/quantize/calibration_part.pb.h"

namespace fuselage::quantize {

// Calls `merge` with each of key.parts() parts once, as they come: from its file, or else from `observe`. Returns how
// many of them this process observed. Errors are those of the two functions; what is wrong with files is only noted.
absl::StatusOr<int> ShareParts(const std::string& folder, CalibrationPart::Key key,
                               const std::function<absl::StatusOr<CalibrationPart>(int part)>& observe,
                               const std::function<absl::Status(const CalibrationPart& part)>& merge,
                               passes::Remarks& remarks);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_CALIBRATION_PARTS_H_
