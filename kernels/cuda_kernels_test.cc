// What the CPU's INT8 kernels run, CUDA's run too, under the same rules for lowering.
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "kernels/register_all_cuda.h"

namespace fuselage::kernels {
namespace {

TEST(CudaKernels, AreThoseOfTheCpu) {
  KernelRegistry cpu, cuda;
  RegisterAll(cpu);
  RegisterAllCuda(cuda);
  int found = 0;
  for (const KernelEntry* entry : cpu.Sorted()) {
    if (!absl::StartsWith(entry->op, "int8.")) continue;
    ++found;
    const KernelEntry* other = cuda.FindOrNull(entry->op);
    ASSERT_NE(other, nullptr) << entry->op;
    EXPECT_EQ(other->layout, entry->layout) << entry->op;
  }
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace fuselage::kernels
