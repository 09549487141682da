#include "ir/ops/core/elements.h"

#include "ir/base/status.h"
#include "ir/ops/core/checks.h"

namespace fuselage::ops {

absl::Status CheckElements(const ir::InferCall& call, int i, Elements elements) {
  RETURN_IF_ERROR(CheckNoCodes(call, i));
  const DType dtype = call.tensor(i).dtype;
  const bool is_bool = dtype == DType::kBool;
  switch (elements) {
    case Elements::kFloats: return CheckFloat(call, i);
    case Elements::kIntegers:
      return IsFloat(dtype) || is_bool ? OperandError(call, i, "wanted integers") : absl::OkStatus();
    case Elements::kNumbers: return is_bool ? OperandError(call, i, "wanted numbers") : absl::OkStatus();
    case Elements::kBool: return CheckDType(call, i, DType::kBool);
    case Elements::kAny: return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace fuselage::ops
