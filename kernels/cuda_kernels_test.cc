// What the CPU's INT8 kernels run, CUDA's run too, under the same rules for lowering. Recurrent layers run on the CPU
// alone, in floats too.
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"
#include "kernels/register_all_cuda.h"

namespace fuselage::kernels {
namespace {

const char* FloatRecurrentOrNull(absl::string_view op) {
  for (const char* of : {"rnn", "gru", "lstm"}) {
    if (absl::StripPrefix(op, "int8.") == of) return of;
  }
  return nullptr;
}

TEST(CudaKernels, AreThoseOfTheCpu) {
  KernelRegistry cpu, cuda;
  RegisterAll(cpu);
  RegisterAllCuda(cuda);
  int found = 0;
  for (const KernelEntry* entry : cpu.Sorted()) {
    if (!absl::StartsWith(entry->op, "int8.")) continue;
    ++found;
    const KernelEntry* other = cuda.FindOrNull(entry->op);
    if (const char* of = FloatRecurrentOrNull(entry->op)) {
      EXPECT_EQ(other, nullptr) << entry->op;
      EXPECT_EQ(cuda.FindOrNull(of), nullptr) << of;
      continue;
    }
    ASSERT_NE(other, nullptr) << entry->op;
    EXPECT_EQ(other->layout, entry->layout) << entry->op;
  }
  EXPECT_GT(found, 10);
}

}  // namespace
}  // namespace fuselage::kernels
