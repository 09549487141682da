// The FP32 kernels against the ops' reference evaluation, through small graphs.
#include "kernels/fp32/fp32.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/fused_elementwise/fused_elementwise.h"
#include "kernels/register_all_reproducible.h"
#include "kernels/reproducible/emulated.h"
#include "kernels/reproducible/reproducible.h"
#include "runtime/executable.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

using Ints = std::vector<int64_t>;
using ir::Node;

constexpr double kTolerance = 1e-5;

struct Case {
  std::string name;
  std::function<Node*(GraphBuilder&)> build;
  std::string variant = "onednn";  // What the variant of the result's step begins with.
};

AttributeMap ConvAttributes(Ints stride, Ints padding, Ints dilation = {1, 1}, int64_t groups = 1,
                            std::string activation = "none") {
  return {{"stride", std::move(stride)},
          {"padding", std::move(padding)},
          {"dilation", std::move(dilation)},
          {"groups", groups},
          {"activation", std::move(activation)}};
}

Tensor Seeded(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

std::vector<Case> ConvCases() {
  return {
      {"conv_plain",
       [](GraphBuilder& g) {
         return g.Call("conv2d", {g.Input({2, 5, 9, 7}), g.Constant({6, 5, 3, 3})});
       }},
      {"conv_bias_asymmetric",
       [](GraphBuilder& g) {
         return g.Call("conv2d", {g.Input({1, 3, 17, 13}), g.Constant({16, 3, 7, 7}), g.Constant({16})},
                       ConvAttributes({2, 2}, {3, 2, 1, 4}));
       }},
      {"conv_of_a_column",
       [](GraphBuilder& g) {
         return g.Call("conv2d",
                       {g.Input({2, 8, 33, 1}), g.Constant({6, 4, 5, 1}), g.Constant({6}), g.Input({2, 6, 17, 1})},
                       ConvAttributes({2, 3}, {1, 0, 3, 0}, {1, 1}, 2, "relu"));
       }},
      {"conv_dilated_grouped_relu",
       [](GraphBuilder& g) {
         return g.Call("conv2d", {g.Input({1, 8, 12, 12}), g.Constant({12, 2, 3, 2}), g.Constant({12})},
                       ConvAttributes({1, 2}, {2, 1, 2, 1}, {2, 1}, 4, "relu"));
       }},
      {"conv_depthwise",
       [](GraphBuilder& g) {
         return g.Call("conv2d", {g.Input({2, 24, 10, 10}), g.Constant({24, 1, 3, 3}), g.Constant({24})},
                       ConvAttributes({2, 2}, {1, 1, 1, 1}, {1, 1}, 24));
       }},
      {"conv_residual_relu",
       [](GraphBuilder& g) {
         Node* x = g.Input({2, 16, 8, 8});
         return g.Call("conv2d", {x, g.Constant({16, 16, 3, 3}), g.Constant({16}), g.Call("tanh", {x})},
                       ConvAttributes({1, 1}, {1, 1, 1, 1}, {1, 1}, 1, "relu"));
       }},
      {"conv_residual_without_bias",
       [](GraphBuilder& g) {
         Node* x = g.Input({1, 7, 5, 5});
         return g.Call("conv2d", {x, g.Constant({7, 7, 1, 1}), nullptr, x});
       }},
      {"conv_module_quantized_weight",
       [](GraphBuilder& g) {
         TensorType weight{DType::kI8, {4, 3, 3, 3}, PerAxis(0, {0.01f, 0.02f, 0.03f, 0.04f}), Layout::kRowMajor};
         return g.CallModule("conv2d", {g.Input({1, 3, 6, 6})}, {{"padding", Ints{1, 1, 1, 1}}},
                             {{"weight", SeededTensor(weight, 1)}, {"bias", Seeded({4}, 2)}});
       }},
      {"conv1d",
       [](GraphBuilder& g) {
         return g.Call("conv1d", {g.Input({2, 4, 19}), g.Constant({3, 4, 5})});
       }},
      {"conv3d",
       [](GraphBuilder& g) {
         return g.Call("conv3d", {g.Input({1, 2, 5, 6, 7}), g.Constant({3, 2, 2, 3, 2})});
       }},
      {"conv3d_residual_relu",  // What is copied to another layout, or is one in any.
       [](GraphBuilder& g) {
         Node* x = g.Input({2, 24, 3, 6, 7});
         return g.Call("conv3d", {x, g.Constant({24, 24, 3, 3, 3}), g.Constant({24}), x},
                       ConvAttributes({1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1, "relu"));
       }},
      {"conv3d_residual_of_one_pixel",
       [](GraphBuilder& g) {
         Node* x = g.Input({3, 1, 1, 1, 1});
         return g.Call("conv3d", {x, g.Constant({1, 1, 1, 1, 1}), nullptr, x});
       }},
      {"conv3d_depthwise",
       [](GraphBuilder& g) {
         return g.Call("conv3d", {g.Input({1, 20, 4, 5, 6}), g.Constant({20, 1, 3, 3, 3}), g.Constant({20})},
                       ConvAttributes({1, 2, 2}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 20));
       }},
      {"conv_transpose3d",
       [](GraphBuilder& g) {
         return g.Call("conv_transpose3d", {g.Input({1, 16, 3, 4, 5}), g.Constant({16, 8, 3, 2, 3}), g.Constant({8})},
                       {{"stride", Ints{2, 2, 1}}, {"padding", Ints{1, 0, 1, 1, 0, 1}}});
       }},
      {"conv_transpose",
       [](GraphBuilder& g) {
         return g.Call("conv_transpose2d", {g.Input({2, 6, 5, 4}), g.Constant({6, 5, 3, 2}), g.Constant({5})},
                       {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0, 0, 1}}, {"output_padding", Ints{1, 0}}});
       }},
      {"conv_transpose_grouped_dilated",
       [](GraphBuilder& g) {
         return g.Call("conv_transpose2d", {g.Input({1, 6, 5, 5}), g.Constant({6, 2, 3, 3})},
                       {{"stride", Ints{2, 2}}, {"dilation", Ints{2, 2}}, {"groups", 3}});
       }},
  };
}

