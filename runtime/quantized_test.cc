// Networks that are quantized but not lowered, as ONNX files bring them, run on kernels alone.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/register_all.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using ir::Node;

class QuantizedTest : public ::testing::Test {
 protected:
  QuantizedTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
  }

  // No step by reference evaluation, none of `op` at all, and the interpreter's outputs but for `tolerance`.
  void ExpectOnKernels(const ir::Graph& graph, const std::string& absent_op, double tolerance) {
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      auto executable = Executable::Create(graph, kernels_, &pool);
      ASSERT_OK(executable);
      for (const StepProfile& step : (*executable)->profile()) {
        EXPECT_NE(step.variant, "reference") << "%" << step.node << " (" << step.op << ")";
        EXPECT_TRUE(absent_op.empty() || step.op != absent_op) << "%" << step.node;
      }
      const std::vector<Tensor> inputs = SeededInputs(graph);
      const auto wanted = interpreter::Run(graph, inputs);
      const auto found = RunOnce(**executable, inputs);
      ASSERT_OK(wanted);
      ASSERT_OK(found);
      for (size_t i = 0; i < wanted->size(); ++i) EXPECT_LE(RelativeError((*found)[i], (*wanted)[i]), tolerance);
    }
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
};

Tensor Codes(DType dtype, Shape shape, uint64_t seed) {
  return SeededTensor({dtype, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

// dequantize(quantize(x)).
Node* Rounded(GraphBuilder& g, Node* x, double scale, int64_t zero_point, DType dtype) {
  Node* codes =
      g.Call("quantize", {x}, {{"scales", Floats{scale}}, {"zero_points", Ints{zero_point}}, {"dtype", dtype}});
  return g.Call("dequantize", {codes});
}

Node* QdqConv(GraphBuilder& g, Node* x, int64_t channels, int64_t groups) {
  const int64_t in = x->tensor_type().shape[1] / groups;
  Floats scales, bias_scales;
  for (int64_t c = 0; c < channels; ++c) {
    scales.push_back(0.001 + 0.0001 * static_cast<double>(c));
    bias_scales.push_back(0.01 * scales.back());
  }
  Node* weight = g.Call("dequantize", {g.Constant(Codes(DType::kI8, {channels, in, 3, 3}, channels))},
                        {{"scales", scales}, {"axis", 0}});
  Node* bias = g.Call("dequantize", {g.Constant(Codes(DType::kI32, {channels}, channels))},
                      {{"scales", bias_scales}, {"axis", 0}});
  return g.Call("conv2d", {x, weight, bias}, {{"padding", Ints{1, 1, 1, 1}}, {"groups", groups}});
}

TEST_F(QuantizedTest, PairsAroundFloatLayers) {
  GraphBuilder g(ops_);
  Node* x = Rounded(g, g.Input({1, 3, 16, 16}), 0.01, 114, DType::kU8);
  x = Rounded(g, g.Call("relu", {QdqConv(g, x, 16, 1)}), 0.01, 0, DType::kU8);
  x = Rounded(g, g.Call("max_pool2d", {x}, {{"kernel_size", Ints{2, 2}}, {"stride", Ints{2, 2}}}), 0.01, -128,
              DType::kI8);
  Node* y = Rounded(g, QdqConv(g, x, 16, 16), 0.01, 3, DType::kI8);
  x = Rounded(g, g.Call("add", {x, y}), 0.02, 128, DType::kU8);
  x = Rounded(g, g.Call("pad", {x}, {{"pads", Ints{0, 0, 1, 1, 0, 0, 2, 2}}, {"mode", "reflect"}}), 0.02, 128,
              DType::kU8);
  x = g.Call("adaptive_avg_pool2d", {x}, {{"output_size", Ints{3, 3}}});
  x = Rounded(g, g.Call("mean", {x}, {{"dims", Ints{2, 3}}}), 0.005, 0, DType::kI16);
  Node* weight = g.Call("dequantize", {g.Constant(Codes(DType::kI8, {10, 16}, 9))}, {{"scales", Floats{0.01}}});
  // A code of difference where a float layer rounds otherwise.
  ExpectOnKernels(g.Output({g.Call("linear", {x, weight})}), "", 0.02);
}

TEST_F(QuantizedTest, NoRunDequantizesAWeight) {
  GraphBuilder g(ops_);
  Node* x = QdqConv(g, QdqConv(g, g.Input({1, 3, 9, 9}), 8, 1), 8, 8);
  Node* scale = g.Call("mul", {g.Constant(Shape{}), g.Constant(Shape{})});
  ExpectOnKernels(g.Output({g.Call("relu", {x}), g.Call("mul", {x, scale})}), "dequantize", 1e-5);
}

TEST_F(QuantizedTest, DynamicallyQuantizedLayers) {
  GraphBuilder g(ops_);
  // codes -> floats, by scales of activation and weight.
  const auto real = [&](Node* sums, Node* scale) {
    Node* both = g.Call("mul", {scale, g.Constant(Tensor::Scalar(0.01f))});
    return g.Call("mul", {g.Call("to", {sums}, {{"dtype", DType::kF32}}), both});
  };
  const auto quantized = [&](Node* x) {
    Node* all = g.Call("dynamic_quantize_asymmetric", {x});
    std::vector<Node*> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(g.Call("getitem", {all}, {{"index", i}}));
    return parts;
  };
  std::vector<Node*> q = quantized(g.Input({2, 3, 9, 9}));
  Node* weight = g.Constant(Codes(DType::kU8, {8, 3, 3, 3}, 5));
  Node* x = real(g.Call("conv_integer2d", {q[0], weight, q[2], g.Constant(Codes(DType::kU8, {8, 1, 1, 1}, 6))},
                        {{"padding", Ints{1, 1, 1, 1}}}),
                 q[1]);
  x = g.Call("mean", {g.Call("relu", {x})}, {{"dims", Ints{2, 3}}});
  q = quantized(x);
  Node* sums = g.Call("matmul_integer", {q[0], g.Constant(Codes(DType::kI8, {8, 10}, 7)), q[2]});
  Node* again = g.Call("dequantize", {q[0], q[1], q[2]});
  ExpectOnKernels(g.Output({real(sums, q[1]), again}), "", 1e-5);
}

}  // namespace
}  // namespace fuselage::runtime
