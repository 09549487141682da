// What a file from outside may ask for, whatever its format: memory, nodes, numbers.
#ifndef FUSELAGE_IR_BASE_BUDGET_H_
#define FUSELAGE_IR_BASE_BUDGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/base/tensor.h"

namespace fuselage {

inline constexpr int64_t kMostImportedNodes = 1 << 20;

struct ImportOptions {
  // Bound on what loading holds at once: the file, its parsed form, weights and folded constants, and on any one
  // intermediate value of the graph. 0: no limit.
  int64_t max_memory_bytes = int64_t{8} << 30;
  // Accepts NaN and infinity in weights, with a warning each.
  bool allow_nonfinite = false;
  // Where not null, receives what the user should know though it is no error.
  std::vector<std::string>* warnings = nullptr;
};

// What loading a model may hold in memory at once.
class Budget {
 public:
  explicit Budget(int64_t limit);  // 0: no limit.

  // Call before the allocation. ResourceExhausted names `what`.
  absl::Status Charge(int64_t bytes, absl::string_view what);
  void Release(int64_t bytes) { used_ -= bytes; }
  // For a value that a run will hold, and loading does not. ResourceExhausted names `what`.
  absl::Status CheckValue(const TensorType& type, absl::string_view what) const;

  int64_t limit() const { return limit_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
};

// InvalidArgument, or where the options say so a warning, that begins with `what` and names the first element of a
// float tensor that is NaN or infinite. A single infinity is meant: what a causal mask writes, or the bound of a clamp.
absl::Status CheckFinite(const Tensor& tensor, absl::string_view what, const ImportOptions& options);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_BUDGET_H_