std::vector<Case> LinearCases() {
  return {
      {"linear",
       [](GraphBuilder& g) {
         return g.Call("linear", {g.Input({3, 40}), g.Constant({10, 40}), g.Constant({10})});
       }},
      {"linear_relu_rank3",
       [](GraphBuilder& g) {
         return g.Call("linear", {g.Input({2, 5, 17}), g.Constant({9, 17})}, {{"activation", "relu"}});
       }},
      {"matmul2",
       [](GraphBuilder& g) {
         return g.Call("matmul", {g.Input({7, 11}), g.Input({11, 5})});
       }},
      {"matmul_constant",
       [](GraphBuilder& g) {
         return g.Call("matmul", {g.Input({7, 11}), g.Constant({11, 5})});
       }},
      {"matmul3",
       [](GraphBuilder& g) {
         return g.Call("matmul", {g.Input({3, 7, 11}), g.Input({3, 11, 5})});
       }},
      {"matmul_broadcast",
       [](GraphBuilder& g) {
         return g.Call("matmul", {g.Input({3, 7, 11}), g.Input({11, 5})});
       }},
      {"gemm_bias_relu",
       [](GraphBuilder& g) {
         return g.Call("gemm", {g.Input({7, 11}), g.Input({11, 5}), g.Input({5})}, {{"activation", "relu"}});
       }},
      {"gemm_transposed",
       [](GraphBuilder& g) {
         return g.Call("gemm", {g.Input({11, 7}), g.Input({5, 11}), g.Input({1, 5})},
                       {{"trans_a", true}, {"trans_b", true}});
       }},
      {"gemm_full_c",
       [](GraphBuilder& g) {
         return g.Call("gemm", {g.Input({7, 11}), g.Input({11, 5}), g.Input({7, 5})});
       },
       "reference"},
  };
}

