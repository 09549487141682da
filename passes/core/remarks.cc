#include "passes/core/remarks.h"

#include "absl/strings/str_cat.h"

namespace fuselage::passes {

absl::string_view RemarkKindName(RemarkKind kind) {
  constexpr absl::string_view kNames[] = {"applied", "missed", "note", "process"};
  return kNames[static_cast<int>(kind)];
}

int Remarks::CountApplied() const {
  int count = 0;
  for (const Remark& remark : list_) count += remark.kind == RemarkKind::kApplied;
  return count;
}

std::string Remarks::ToString() const {
  std::string text;
  for (const Remark& remark : list_) {
    absl::StrAppend(&text, remark.pass, ": ", RemarkKindName(remark.kind), remark.node.empty() ? "" : " %", remark.node,
                    ": ", remark.message, "\n");
  }
  return text;
}

}  // namespace fuselage::passes
