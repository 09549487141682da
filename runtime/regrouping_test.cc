// Which permutes between views need no other layout. Their bits are the interpreter's.
#include "runtime/regrouping.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/int8_graph_builder.h"

namespace fuselage::runtime {
namespace {

using ir::Node;
using Ints = std::vector<int64_t>;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RegroupingTest : public ::testing::Test {
 protected:
  RegroupingTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
  }

  // Codes of this many channels, in NHWC.
  Node* Codes(int64_t channels) { return g_.Conv(g_.Quantized({2, 4, 6, 5}), {.channels = channels, .relu = true}); }
  Node* Reshaped(Node* x, Ints shape) { return g_.Call("reshape", {x}, {{"shape", std::move(shape)}}); }
  Node* Permuted(Node* x, Ints dims) { return g_.Call("permute", {x}, {{"dims", std::move(dims)}}); }

  // Compiles what ends in `last`, and compares it with the interpreter. steps_: those between the two convolutions.
  void Compile(Node* last) {
    const ir::Graph& graph = g_.Output({g_.Conv(last, {.channels = 8, .relu = true})});
    const std::vector<Tensor> inputs = SeededInputs(graph);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      ASSERT_OK_AND_ASSIGN(const auto executable, Executable::Create(graph, kernels_, &pool));
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(*executable, inputs));
      EXPECT_TRUE(found[0].SameBytes(wanted[0]));
      steps_.clear();
      for (const StepProfile& step : executable->profile()) steps_.push_back(step.op);
    }
    const auto first = std::find(steps_.begin(), steps_.end(), "int8.conv2d");
    const auto second = std::find(first + 1, steps_.end(), "int8.conv2d");
    steps_ = {first + 1, second};
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  Int8GraphBuilder g_{ops_, DType::kU8};
  std::vector<std::string> steps_;
};

TEST_F(RegroupingTest, OfAShuffleIsOneStep) {
  Node* groups = Reshaped(Codes(40), {0, 2, 20, 6, 5});
  Node* shuffled = Permuted(groups, {0, 2, 1, -2, -1});
  Compile(g_.Call("flatten", {shuffled}, {{"start_dim", 1}, {"end_dim", 2}}));
  EXPECT_THAT(steps_, ElementsAre("permute"));
}

TEST_F(RegroupingTest, OfThreeAxes) {
  Node* groups = Reshaped(Codes(24), {2, 2, 3, 4, 6, 5});
  Compile(Reshaped(Permuted(groups, {0, 3, 1, 2, 4, 5}), {2, 24, 6, 5}));
  EXPECT_THAT(steps_, ElementsAre("permute"));
}

TEST_F(RegroupingTest, NotWhereAnotherReadsTheView) {
  Node* groups = Reshaped(Codes(12), {2, 3, 4, 6, 5});
  Node* shuffled = Reshaped(Permuted(groups, {0, 2, 1, 3, 4}), {2, 12, 6, 5});
  EXPECT_EQ(RegroupingsOf(g_.Output({shuffled})).size(), 1u);
  Permuted(groups, {0, 2, 1, 3, 4});
  EXPECT_THAT(RegroupingsOf(g_.graph()), IsEmpty());
}

TEST_F(RegroupingTest, OfDepthToSpaceIsOneStep) {
  Node* outer = Reshaped(Codes(24), {0, 2, 3, 4, 6, 5});
  Compile(Reshaped(Permuted(outer, {0, 3, 4, 1, 5, 2}), {0, 4, 12, 15}));
  EXPECT_THAT(steps_, ElementsAre("permute"));
}

TEST_F(RegroupingTest, OfDepthToSpaceByChannelsIsOneStep) {
  Node* inner = Reshaped(Codes(12), {0, 3, 2, 2, 6, 5});
  Compile(Reshaped(Permuted(inner, {0, 1, 4, 2, 5, 3}), {0, 3, 12, 10}));
  EXPECT_THAT(steps_, ElementsAre("permute"));
}

TEST_F(RegroupingTest, OfDepthToSpaceInGroupsIsOneStep) {
  Node* groups = Reshaped(Codes(16), {0, 2, 2, 1, 4, 6, 5});
  Compile(Reshaped(Permuted(groups, {0, 1, 4, 5, 2, 6, 3}), {0, 8, 12, 5}));
  EXPECT_THAT(steps_, ElementsAre("permute"));
}

TEST_F(RegroupingTest, OfSpaceToDepthIsOneStep) {
  Node* pixels = Reshaped(Codes(3), {0, 3, 3, 2, 5, 1});
  Compile(Reshaped(Permuted(pixels, {0, 3, 5, 1, 2, 4}), {0, 6, 3, 5}));
  EXPECT_THAT(steps_, ElementsAre("permute"));
}

TEST_F(RegroupingTest, NotOfRows) {
  Node* groups = Reshaped(Codes(12), {2, 3, 4, 6, 5});
  Compile(Reshaped(Permuted(groups, {0, 1, 3, 2, 4}), {2, 12, 6, 5}));
  EXPECT_THAT(steps_, Contains("reorder"));
}

TEST_F(RegroupingTest, NotAcrossPixelsAndChannels) {
  Node* rows = Reshaped(Codes(12), {0, 12, 2, 3, 5});
  Compile(Reshaped(Permuted(rows, {0, 2, 1, 3, 4}), {0, 8, 9, 5}));
  EXPECT_THAT(steps_, Contains("reorder"));
}

TEST_F(RegroupingTest, NotOfSeveralImages) {
  Node* images = Reshaped(Codes(12), {2, 12, 6, 5, 1});
  Compile(Reshaped(Permuted(images, {2, 1, 0, 3, 4}), {6, 12, 2, 5}));
  EXPECT_THAT(steps_, Contains("reorder"));
}

}  // namespace
}  // namespace fuselage::runtime