AttributeMap PoolAttributes(Ints kernel, Ints stride, Ints padding, bool ceil_mode = false) {
  return {{"kernel_size", std::move(kernel)},
          {"stride", std::move(stride)},
          {"padding", std::move(padding)},
          {"ceil_mode", ceil_mode}};
}

std::vector<Case> PoolCases() {
  return {
      {"max_pool",
       [](GraphBuilder& g) {
         return g.Call("max_pool2d", {g.Input({2, 9, 12, 11})}, PoolAttributes({3, 3}, {2, 2}, {1, 1, 1, 1}));
       }},
      {"max_pool_ceil",
       [](GraphBuilder& g) {
         return g.Call("max_pool2d", {g.Input({1, 4, 12, 12})}, PoolAttributes({3, 3}, {2, 2}, {0, 0, 0, 0}, true));
       }},
      {"max_pool_dilated",
       [](GraphBuilder& g) {
         AttributeMap attributes = PoolAttributes({2, 3}, {1, 1}, {1, 0, 0, 2});
         attributes.insert({"dilation", Ints{2, 2}});
         return g.Call("max_pool2d", {g.Input({1, 4, 9, 9})}, attributes);
       }},
      {"max_pool_steps_over_the_input",
       [](GraphBuilder& g) {
         AttributeMap attributes = PoolAttributes({2, 2}, {1, 1}, {1, 0, 1, 0});
         attributes.insert({"dilation", Ints{3, 1}});
         return g.Call("max_pool2d", {g.Input({1, 4, 2, 5})}, attributes);
       },
       "reference"},
      {"max_pool1d",
       [](GraphBuilder& g) {
         return g.Call("max_pool1d", {g.Input({2, 3, 15})}, PoolAttributes({3}, {2}, {1, 1}));
       }},
      {"avg_pool_exclude",
       [](GraphBuilder& g) {
         return g.Call("avg_pool2d", {g.Input({2, 8, 10, 10})}, PoolAttributes({3, 3}, {2, 2}, {1, 1, 1, 1}));
       }},
      {"avg_pool_include",
       [](GraphBuilder& g) {
         AttributeMap attributes = PoolAttributes({3, 2}, {2, 1}, {1, 0, 1, 1});
         attributes.insert({"count_include_pad", true});
         return g.Call("avg_pool2d", {g.Input({1, 3, 9, 10})}, attributes);
       }},
      {"avg_pool_ceil",
       [](GraphBuilder& g) {
         return g.Call("avg_pool2d", {g.Input({1, 5, 12, 12})}, PoolAttributes({3, 3}, {2, 2}, {0, 0, 0, 0}, true));
       }},
      {"avg_pool_ceil_include",
       [](GraphBuilder& g) {
         AttributeMap attributes = PoolAttributes({3, 3}, {2, 2}, {0, 0, 0, 0}, true);
         attributes.insert({"count_include_pad", true});
         return g.Call("avg_pool2d", {g.Input({1, 5, 12, 12})}, attributes);
       },
       "reference"},
      {"global_avg_pool",
       [](GraphBuilder& g) {
         return g.Call("global_avg_pool", {g.Input({2, 19, 7, 5})});
       }},
  };
}

// The variant of a kernel of our own on this machine.
std::string Own() {
  return std::string(kernels::IsaName(kernels::CpuSupports(kernels::Isa::kAvx512Vnni) ? kernels::Isa::kAvx512Vnni
                                      : kernels::CpuSupports(kernels::Isa::kAvx2)     ? kernels::Isa::kAvx2
                                                                                      : kernels::Isa::kScalar));
}

