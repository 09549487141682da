// What loading a model may hold in memory at once.
#ifndef FUSELAGE_FRONTEND_ONNX_BUDGET_H_
#define FUSELAGE_FRONTEND_ONNX_BUDGET_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fuselage::onnx {

class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit > 0 ? limit : std::numeric_limits<int64_t>::max()) {}  // 0: no limit.

  // Call before the allocation. ResourceExhausted names `what`.
  absl::Status Charge(int64_t bytes, absl::string_view what) {
    if (bytes > limit_ - used_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what, " needs ", bytes, " bytes, wanted at most ", limit_ - used_, " (of ", limit_, " in all)"));
    }
    used_ += bytes;
    return absl::OkStatus();
  }
  void Release(int64_t bytes) { used_ -= bytes; }

  int64_t limit() const { return limit_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
};

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_BUDGET_H_
