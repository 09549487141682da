#include "harness/base/exit_code.h"

#include "absl/strings/cord.h"

namespace fuselage::harness {
namespace {

constexpr absl::string_view kGatePayload = "fuselage.gate";

}  // namespace

absl::Status GateError(absl::string_view message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kGatePayload, absl::Cord("1"));
  return status;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kOk;
  if (IsUsageError(status)) return kUsage;
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
