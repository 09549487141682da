#include "kernels/core/activate.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/core/isa.h"

namespace fuselage::kernels {
namespace {

// All magnitudes, both signs, and the ends.
std::vector<float> Operands() {
  std::vector<float> x = {0.0f, -0.0f, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()};
  for (float magnitude = 0x1p-140f; magnitude < 0x1p20f; magnitude *= 1.013f) {
    x.push_back(magnitude);
    x.push_back(-magnitude);
  }
  x.resize(x.size() / kActivatedTogether * kActivatedTogether);
  return x;
}

void ExpectActivatedBits(ActivateFunction* activate) {
  const std::vector<float> x = Operands();
  std::vector<ElementwiseOp> ops;
  for (const auto& activation : elementwise::kActivations) {
    ops.push_back(activation.op);
    if (activation.for_codes != activation.op) ops.push_back(activation.for_codes);
  }
  for (const ElementwiseOp op : ops) {
    const ElementwiseInstruction function{op, 0, 0, 0.3f, 0.4f};
    for (const int64_t size : {int64_t{0}, int64_t{16}, int64_t{48}, static_cast<int64_t>(x.size())}) {
      std::vector<float> y = x;
      activate(function, y.data(), size);
      for (size_t i = 0; i < x.size(); ++i) {
        const float wanted = static_cast<int64_t>(i) < size ? elementwise::Activated(function, x[i]) : x[i];
        ASSERT_EQ(std::memcmp(&y[i], &wanted, sizeof(float)), 0)
            << "op " << static_cast<int>(op) << " of " << x[i] << ": " << y[i] << ", wanted " << wanted;
      }
    }
  }
}

TEST(Activate, Avx2EqualsScalar) {
  if (!CpuSupports(Isa::kAvx2)) GTEST_SKIP() << "no AVX2";
  ExpectActivatedBits(avx2::Activate);
}
TEST(Activate, Avx512EqualsScalar) {
  if (!CpuSupports(Isa::kAvx512Vnni)) GTEST_SKIP() << "no AVX-512 VNNI";
  ExpectActivatedBits(avx512_vnni::Activate);
}
TEST(Activate, EmulatedEqualsScalar) { ExpectActivatedBits(avx512_vnni_emulated::Activate); }

}  // namespace
}  // namespace fuselage::kernels
