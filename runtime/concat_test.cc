// Which cats of channels are steps, and which are not because their operands are written in place. That the bits are
// the interpreter's on every instruction set is for int8_test.
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
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr Int8GraphBuilder::ConvParams kConv = {.channels = 8, .relu = true};

class ConcatTest : public ::testing::Test {
 protected:
  ConcatTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
  }

  Node* Cat(std::vector<Node*> parts) { return g_.Call("cat", std::move(parts), {{"dim", 1}}); }
  Node* Codes(Shape shape) { return g_.Conv(g_.Quantized(std::move(shape)), kConv); }
  // The same quantization, by a kernel that cannot write a slice.
  Node* Own(Node* x) { return g_.Call("int8.relu", {x}, g_.Out(0.05f, true)); }

  // Compiles what ends in `outputs`, and compares it with the interpreter.
  void Compile(std::vector<Node*> outputs) {
    const ir::Graph& graph = g_.Output(std::move(outputs));
    auto executable = Executable::Create(graph, kernels_, &pool_);
    ASSERT_OK(executable);
    executable_ = *std::move(executable);
    const std::vector<Tensor> inputs = SeededInputs(graph);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
    for (int round = 0; round < 2; ++round) {
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(*executable_, inputs));
      for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << "output " << i;
    }
  }

  // Bytes that each step of a cat reads and writes.
  std::vector<int64_t> CopiedBytes() const {
    std::vector<int64_t> copied;
    for (const StepProfile& step : executable_->profile()) {
      if (step.op == "cat") copied.push_back(step.bytes / 2);
    }
    return copied;
  }

  const StepProfile& StepOf(const Node* node) const {
    for (const StepProfile& step : executable_->profile()) {
      if (step.node == node->name()) return step;
    }
    FUSELAGE_CHECK(false);
  }

  // The names of the nodes whose results a node's step reads.
  std::vector<std::string> ReadBy(const Node* node) const {
    std::vector<std::string> names;
    for (const int step : StepOf(node).reads) names.push_back(executable_->profile()[step].node);
    return names;
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  Int8GraphBuilder g_{ops_, DType::kU8};
  ThreadPool pool_{2};
  std::unique_ptr<Executable> executable_;
};

TEST_F(ConcatTest, OfBranchesIsNoStep) {
  Node* x = Codes({2, 3, 9, 7});
  Node *a = g_.Conv(x, kConv), *b = g_.Conv(x, kConv), *pool = g_.MaxPool(Codes({2, 3, 17, 13}));
  Node* cat = Cat({a, b, pool});
  Node* reader = g_.Conv(cat, kConv);
  Compile({reader});
  EXPECT_THAT(CopiedBytes(), IsEmpty());
  EXPECT_EQ(StepOf(b).layout, "nhwc, in %" + cat->name() + " from channel 8");
  EXPECT_THAT(ReadBy(reader), UnorderedElementsAre(a->name(), b->name(), pool->name()));
  EXPECT_EQ(StepOf(pool).bytes, 2 * 8 * (17 * 13 + 9 * 7)) << "what a slice has, not what it lies in";
}

TEST_F(ConcatTest, CopiesWhatIsNotWrittenInPlace) {
  Node* x = Codes({1, 3, 9, 7});
  Node *a = g_.Conv(x, kConv), *own = Own(x);
  Compile({g_.Conv(Cat({a, own, a}), kConv)});
  EXPECT_THAT(CopiedBytes(), ElementsAre(8 * 9 * 7, 8 * 9 * 7));
}

TEST_F(ConcatTest, OfWhatLiesElsewhereIsOneStep) {
  Node* x = Codes({1, 3, 9, 7});
  Compile({g_.Conv(Cat({Own(x), Own(x)}), kConv)});
  EXPECT_THAT(CopiedBytes(), ElementsAre(2 * 8 * 9 * 7));
}

TEST_F(ConcatTest, CopiesInputsAndConstants) {
  const TensorType type = {DType::kU8, {1, 4, 5, 6}, PerTensor(0.05f, 0), Layout::kRowMajor};
  Node *in = g_.Input(type), *constant = g_.Constant(SeededTensor(type, 3));
  Compile({g_.Conv(Cat({in, in}), kConv), Cat({g_.Conv(in, kConv), in, constant})});
  EXPECT_THAT(CopiedBytes(), ElementsAre(2 * 4 * 5 * 6, 4 * 5 * 6, 4 * 5 * 6));
}

