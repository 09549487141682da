#include "harness/base/exit_code.h"

#include "absl/strings/cord.h"

namespace fuselage::harness {
namespace {

// The frontends set the usage payload too (a dimension that a flag must bind).
constexpr absl::string_view kUsagePayload = "fuselage.usage";
constexpr absl::string_view kGatePayload = "fuselage.gate";

absl::Status WithPayload(absl::Status status, absl::string_view payload) {
  status.SetPayload(payload, absl::Cord("1"));
  return status;
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  return WithPayload(absl::InvalidArgumentError(message), kUsagePayload);
}

absl::Status GateError(absl::string_view message) {
  return WithPayload(absl::FailedPreconditionError(message), kGatePayload);
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kOk;
  if (status.GetPayload(kUsagePayload).has_value()) return kUsage;
  if (status.GetPayload(kGatePayload).has_value()) return kGateFailed;
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented: return kUnsupported;
    case absl::StatusCode::kResourceExhausted: return kResourceLimit;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss: return kIo;
    case absl::StatusCode::kCancelled: return kInterrupted;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange: return kInvalidInput;
    default: return kInternalError;
  }
}

}  // namespace fuselage::harness
