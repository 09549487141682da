// A run allocates nothing: not from the heap through malloc, nor through operator new.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <atomic>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Sanitizers replace malloc themselves; this test then counts nothing, and skips.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* data, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* data, size_t bytes) {
  ++allocations;
  return __libc_realloc(data, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** data, size_t alignment, size_t bytes) {
  *data = memalign(alignment, bytes);
  return *data == nullptr ? ENOMEM : 0;
}
}
#endif

namespace fuselage::runtime {
namespace {

using Ints = std::vector<int64_t>;
using ir::Node;

int64_t AllocationsOfRun(Executable& executable, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> input_pointers;
  for (const Tensor& input : inputs) input_pointers.push_back(&input);
  std::vector<Tensor> outputs(executable.output_types().begin(), executable.output_types().end());
  std::vector<Tensor*> output_pointers;
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  EXPECT_OK(executable.Run(input_pointers, output_pointers));  // Whatever libraries set up once.
  const int64_t before = allocations;
  const absl::Status status = executable.Run(input_pointers, output_pointers);
  const int64_t counted = allocations - before;
  EXPECT_OK(status);
  return counted;
}

TEST(Allocation, IsCounted) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer owns malloc";
  const int64_t before = allocations;
  std::vector<std::string> values(100);
  EXPECT_GT(allocations, before);
}

TEST(Allocation, NoneInARun) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer owns malloc";
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  kernels::KernelRegistry kernels;
  kernels::RegisterAll(kernels);

  GraphBuilder g(ops);
  const AttributeMap out = {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}};
  const auto with = [&](AttributeMap attributes) {
    attributes.insert(out.begin(), out.end());
    return attributes;
  };
  const auto weight = [](Shape shape) {
    return SeededTensor({DType::kI8, shape, PerAxis(0, std::vector<float>(shape[0], 0.002f)), Layout::kRowMajor}, 1);
  };
  const AttributeMap window = {{"kernel_size", Ints{2, 2}}, {"stride", Ints{2, 2}}};
  Node* x = g.Call("int8.quantize", {g.Input({2, 3, 32, 32})}, out);
  Node* a =
      g.CallModule("int8.conv2d", {x}, with({{"padding", Ints{1, 1, 1, 1}}}), {{"weight", weight({16, 3, 3, 3})}});
  Node* b = g.CallModule("int8.conv2d", {a, a}, with({{"padding", Ints{1, 1, 1, 1}}, {"activation", "relu"}}),
                         {{"weight", weight({16, 16, 3, 3})}});
  Node* c = g.Call("int8.relu", {g.Call("int8.add", {a, b}, out)}, out);
  Node* d = g.Call("int8.avg_pool2d", {g.Call("int8.max_pool2d", {c}, window)}, with(window));
  Node* logits = g.CallModule("int8.linear", {g.Call("flatten", {g.Call("int8.global_avg_pool", {d}, out)})},
                              {{"out_dtype", DType::kF32}}, {{"weight", weight({10, 16})}});
  Node* stem =
      g.CallModule("int8.conv2d_max_pool2d", {x}, with({{"pool_kernel_size", Ints{3, 3}}, {"pool_stride", Ints{2, 2}}}),
                   {{"weight", weight({16, 3, 3, 3})}});
  Node* head =
      g.CallModule("int8.global_avg_pool_linear", {stem}, {{"out_dtype", DType::kF32}}, {{"weight", weight({10, 16})}});
  const ir::Graph& graph = g.Output({logits, head, d, g.Call("int8.dequantize", {c}), g.Call("flatten", {d})});

  for (kernels::Isa isa : {kernels::Isa::kScalar, kernels::BestIsa()}) {
    for (int threads : {1, 2}) {
      ThreadPool pool(threads);
      ExecutableOptions options;
      options.isa = isa;
      ASSERT_OK_AND_ASSIGN(auto executable, Executable::Create(graph, kernels, &pool, options));
      EXPECT_GE(CountSteps(*executable, "reorder"), 1);
      EXPECT_EQ(AllocationsOfRun(*executable, SeededInputs(graph)), 0)
          << kernels::IsaName(isa) << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace fuselage::runtime
