#include "ir/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace fuselage {
namespace {

constexpr absl::string_view kUsagePayload = "fuselage.usage";

}  // namespace

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsagePayload, absl::Cord("1"));
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsagePayload).has_value(); }

}  // namespace fuselage
