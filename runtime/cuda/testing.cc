#include "runtime/cuda/testing.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/testing/matchers.h"

namespace fuselage::runtime::cuda {

using Ints = std::vector<int64_t>;
using ir::Node;

const ir::Graph& ResidualNetwork(GraphBuilder& g, int64_t channels) {
  const AttributeMap out = {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}};
  const auto with = [&](AttributeMap attributes) {
    attributes.insert(out.begin(), out.end());
    return attributes;
  };
  const auto weight = [](Shape shape) {
    return SeededTensor({DType::kI8, shape, PerAxis(0, std::vector<float>(shape[0], 0.002f)), Layout::kRowMajor}, 1);
  };
  const AttributeMap padding = {{"padding", Ints{1, 1, 1, 1}}};
  Node* x = g.Call("int8.quantize", {g.Input({2, 3, 9, 7})}, out);
  Node* a = g.CallModule("int8.conv2d", {x}, with(padding), {{"weight", weight({channels, 3, 3, 3})}});
  Node* b = g.CallModule("int8.conv2d", {a, a}, with(padding), {{"weight", weight({channels, channels, 3, 3})}});
  Node* c = g.Call("int8.relu", {g.Call("int8.add", {a, b}, out)}, out);
  Node* d = g.Call("int8.max_pool2d", {c}, {{"kernel_size", Ints{2, 2}}, {"stride", Ints{2, 2}}});
  Node* logits = g.CallModule("int8.linear", {g.Call("flatten", {g.Call("int8.global_avg_pool", {d}, out)})},
                              {{"out_dtype", DType::kF32}}, {{"weight", weight({10, channels})}});
  return g.Output({logits, d, g.Call("int8.dequantize", {c})});
}

void ExpectMatchesInterpreter(const ir::Graph& graph, Executable& executable, uint64_t seed) {
  const std::vector<Tensor> inputs = SeededInputs(graph, seed);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(executable, inputs));
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << "output " << i;
}

}  // namespace fuselage::runtime::cuda