std::vector<Case> ElementwiseCases() {
  // Runs on the kernels that do what oneDNN does not.
  const std::string own = Own();
  std::vector<Case> cases;
  for (const char* op : {"relu", "sigmoid", "tanh", "hardswish", "silu", "gelu", "leaky_relu"}) {
    cases.push_back({op, [op](GraphBuilder& g) {
                       // Wide enough for every piece of a piecewise function.
                       Node* x = g.Call("mul", {g.Input({2, 3, 5, 7}), g.Constant(Tensor::Scalar(8.0f))});
                       return g.Call(op, {x});
                     }});
  }
  const auto unary = [&](const char* name, const char* op, AttributeMap attributes,
                         const std::string& variant = "onednn") {
    cases.push_back({name,
                     [op, attributes](GraphBuilder& g) {
                       Node* x = g.Call("mul", {g.Input({3, 65}), g.Constant(Tensor::Scalar(8.0f))});
                       return g.Call(op, {x}, attributes);
                     },
                     variant});
  };
  unary("leaky_slope", "leaky_relu", {{"negative_slope", 0.3}});
  unary("gelu_tanh", "gelu", {{"approximate", "tanh"}});
  unary("relu6", "clamp", {{"min", 0.0}, {"max", 6.0}});
  unary("clamp_min", "clamp", {{"min", -0.5}});
  unary("clamp_all", "clamp", {});
  unary("hardsigmoid", "hardsigmoid", {}, own);
  unary("hardsigmoid_steep", "hardsigmoid", {{"alpha", 0.5}, {"beta", 0.25}}, own);

  for (const char* op : {"add", "sub", "mul", "div"}) {
    const auto divisor = [](GraphBuilder& g, Node* x) {  // Away from 0.
      return g.Call("add", {g.Call("relu", {x}), g.Constant(Tensor::Scalar(0.5f))});
    };
    cases.push_back({std::string(op) + "_same", [=](GraphBuilder& g) {
                       return g.Call(op, {g.Input({2, 3, 4, 5}), divisor(g, g.Input({2, 3, 4, 5}))});
                     }});
    cases.push_back({std::string(op) + "_channel", [=](GraphBuilder& g) {
                       return g.Call(op, {g.Input({2, 3, 4, 5}), divisor(g, g.Input({3, 1, 1}))});
                     }});
    cases.push_back({std::string(op) + "_row", [=](GraphBuilder& g) {
                       return g.Call(op, {g.Input({2, 3, 4, 5}), divisor(g, g.Input({5}))});
                     }});
    cases.push_back({std::string(op) + "_last_broadcast",  // As by a norm of the last dimension.
                     [=](GraphBuilder& g) {
                       return g.Call(op, {g.Input({2, 3, 4, 5}), divisor(g, g.Input({2, 3, 4, 1}))});
                     },
                     own});
    cases.push_back(
        {std::string(op) + "_gate_nhwc", [=](GraphBuilder& g) {  // Squeeze and excitation.
           Node* x = g.Call("max_pool2d", {g.Input({2, 8, 4, 5})}, PoolAttributes({1, 1}, {1, 1}, {0, 0, 0, 0}));
           return g.Call(op, {x, divisor(g, g.Call("global_avg_pool", {x}))});
         }});
    cases.push_back(
        {std::string(op) + "_channel_nhwc", [=](GraphBuilder& g) {
           Node* x = g.Call("max_pool2d", {g.Input({2, 8, 4, 5})}, PoolAttributes({1, 1}, {1, 1}, {0, 0, 0, 0}));
           return g.Call(op, {x, divisor(g, g.Input({8, 1, 1}))});
         }});
    const bool commutes = op == std::string("add") || op == std::string("mul");
    cases.push_back({std::string(op) + "_first_broadcast",
                     [=](GraphBuilder& g) {
                       return g.Call(op, {g.Input({3, 1, 1}), divisor(g, g.Input({2, 3, 4, 5}))});
                     },
                     commutes ? "onednn" : own});
  }
  cases.push_back({"add_relu", [](GraphBuilder& g) {
                     return g.Call("add", {g.Input({4, 9}), g.Input({4, 9})}, {{"activation", "relu"}});
                   }});
  cases.push_back({"add_alpha",
                   [](GraphBuilder& g) {
                     return g.Call("add", {g.Input({4, 9}), g.Input({4, 9})}, {{"alpha", 0.5}});
                   },
                   own});
  cases.push_back(
      {"fused",
       [](GraphBuilder& g) {
         Node* x = g.Call("max_pool2d", {g.Input({2, 8, 4, 5})}, PoolAttributes({1, 1}, {1, 1}, {0, 0, 0, 0}));
         const std::vector<std::string> steps = {
             "add(0, 1, alpha=0.5)", "sigmoid(2)", "mul(2, 3)", "gelu(4)", "sub(5, 0)", "hardswish(6)"};
         return g.Call("fused_elementwise", {x, g.Input({8, 1, 1})}, {{"steps", steps}});
       },
       own});
  cases.push_back({"scalars", [](GraphBuilder& g) { return g.Call("add", {g.Input(Shape{}), g.Input(Shape{})}); }});
  return cases;
}

