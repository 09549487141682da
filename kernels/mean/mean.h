// mean over any axes, and adaptive_avg_pool1d..3d (adaptive.h), of f32 in either layout.
//
// A mean is the sum in double, in the row-major order of the elements that it is of, divided by their number and
// rounded once: the reference's bits (ir/ops/reduce), on every instruction set and number of threads. Vectors and
// independent sums run across results, never within one.
#ifndef FUSELAGE_KERNELS_MEAN_MEAN_H_
#define FUSELAGE_KERNELS_MEAN_MEAN_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::mean {

constexpr int kMostAxes = 8;

struct Loop {
  int64_t size, stride;  // In elements.
};

// Result i of a row of them is the mean over the loops, outermost first, from x[i * result_stride].
struct Params {
  Loop loops[kMostAxes];
  int32_t num_loops = 0;
  int64_t count = 0;  // The product of their sizes.
  int64_t result_stride = 0;
};

// n results.
using Function = void(const Params& params, const float* x, float* y, int64_t n);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

namespace scalar {
Function Run;
}
namespace avx2 {
Function Run;
}
namespace avx512_vnni {
Function Run;
}
namespace avx512_vnni_emulated {  // Linked into tests only.
Function Run;
}

}  // namespace fuselage::mean

#endif  // FUSELAGE_KERNELS_MEAN_MEAN_H_
