#include "ir/ops/core/broadcast.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops {

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape shape(rank);
  for (size_t i = 0; i < rank; ++i) {  // From the right.
    const int64_t p = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t q = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (p != q && p != 1 && q != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", ToString(a), " and ", ToString(b), " do not broadcast: ", p, " against ", q));
    }
    shape[rank - 1 - i] = p == 1 ? q : p;
  }
  return shape;
}

std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to) {
  const std::vector<int64_t> own = RowMajorStrides(from);
  std::vector<int64_t> strides(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[lead + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

}  // namespace fuselage::ops
