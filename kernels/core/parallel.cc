#include "kernels/core/parallel.h"

#include <algorithm>

namespace fuselage::kernels {

void ForRanges(Parallel& parallel, int64_t n, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const int64_t grains = (n + grain - 1) / grain;
  const int64_t tasks = std::min<int64_t>(parallel.threads(), grains);
  if (tasks <= 1) return body(0, n);
  parallel.For(static_cast<int>(tasks), [&](int task, int) {
    const int64_t begin = grains * task / tasks * grain;
    const int64_t end = std::min(n, grains * (task + 1) / tasks * grain);
    body(begin, end);
  });
}

}  // namespace fuselage::kernels
