#include "passes/quantize/calibration_parts.h"

#include <chrono>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/claim.h"
#include "ir/base/status.h"
#include "passes/core/kept_message.h"

namespace fuselage::quantize {
namespace {

using passes::TextOf;

constexpr auto kPoll = std::chrono::milliseconds(50);

absl::StatusOr<CalibrationPart> Read(const std::string& path, const CalibrationPart::Key& key) {
  CalibrationPart part;
  RETURN_IF_ERROR(passes::ReadKeptMessage(path, &part));
  if (TextOf(part.key()) != TextOf(key)) return absl::DataLossError("it is about other data");
  return part;
}

}  // namespace

absl::StatusOr<int> ShareParts(const std::string& folder, CalibrationPart::Key key,
                               const std::function<absl::StatusOr<CalibrationPart>(int part)>& observe,
                               const std::function<absl::Status(const CalibrationPart& part)>& merge,
                               passes::Remarks& remarks) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);  // Where there is none, claims say so.
  int observed = 0;
  std::vector<int> open(key.parts());
  std::iota(open.begin(), open.end(), 0);
  while (true) {
    std::vector<int> elsewhere;
    for (const int number : open) {
      key.set_part(number);
      const std::string path =
          absl::StrCat(folder, "/calibration-part-", passes::TextFingerprint(TextOf(key)), ".textproto");
      const auto warn = [&](absl::string_view what, const absl::Status& why) {
        remarks.Process(absl::StrCat("warning: ", what, " ", path, ": ", why.message()));
      };
      absl::StatusOr<CalibrationPart> part = Read(path, key);
      if (!part.ok()) {
        const auto claim = Claim::Try(path + ".claim");
        if (claim.ok() && *claim == nullptr) {
          elsewhere.push_back(number);
          continue;
        }
        if (!claim.ok()) warn("not shared:", claim.status());
        part = Read(path, key);  // Of a process that let go of it between the look and the claim.
        if (absl::IsDataLoss(part.status())) warn("not used:", part.status());
        if (!part.ok()) {
          ASSIGN_OR_RETURN(part, observe(number));
          ++observed;
          *part->mutable_key() = key;
          const absl::Status kept = passes::KeepMessage(path, &*part);
          if (!kept.ok()) warn("not kept:", kept);
        }
      }
      RETURN_IF_ERROR(Annotate(merge(*part), path));
    }
    if (elsewhere.empty()) return observed;
    if (elsewhere.size() == open.size()) std::this_thread::sleep_for(kPoll);
    open = std::move(elsewhere);
  }
}

}  // namespace fuselage::quantize