std::vector<Case> NormalizeCases() {
  return {
      {"softmax",
       [](GraphBuilder& g) {
         return g.Call("softmax", {g.Input({3, 40})});
       }},
      {"softmax_short",
       [](GraphBuilder& g) {
         return g.Call("softmax", {g.Input({3, 10})});
       },
       Own()},
      {"softmax_channels",
       [](GraphBuilder& g) {
         return g.Call("softmax", {g.Input({2, 5, 3, 4})}, {{"dim", 1}});
       },
       Own()},
      {"layer_norm",
       [](GraphBuilder& g) {
         return g.Call("layer_norm", {g.Input({2, 5, 24}), g.Constant({24}), g.Constant({24})},
                       {{"normalized_shape", Ints{24}}});
       }},
      {"layer_norm_axes",
       [](GraphBuilder& g) {
         return g.Call("layer_norm", {g.Input({3, 2, 3, 7}), nullptr, g.Constant({3, 7})},
                       {{"normalized_shape", Ints{3, 7}}, {"eps", 0.001}});
       }},
      {"batch_norm",
       [](GraphBuilder& g) {
         return g.Call("batch_norm",
                       {g.Input({2, 3, 4, 5}), g.Constant({3}), g.Constant({3}), g.Constant({3}),
                        g.Constant(Tensor::Of<float>({3}, {0.5f, 1.0f, 2.0f}))},
                       {{"eps", 0.001}});
       }},
      {"batch_norm_rank2",
       [](GraphBuilder& g) {
         return g.Call("batch_norm", {g.Input({4, 3}), nullptr, nullptr, g.Constant({3}),
                                      g.Constant(Tensor::Of<float>({3}, {0.5f, 1.0f, 2.0f}))});
       }},
      {"batch_norm_of_the_batch",
       [](GraphBuilder& g) {
         return g.Call("batch_norm", {g.Input({4, 3})});
       },
       "reference"},
  };
}

class Fp32Test : public ::testing::TestWithParam<int> {
 protected:
  Fp32Test() {
    ops::RegisterAll(ops_);
    fp32::Register(kernels_);
    fused_elementwise::Register(kernels_);
  }

  void Check(const std::vector<Case>& cases) {
    ThreadPool pool(GetParam());
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      GraphBuilder builder(ops_);
      Node* result = c.build(builder);
      const ir::Graph& graph = builder.Output({result});
      const std::vector<Tensor> inputs = SeededInputs(graph);
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
      ASSERT_OK_AND_ASSIGN(auto executable, Executable::Create(graph, kernels_, &pool));
      // Without AVX2, on aarch64 say, oneDNN declines some, which run on kernels of our own.
      const std::string variant = VariantOf(*executable, result->name());
      EXPECT_TRUE(absl::StartsWith(variant, c.variant) ||
                  (variant == "scalar" && !kernels::CpuSupports(kernels::Isa::kAvx2)))
          << variant;
      for (int round = 0; round < 2; ++round) {  // The second on memory that the first has used.
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(*executable, inputs));
        EXPECT_LE(RelativeError(found[0], wanted[0]), kTolerance);
      }
    }
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
};

