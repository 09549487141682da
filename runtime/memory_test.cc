// What an executable takes: no more than 1.3 times its weights and the largest set of activations that live at once,
// which is the limit that the project sets itself, and no more than it says.
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/int8_graph_builder.h"

namespace fuselage::runtime {
namespace {

int64_t ParameterBytes(const ir::Graph& graph) {
  int64_t bytes = 0;
  for (const auto& [name, parameter] : graph.parameters()) bytes += parameter.tensor->byte_size();
  return bytes;
}

// The most bytes of the values between the graph's inputs and outputs, each alive from its node to its last user;
// counted on the graph, so that nothing of the runtime's own plan is taken for granted.
int64_t LargestLiveActivations(const ir::Graph& graph) {
  std::map<const ir::Node*, int> position;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    position.emplace(node, static_cast<int>(position.size()));
  }
  std::vector<int64_t> live(position.size(), 0);
  for (const auto& [node, first] : position) {
    if (!node->is_call()) continue;
    int last = first;
    for (const ir::Node* user : node->users()) last = std::max(last, position[user]);
    for (int i = first; i <= last; ++i) live[i] += node->tensor_type().byte_size();
  }
  return *std::max_element(live.begin(), live.end());
}

class MemoryTest : public ::testing::Test {
 protected:
  MemoryTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
  }
  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
};

TEST_F(MemoryTest, WithinItsLimitOnResNet18) {
  for (int batch : {1, 4}) {
    Int8GraphBuilder builder(ops_, DType::kU8);
    const ir::Graph& graph = builder.Output({builder.ResNet18(batch, 1000)});
    const int64_t weights = ParameterBytes(graph), activations = LargestLiveActivations(graph);
    // 11.7 M parameters in one byte each; the stem's output, 64 x 112 x 112 codes, beside its input or what is pooled.
    EXPECT_EQ(weights, 11678912 + 4 * (4800 + 1000));
    EXPECT_EQ(activations, batch * (64 * 112 * 112 + 64 * 56 * 56));
    for (const kernels::Isa isa : kernels::SupportedIsas()) {
      for (int threads : {1, 2}) {
        ThreadPool pool(threads);
        ExecutableOptions options;
        options.isa = isa;
        ASSERT_OK_AND_ASSIGN(const auto executable, Executable::Create(graph, kernels_, &pool, options));
        const int64_t packed = executable->weight_bytes();
        SCOPED_TRACE(absl::StrCat(kernels::IsaName(isa), ", batch ", batch, ", ", threads, " threads"));
        EXPECT_LE(packed + executable->arena_bytes(), 1.3 * (packed + activations));
        EXPECT_LE(packed, 2 * weights) << "two bytes at most: of AVX2's products, of Winograd's transforms";
      }
    }
  }
}

// In bytes, from /proc/self/status.
int64_t ProcessBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return 1024 * std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

TEST_F(MemoryTest, TheProcessTakesWhatTheExecutableSays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes memory for itself";
#endif
  Int8GraphBuilder builder(ops_, DType::kU8);
  const ir::Graph& graph = builder.Output({builder.ResNet18(1, 1000)});
  const std::vector<Tensor> inputs = SeededInputs(graph);
  ThreadPool pool(1);
  {  // The pages of the code that runs are the process's, not the executable's.
    ASSERT_OK_AND_ASSIGN(const auto first, Executable::Create(graph, kernels_, &pool));
    EXPECT_OK(RunOnce(*first, inputs).status());
  }
  malloc_trim(0);                                 // What was freed so far would be taken again unseen.
  std::ofstream("/proc/self/clear_refs") << "5";  // The peak begins anew: proc(5).
  const int64_t before = ProcessBytes("VmRSS");
  ASSERT_OK_AND_ASSIGN(const auto executable, Executable::Create(graph, kernels_, &pool));
  for (int run = 0; run < 3; ++run) EXPECT_OK(RunOnce(*executable, inputs).status());
  const double said = static_cast<double>(executable->weight_bytes() + executable->arena_bytes());
  EXPECT_NEAR(static_cast<double>(ProcessBytes("VmHWM") - before), said, 0.1 * said);
}

}  // namespace
}  // namespace fuselage::runtime
