// What the CPU's INT8 kernels run, CUDA's run too, under the same rules for lowering; but for what is named here.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
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
  std::vector<std::string> missing;
  for (const KernelEntry* entry : cpu.Sorted()) {
    if (!absl::StartsWith(entry->op, "int8.")) continue;
    ++found;
    const KernelEntry* other = cuda.FindOrNull(entry->op);
    if (other == nullptr) {
      missing.push_back(entry->op);
    } else {
      EXPECT_EQ(other->layout, entry->layout) << entry->op;
    }
  }
  EXPECT_THAT(missing, ::testing::ElementsAre("int8.attention", "int8.linear_mxfp4", "int8.matmul"));
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace fuselage::kernels