// Each holds the one before it; only the last takes memory, and their readers read slices of it.
TEST_F(ConcatTest, OfAChainIsNoStep) {
  std::vector<Node*> parts = {Codes({1, 3, 28, 28})};
  std::vector<Node*> floats;
  for (int i = 0; i < 6; ++i) {
    Node* all = parts.size() == 1 ? parts[0] : Cat(parts);
    floats.push_back(g_.Dequantize(all));
    parts.push_back(g_.Conv(all, kConv));
  }
  Node* reader = g_.Conv(Cat(parts), kConv);
  std::vector<Node*> outputs = {reader};
  outputs.insert(outputs.end(), floats.begin(), floats.end());
  Compile(outputs);
  EXPECT_THAT(CopiedBytes(), IsEmpty());
  EXPECT_THAT(ReadBy(floats[1]), UnorderedElementsAre(parts[0]->name(), parts[1]->name()));
  int wide = 0;
  for (const ArenaBlock& block : executable_->arena()) wide += !block.scratch && block.bytes >= 28 * 28 * 16;
  EXPECT_EQ(wide, 1);
}

TEST_F(ConcatTest, InsideAnother) {
  Node* x = Codes({1, 3, 9, 7});
  Node* inner = Cat({Own(x), g_.Conv(x, kConv)});
  Compile({g_.Conv(Cat({g_.Conv(x, kConv), inner}), kConv), g_.Dequantize(inner)});
  EXPECT_THAT(CopiedBytes(), ElementsAre(8 * 9 * 7));
}

// As a U-Net's decoder has it, of 16 channels in four phases.
TEST_F(ConcatTest, OfDepthToSpaceIsNoStep) {
  Node* x = Codes({2, 3, 9, 7});
  Node* skip = Codes({2, 3, 18, 14});
  const auto reshape = [&](Node* of, std::vector<int64_t> shape) {
    return g_.Call("reshape", {of}, {{"shape", std::move(shape)}});
  };
  Node* phases = g_.Conv(x, {.channels = 16, .relu = true});
  Node* moved = g_.Call("permute", {reshape(phases, {0, 1, 2, 2, 4, 9, 7})},
                        {{"dims", std::vector<int64_t>{0, 1, 4, 5, 2, 6, 3}}});
  Node* cat = Cat({skip, reshape(moved, {0, 4, 18, 14})});
  Compile({g_.Conv(cat, kConv)});
  EXPECT_THAT(CopiedBytes(), IsEmpty());
  EXPECT_EQ(StepOf(moved).layout, "nhwc, in %" + cat->name() + " from channel 8");
  EXPECT_EQ(StepOf(moved).bytes, 2 * 2 * 16 * 9 * 7);
}

TEST_F(ConcatTest, OfCropsIsNoStep) {
  const auto crop = [&](Node* of) {
    using Ints = std::vector<int64_t>;
    return g_.Call("slice", {of}, {{"axes", Ints{2, 3}}, {"starts", Ints{1, 1}}, {"ends", Ints{8, 6}}});
  };
  Node* in = g_.Input({DType::kU8, {1, 4, 9, 7}, PerTensor(0.05f, 0), Layout::kRowMajor});
  Node *a = g_.Conv(in, kConv), *whole = Cat({crop(g_.Conv(in, kConv)), crop(a)});
  Compile({g_.Conv(whole, kConv), g_.Conv(crop(in), kConv), g_.Dequantize(crop(whole))});
  EXPECT_THAT(CopiedBytes(), IsEmpty());
  EXPECT_EQ(StepOf(whole->operand(1)).layout, "nhwc, in %" + whole->name() + " from channel 8");
}

// A result of one pixel is the same in both layouts, and an output may share its memory.
TEST_F(ConcatTest, OfOnePixelIsAStep) {
  Node* x = Codes({1, 3, 9, 7});
  Compile({Cat({g_.GlobalAveragePool(x), g_.GlobalAveragePool(x)})});
  EXPECT_THAT(CopiedBytes(), ElementsAre(16));
}

}  // namespace
}  // namespace fuselage::runtime
