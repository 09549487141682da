// What a Status means to the shell.
#ifndef FUSELAGE_HARNESS_BASE_EXIT_CODE_H_
#define FUSELAGE_HARNESS_BASE_EXIT_CODE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/base/status.h"

namespace fuselage::harness {

enum ExitCode {
  kOk = 0,
  kGateFailed = 1,
  kUsage = 2,         // Flags or config.
  kInvalidInput = 3,  // Model or data.
  kUnsupported = 4,
  kResourceLimit = 5,
  kIo = 6,
  kInternalError = 70,  // EX_SOFTWARE of sysexits.h: a bug of ours.
  kInterrupted = 130,
};

// A run that went through and missed a gate of its config.
absl::Status GateError(absl::string_view message);

// Usage and gate errors first, then the code:
//   InvalidArgument, FailedPrecondition, OutOfRange                  3
//   Unimplemented                                                    4
//   ResourceExhausted                                                5
//   NotFound, PermissionDenied, Unavailable, AlreadyExists, DataLoss  6
//   Cancelled                                                        130
//   Internal, and all others                                         70
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_BASE_EXIT_CODE_H_
