#include "tools/peers/cudnn/choice.h"

#include "absl/strings/str_cat.h"

namespace fuselage::peers::cudnn {

absl::StatusOr<int> Fastest(absl::Span<const absl::StatusOr<double>> times) {
  int fastest = -1;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].ok() && (fastest < 0 || *times[i] < *times[fastest])) fastest = static_cast<int>(i);
  }
  if (fastest >= 0) return fastest;
  const bool any = !times.empty() && !absl::IsNotFound(times[0].status());
  return absl::UnimplementedError(any ? absl::StrCat("no engine of cuDNN's ran it: ", times[0].status().message())
                                      : std::string("cuDNN has no engine for it"));
}

std::vector<std::string> Accidents(absl::Span<const absl::StatusOr<double>> times) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < times.size(); ++i) {
    const absl::Status& status = times[i].status();
    if (!absl::IsInternal(status) && !absl::IsDeadlineExceeded(status) && !absl::IsDataLoss(status)) continue;
    lines.push_back(absl::StrCat("candidate ", i, ": ", status.message()));
  }
  return lines;
}

}  // namespace fuselage::peers::cudnn
