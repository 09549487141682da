#include "gtest/gtest.h"
#include "kernels/core/isa.h"

namespace fuselage::kernels {
namespace {

TEST(Isa, AgreesWithTheCompilersDetection) {
  EXPECT_EQ(CpuSupports(Isa::kAvx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(CpuSupports(Isa::kAvx512Vnni), __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
                                               __builtin_cpu_supports("avx512vl") &&
                                               __builtin_cpu_supports("avx512dq"));
}

}  // namespace
}  // namespace fuselage::kernels
