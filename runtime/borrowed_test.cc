// Inputs and outputs may be a caller's memory (Tensor::Borrow): aligned for its elements alone, with nothing around it
// that a kernel may read or write. On random graphs, which hold every op.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/random_graph.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

// A copy of a tensor between two pages that fault, beside the one or the other.
Tensor Guarded(const Tensor& tensor, bool at_end) {
  const size_t page = sysconf(_SC_PAGESIZE), bytes = (tensor.byte_size() + page - 1) / page * page;
  const size_t size = bytes + 2 * page;
  void* const base = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FUSELAGE_CHECK(base != MAP_FAILED);
  const std::shared_ptr<const void> owner(base, [size](const void* begin) { munmap(const_cast<void*>(begin), size); });
  char* const middle = static_cast<char*>(base) + page;
  FUSELAGE_CHECK(bytes == 0 || mprotect(middle, bytes, PROT_READ | PROT_WRITE) == 0);
  char* const data = middle + (at_end ? bytes - tensor.byte_size() : 0);
  if (tensor.byte_size() > 0) std::memcpy(data, tensor.raw_data(), tensor.byte_size());
  return Tensor::Borrow(tensor.type(), data, owner);
}

TEST(BorrowedTest, NothingBesideIsReadOrWritten) {
  constexpr int kGraphs = 120;
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);
  ThreadPool pool(2);
  int ran = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    const std::unique_ptr<ir::Graph> graph = fuselage::testing::RandomGraph(seed, ops);
    for (const kernels::Isa isa : kernels::SupportedIsas()) {
      ExecutableOptions options;
      options.isa = isa;
      const auto executable = Executable::Create(*graph, kernels, &pool, options);
      if (!executable.ok()) continue;
      const std::vector<Tensor> inputs = SeededInputs(*graph);
      const absl::StatusOr<std::vector<Tensor>> wanted = RunOnce(**executable, inputs);
      if (!wanted.ok()) continue;  // Values that an op does not take.
      ++ran;
      for (const bool at_end : {false, true}) {
        std::vector<Tensor> read, written;
        std::vector<const Tensor*> read_pointers;
        std::vector<Tensor*> written_pointers;
        for (const Tensor& input : inputs) read.push_back(Guarded(input, at_end));
        for (const Tensor& output : *wanted) written.push_back(Guarded(Tensor(output.type()), at_end));
        for (const Tensor& tensor : read) read_pointers.push_back(&tensor);
        for (Tensor& tensor : written) written_pointers.push_back(&tensor);
        ASSERT_OK((*executable)->Run(read_pointers, written_pointers));
        for (size_t i = 0; i < written.size(); ++i) {
          EXPECT_TRUE(written[i].SameBytes((*wanted)[i])) << "seed " << seed << ", output " << i;
        }
      }
    }
  }
  EXPECT_GT(ran, kGraphs * static_cast<int>(kernels::SupportedIsas().size()) * 3 / 4);
}

}  // namespace
}  // namespace fuselage::runtime
