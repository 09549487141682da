// For tests of machines without AVX-512: its sources through SIMDe.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_EMULATED_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_EMULATED_H_

#include "kernels/reproducible/primitives.h"

namespace fuselage::reproducible {

// For RegisterWith: as a scalar row, which every machine runs.
inline Primitives EmulatedAvx512() {
  namespace emulated = avx512_vnni_emulated;
  return {"emulated avx512_vnni",
          kernels::Isa::kScalar,
          kAvx512Rows,
          kAvx512Columns,
          emulated::Tile,
          emulated::Depthwise,
          emulated::Exponentials,
          kernels::avx512_vnni_emulated::Activate};
}

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_EMULATED_H_
