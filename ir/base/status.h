// Propagation of absl::Status, in the usual two macros:
//
//   RETURN_IF_ERROR(Check(node));
//   ASSIGN_OR_RETURN(Tensor weight, LoadWeight(node));
//
// What each code means to a user, as the harness's exit code, is listed in harness/exit_code.h.
#ifndef FUSELAGE_IR_BASE_STATUS_H_
#define FUSELAGE_IR_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage {

// The same error with `context` and ": " before its message; OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// A mistake of who asks (an option, a flag, a config) and not of the data: InvalidArgument, with a payload that tells
// it from others.
absl::Status UsageError(absl::string_view message);
bool IsUsageError(const absl::Status& status);

}  // namespace fuselage

#define FUSELAGE_CONCAT_INNER(a, b) a##b
#define FUSELAGE_CONCAT(a, b) FUSELAGE_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                    \
  do {                                                 \
    absl::Status fuselage_status = (expression);       \
    if (!fuselage_status.ok()) return fuselage_status; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_INNER(FUSELAGE_CONCAT(fuselage_statusor_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_INNER(statusor, lhs, expression) \
  auto statusor = (expression);                           \
  if (!statusor.ok()) return statusor.status();           \
  lhs = std::move(statusor).value()

#endif  // FUSELAGE_IR_BASE_STATUS_H_
