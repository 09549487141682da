#include "kernels/core/avx512.h"
#include "kernels/recurrent/loops.h"

namespace fuselage::recurrent {

void FUSELAGE_AVX512_VNNI::Multiply(const float* x, int64_t stride, int64_t rows, const float* panel, int64_t depth,
                                    Initial initial, float* sums) {
  MultiplyLoop<6>(x, stride, rows, panel, depth, initial, sums);
}

void FUSELAGE_AVX512_VNNI::Activate(Activation activation, float alpha, float beta, float* x, int64_t n) {
  ActivateLoop(activation, alpha, beta, x, n);
}

}  // namespace fuselage::recurrent
