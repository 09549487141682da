#include "kernels/core/activate.h"
#include "kernels/core/avx512.h"

namespace fuselage::kernels {

void FUSELAGE_AVX512_VNNI::Activate(const ElementwiseInstruction& function, float* values, int64_t size) {
  const int64_t n = size & -kActivatedTogether;  // A multiple that the compiler sees: no loop for what is left over.
  const bool done = MapFrequent<Lanes>(function, [=](auto f) __attribute__((always_inline)) {
    for (int64_t i = 0; i < n; i += 16) _mm512_storeu_ps(values + i, f(_mm512_loadu_ps(values + i)));
  });
  if (!done) elementwise::Activate<IsFrequent>(function, values, values, n);
}

}  // namespace fuselage::kernels