TEST_P(Fp32Test, Conv) { Check(ConvCases()); }
TEST_P(Fp32Test, Linear) { Check(LinearCases()); }
TEST_P(Fp32Test, Pool) { Check(PoolCases()); }
TEST_P(Fp32Test, Elementwise) { Check(ElementwiseCases()); }
TEST_P(Fp32Test, Normalize) { Check(NormalizeCases()); }

// libdnnl.so finds its OpenMP runtime in kernels/fp32/openmp.h, not in libgomp.so, whose threads would fight the
// pool's.
TEST_P(Fp32Test, OnednnRunsOnThePool) {
  ThreadPool pool(GetParam());
  GraphBuilder builder(ops_);
  const ir::Graph& graph = builder.Output({builder.Call("relu", {builder.Input({1 << 20})})});
  ASSERT_OK_AND_ASSIGN(auto executable, Executable::Create(graph, kernels_, &pool));
  const int64_t joins = pool.joins();
  ASSERT_OK(RunOnce(*executable, SeededInputs(graph)).status());
  EXPECT_EQ(pool.joins() - joins, GetParam() > 1 ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, Fp32Test, ::testing::Values(1, 2));

// The kernels that calibration runs on: near the interpreter, and the bits of the scalar ones whatever the instruction
// set and the threads.
class ReproducibleTest : public ::testing::Test {
 protected:
  ReproducibleTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAllReproducible(kernels_);
    fused_elementwise::Register(emulated_);
    reproducible::RegisterWith(emulated_table_, emulated_);
  }

  Tensor Run(const ir::Graph& graph, const kernels::KernelRegistry& kernels, kernels::Isa isa, int threads,
             const std::vector<Tensor>& inputs, const std::string& node) {
    ThreadPool pool(threads);
    ExecutableOptions options;
    options.isa = isa;
    absl::StatusOr<std::unique_ptr<Executable>> executable = Executable::Create(graph, kernels, &pool, options);
    EXPECT_OK(executable);
    on_reference_ = VariantOf(**executable, node) == "reference";
    absl::StatusOr<std::vector<Tensor>> outputs = RunOnce(**executable, inputs);
    EXPECT_OK(outputs);
    return (*outputs)[0];
  }

  // `references`: how many of the cases have no kernel.
  void Check(const std::vector<Case>& cases, int references = 0) {
    using kernels::Isa;
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      GraphBuilder builder(ops_);
      Node* result = c.build(builder);
      if (emulated_.FindOrNull(result->op()->name) == nullptr) continue;  // A kernel without variants.
      const ir::Graph& graph = builder.Output({result});
      const std::vector<Tensor> inputs = SeededInputs(graph);
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
      const Tensor scalar = Run(graph, kernels_, Isa::kScalar, 1, inputs, result->name());
      EXPECT_LE(RelativeError(scalar, wanted[0]), kTolerance);
      references -= on_reference_;
      const Tensor emulated = Run(graph, emulated_, Isa::kScalar, 1, inputs, result->name());
      EXPECT_TRUE(emulated.SameBytes(scalar)) << "emulated avx512_vnni";
      for (const Isa isa : kernels::SupportedIsas()) {
        for (const int threads : {1, 3}) {
          EXPECT_TRUE(Run(graph, kernels_, isa, threads, inputs, result->name()).SameBytes(scalar))
              << kernels::IsaName(isa) << ", " << threads << " threads";
        }
      }
    }
    EXPECT_EQ(references, 0);
  }

  const std::vector<reproducible::Primitives> emulated_table_ = {reproducible::EmulatedAvx512()};
  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_, emulated_;
  bool on_reference_ = false;  // The result's step, in the last run.
};

TEST_F(ReproducibleTest, Conv) { Check(ConvCases()); }
TEST_F(ReproducibleTest, Linear) { Check(LinearCases()); }
TEST_F(ReproducibleTest, Pool) { Check(PoolCases()); }
TEST_F(ReproducibleTest, Elementwise) { Check(ElementwiseCases()); }
TEST_F(ReproducibleTest, Normalize) { Check(NormalizeCases(), /*references=*/1); }  // Takes the batch's statistics.

}  // namespace
}  // namespace fuselage::runtime
