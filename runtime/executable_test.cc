#include "runtime/executable.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "runtime/reorder.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Ints = std::vector<int64_t>;
using ir::Node;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::KernelDesc;
using kernels::LayoutRule;

// Runs the op's reference evaluation on operands that lie as the description says: wrong layouts give wrong values.
class FakeKernel final : public kernels::Kernel {
 public:
  FakeKernel(const KernelDesc& desc, const ir::OpSchema& schema) : Kernel(desc), schema_(schema), desc_(desc) {
    set_variant("fake");
    set_scratch_bytes(1000);
    set_weight_bytes(10);
  }

 private:
  static TensorType RowMajor(TensorType type) {
    type.layout = Layout::kRowMajor;
    return type;
  }

  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const kernels::RunContext& context) const override {
    std::memset(context.scratch.data, 0xab, 1000);  // Whatever else lies there must not matter.
    std::vector<std::vector<Tensor>> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(inputs[i].data) % 64, 0);
      Tensor tensor(RowMajor(desc_.input(i)));
      if (desc_.input(i).layout == Layout::kNhwc) {
        Reorder(desc_.input(i), inputs[i].data, tensor.raw_data(), *context.parallel);
      } else {
        std::memcpy(tensor.raw_data(), inputs[i].data, tensor.byte_size());
      }
      values.push_back({std::move(tensor)});
    }
    std::vector<const std::vector<Tensor>*> operands;
    for (const auto& value : values) operands.push_back(&value);
    const TensorType result = RowMajor(desc_.output());
    const auto results = ir::Evaluate(schema_, desc_.attributes, operands, ir::Type(result));
    ASSERT_OK(results);
    if (desc_.output().layout == Layout::kNhwc) {
      Reorder(result, (*results)[0].raw_data(), outputs[0].data, *context.parallel);
    } else {
      std::memcpy(outputs[0].data, (*results)[0].raw_data(), result.byte_size());
    }
  }

  const ir::OpSchema& schema_;
  const KernelDesc desc_;
};

class ExecutableTest : public ::testing::Test {
 protected:
  ExecutableTest() {
    ops::RegisterAll(ops_);
    Register("relu", LayoutRule::kNhwc);
    Register("clamp", LayoutRule::kRowMajor);
    Register("add", LayoutRule::kSame);
    Register("sigmoid", LayoutRule::kAnyInput);
    Register("tanh", LayoutRule::kAnyOutput);
  }

  void Register(const char* op, LayoutRule rule) {
    kernels_.Register({op, rule, [this](const KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
                         if (desc.op == "add" && desc.GetFloat("alpha") != 1.0)
                           return absl::UnimplementedError("alpha");
                         if (desc.op == "clamp" && desc.GetFloat("min") > desc.GetFloat("max")) {
                           return absl::InvalidArgumentError("min above max");
                         }
                         return std::make_unique<FakeKernel>(desc, *ops_.FindOrNull(desc.op));
                       }});
  }

  std::unique_ptr<Executable> Compile(const ir::Graph& graph) {
    auto executable = Executable::Create(graph, kernels_, &pool_);
    EXPECT_OK(executable);
    return *std::move(executable);
  }

  // The executable's results are the interpreter's, twice.
  void ExpectSame(const ir::Graph& graph, Executable& executable) {
    const std::vector<Tensor> inputs = SeededInputs(graph);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, inputs));
    for (int round = 0; round < 2; ++round) {
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(executable, inputs));
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].SameBytes(wanted[i])) << "output " << i;
    }
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  ThreadPool pool_{2};
};

TEST_F(ExecutableTest, IsInNhwcOnlyWhereAKernelBehindWantsIt) {
  const Shape shape = {2, 3, 4, 5};
  GraphBuilder rows(ops_);
  Node* x = rows.Call("sigmoid", {rows.Input(shape)});
  x = rows.Call("tanh", {rows.Call("clamp", {rows.Call("add", {x, x})})});
  auto executable = Compile(rows.Output({rows.Call("clamp", {rows.Call("add", {x, x})})}));
  EXPECT_EQ(CountSteps(*executable, "reorder"), 0);
  ExpectSame(rows.graph(), *executable);

  GraphBuilder nhwc(ops_);
  x = nhwc.Call("sigmoid", {nhwc.Input(shape)});
  executable = Compile(nhwc.Output({nhwc.Call("relu", {nhwc.Call("add", {x, x})})}));
  EXPECT_EQ(CountSteps(*executable, "reorder"), 1) << "the output alone";
  ExpectSame(nhwc.graph(), *executable);
}

TEST_F(ExecutableTest, ReordersOncePerValueAndLayout) {
  GraphBuilder g(ops_);
  Node* x = g.Input({2, 3, 4, 5});
  Node* a = g.Call("relu", {x});
  Node* b = g.Call("relu", {g.Call("add", {a, g.Call("relu", {x})})});
  const ir::Graph& graph = g.Output({g.Call("clamp", {a}), g.Call("clamp", {a}), b});
  auto executable = Compile(graph);
  // x to NHWC; a and b to row-major.
  EXPECT_EQ(CountSteps(*executable, "reorder"), 3);
  ExpectSame(graph, *executable);
}

TEST_F(ExecutableTest, NoReorderWhereBothLayoutsAreTheSame) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = g.Output({g.Call("clamp", {g.Call("relu", {g.Input({2, 1, 4, 5})})}),
                                     g.Call("flatten", {g.Call("relu", {g.Input({2, 6, 1, 1})})})});
  auto executable = Compile(graph);
  EXPECT_EQ(CountSteps(*executable, "reorder"), 0);
  EXPECT_EQ(executable->profile().size(), 3);
  ExpectSame(graph, *executable);
}

TEST_F(ExecutableTest, EitherLayout) {
  GraphBuilder g(ops_);
  Node* x = g.Input({1, 3, 4, 5});
  Node* sigmoid = g.Call("sigmoid", {x});                        // Row-major in, NHWC out.
  Node* again = g.Call("sigmoid", {g.Call("relu", {sigmoid})});  // NHWC in and out.
  Node* tanh = g.Call("tanh", {again});                          // NHWC in, row-major out for the graph's output.
  auto executable = Compile(g.Output({tanh}));
  EXPECT_EQ(CountSteps(*executable, "reorder"), 0);
  ExpectSame(g.graph(), *executable);
}

TEST_F(ExecutableTest, ViewsReadRowMajorBytes) {
  GraphBuilder g(ops_);
  Node* x = g.Call("relu", {g.Input({2, 3, 4, 5})});
  const ir::Graph& graph =
      g.Output({g.Call("flatten", {x}), g.Call("reshape", {g.Call("identity", {x})}, {{"shape", Ints{2, 5, 4, 3}}}),
                g.Call("relu", {g.Call("reshape", {x}, {{"shape", Ints{2, 5, 4, 3}}})}),
                g.Call("squeeze", {g.Call("unsqueeze", {x}, {{"dims", Ints{0}}})}, {{"dims", Ints{0}}}),
                g.Call("dropout", {x})});
  auto executable = Compile(graph);
  // The input and the reshaped value to NHWC; the two that relu makes to row-major.
  EXPECT_EQ(CountSteps(*executable, "reorder"), 4);
  ExpectSame(graph, *executable);
}

TEST_F(ExecutableTest, ReferenceStepsForOpsWithoutKernel) {
  GraphBuilder g(ops_);
  Node* x = g.Call("relu", {g.Input({2, 6, 4, 5})});
  Node* parts = g.Call("split", {x}, {{"sizes", Ints{2, 4}}, {"dim", 1}});
  Node* part = g.Call("getitem", {parts}, {{"index", 1}});
  Node* joined = g.Call("cat", {x, part, g.Constant({2, 1, 4, 5})}, {{"dim", 1}});
  Node* turned = g.Call("permute", {g.Call("relu", {joined})}, {{"dims", Ints{0, 3, 2, 1}}});
  Node* alpha = g.Call("add", {x, x}, {{"alpha", 2.0}});
  const ir::Graph& graph = g.Output({turned, alpha, g.Call("getitem", {parts}, {{"index", 0}})});
  auto executable = Compile(graph);
  EXPECT_EQ(VariantOf(*executable, turned->name()), "reference");
  EXPECT_EQ(VariantOf(*executable, alpha->name()), "reference");
  EXPECT_EQ(VariantOf(*executable, x->name()), "fake");
  ExpectSame(graph, *executable);
}

// The fake kernels compute in NHWC, which is what the permutes turn images into and make images of.
TEST_F(ExecutableTest, PermutesBetweenLayoutsMoveNothing) {
  GraphBuilder g(ops_);
  Node* image = g.Call("relu", {g.Input({2, 6, 4, 5})});
  Node* pixels = g.Call("permute", {image}, {{"dims", Ints{0, 2, 3, 1}}});
  Node* back = g.Call("permute", {pixels}, {{"dims", Ints{0, -1, 1, 2}}});
  Node* other = g.Call("permute", {g.Input({3, 4, 5, 6})}, {{"dims", Ints{0, 3, 1, 2}}});
  const ir::Graph& graph = g.Output({pixels, g.Call("relu", {back}), g.Call("relu", {other})});
  auto executable = Compile(graph);
  EXPECT_EQ(CountSteps(*executable, "permute"), 0);
  EXPECT_EQ(CountSteps(*executable, "reorder"), 3) << "the first input, and two images that are outputs";
  ExpectSame(graph, *executable);
}

// An image that nobody wants in NHWC, and one that does not lie so.
TEST_F(ExecutableTest, OtherPermutesRun) {
  GraphBuilder g(ops_);
  Node* image = g.Call("permute", {g.Input({2, 4, 5, 6})}, {{"dims", Ints{0, 3, 1, 2}}});
  Node* pixels = g.Call("permute", {g.Input({2, 6, 4, 5})}, {{"dims", Ints{0, 2, 3, 1}}});
  const ir::Graph& graph = g.Output({image, pixels});
  auto executable = Compile(graph);
  EXPECT_EQ(CountSteps(*executable, "permute"), 2);
  EXPECT_EQ(CountSteps(*executable, "reorder"), 0);
  ExpectSame(graph, *executable);
}

TEST_F(ExecutableTest, ParametersOfReferenceSteps) {
  GraphBuilder g(ops_);
  Node* x = g.Input({1, 3, 6, 6});
  const Tensor weight = SeededTensor({DType::kF32, {4, 3, 3, 3}, std::nullopt, Layout::kRowMajor}, 1);
  Node* module = g.CallModule("conv2d", {x, nullptr}, {}, {{"weight", weight}});
  Node* function = g.Call("conv2d", {module, g.Constant({2, 4, 1, 1}), g.Constant({2})});
  auto executable = Compile(g.Output({function}));
  EXPECT_GE(executable->weight_bytes(), weight.byte_size());
  ExpectSame(g.graph(), *executable);
}

TEST_F(ExecutableTest, ConstantOperands) {
  GraphBuilder g(ops_);
  Node* c = g.Constant({2, 3, 4, 5});
  Node* x = g.Call("relu", {g.Input({2, 3, 4, 5})});
  const ir::Graph& graph = g.Output({g.Call("add", {x, c}), g.Call("clamp", {c}), c, g.Call("flatten", {c})});
  auto executable = Compile(graph);
  // The constant is laid out anew when the executable is made, not in each run.
  EXPECT_EQ(CountSteps(*executable, "reorder"), 2);
  EXPECT_GE(executable->weight_bytes(), 2 * 2 * 3 * 4 * 5 * 4);
  ExpectSame(graph, *executable);
}

TEST_F(ExecutableTest, OutputsThatAreInputsOrTheSame) {
  GraphBuilder g(ops_);
  Node* x = g.Input({2, 3});
  Node* y = g.Call("clamp", {x});
  const ir::Graph& graph = g.Output({x, y, y, g.Call("reshape", {y}, {{"shape", Ints{6}}}), g.Call("relu", {y})});
  auto executable = Compile(graph);
  EXPECT_EQ(CountSteps(*executable, "copy"), 3);
  ExpectSame(graph, *executable);
}

TEST_F(ExecutableTest, EmptyTensors) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = g.Output({g.Call("permute", {g.Input({0, 3})}, {{"dims", Ints{1, 0}}}), g.Input({2, 0})});
  ExpectSame(graph, *Compile(graph));
}

TEST_F(ExecutableTest, DeadCallsAreNotRun) {
  GraphBuilder g(ops_);
  Node* x = g.Input({2, 3});
  g.Call("relu", {g.Call("relu", {x})});
  auto executable = Compile(g.Output({g.Call("clamp", {x})}));
  EXPECT_EQ(executable->profile().size(), 1);
}

TEST_F(ExecutableTest, ArenaIsShared) {
  GraphBuilder g(ops_);
  Node* x = g.Input({1, 4, 32, 32});
  for (int i = 0; i < 20; ++i) x = g.Call("relu", {x});
  auto executable = Compile(g.Output({x}));
  // Two values of 16 KiB and a scratch buffer are alive at a time.
  EXPECT_EQ(executable->arena_bytes(), 2 * 16384 + 1024);
}

TEST_F(ExecutableTest, RandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    GraphBuilder g(ops_);
    std::vector<Node*> values = {g.Input({2, 4, 3, 5}), g.Input({2, 4, 3, 5}), g.Constant({2, 4, 3, 5})};
    const auto any = [&](auto accept) {
      std::vector<Node*> accepted;
      std::copy_if(values.begin(), values.end(), std::back_inserter(accepted),
                   [&](const Node* value) { return accept(value->tensor_type()); });
      return accepted[random() % accepted.size()];
    };
    const auto rank4 = [&] { return any([](const TensorType& type) { return type.rank() == 4; }); };
    const auto with_shape = [&](const Shape& s) {
      return any([&](const TensorType& type) { return type.shape == s; });
    };
    for (int i = 0; i < 25; ++i) {
      Node* x = values[random() % values.size()];
      switch (random() % 11) {
        case 0: values.push_back(g.Call("relu", {x})); break;
        case 1: values.push_back(g.Call("clamp", {x}, {{"min", -0.25}, {"max", 0.5}})); break;
        case 2: values.push_back(g.Call("sigmoid", {x})); break;
        case 3: values.push_back(g.Call("tanh", {x})); break;
        case 4: values.push_back(g.Call("add", {x, with_shape(x->tensor_type().shape)})); break;
        case 5: values.push_back(g.Call("flatten", {rank4()})); break;
        case 6: {
          Node* y = rank4();
          const Shape& s = y->tensor_type().shape;
          values.push_back(g.Call("reshape", {y}, {{"shape", Ints{s[0], s[3], s[1], s[2]}}}));
          break;
        }
        case 7: values.push_back(g.Call("permute", {rank4()}, {{"dims", Ints{0, 3, 1, 2}}})); break;
        case 8: values.push_back(g.Call("global_avg_pool", {rank4()})); break;
        case 9: {
          Node* y = rank4();
          if (y->tensor_type().shape[1] > 16) break;
          values.push_back(g.Call("cat", {y, g.Call("relu", {y})}, {{"dim", 1}}));
          break;
        }
        case 10: {
          Node* y = rank4();
          const int64_t channels = y->tensor_type().shape[1];
          if (channels < 2) break;
          Node* parts = g.Call("split", {y}, {{"sizes", Ints{1, channels - 1}}, {"dim", 1}});
          values.push_back(g.Call("getitem", {parts}, {{"index", static_cast<int64_t>(random() % 2)}}));
          break;
        }
      }
    }
    std::vector<Node*> outputs;
    for (int i = 0; i < 4; ++i) outputs.push_back(values[values.size() - 1 - random() % (values.size() / 2)]);
    const ir::Graph& graph = g.Output(outputs);
    SCOPED_TRACE(round);
    ExpectSame(graph, *Compile(graph));
  }
}

TEST_F(ExecutableTest, OutlivesItsGraph) {
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, wanted;
  {
    GraphBuilder g(ops_);
    const ir::Graph& graph =
        g.Output({g.Call("cat", {g.Call("add", {g.Input({2, 3}), g.Constant({2, 3})}), g.Constant({1, 3})})});
    executable = Compile(graph);
    inputs = SeededInputs(graph);
    ASSERT_OK_AND_ASSIGN(wanted, interpreter::Run(graph, inputs));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, RunOnce(*executable, inputs));
  EXPECT_TRUE(found[0].SameBytes(wanted[0]));
}

TEST_F(ExecutableTest, ProfileCountsRuns) {
  GraphBuilder g(ops_);
  Node* y = g.Call("relu", {g.Input({1, 2, 3, 4})});
  auto executable = Compile(g.Output({y}));
  const std::vector<Tensor> inputs = SeededInputs(g.graph());
  ASSERT_OK(RunOnce(*executable, inputs));
  executable->EnableProfile(true);
  ASSERT_OK(RunOnce(*executable, inputs));
  ASSERT_OK(RunOnce(*executable, inputs));
  executable->EnableProfile(false);
  ASSERT_OK(RunOnce(*executable, inputs));

  ASSERT_EQ(executable->profile().size(), 3);  // Reorder, relu, reorder.
  const StepProfile& step = executable->profile()[1];
  EXPECT_EQ(executable->profile()[0].node, "");
  EXPECT_EQ(executable->profile()[0].op, "reorder");
  EXPECT_EQ(step.node, y->name());
  EXPECT_EQ(step.op, "relu");
  EXPECT_EQ(step.variant, "fake");
  EXPECT_EQ(step.macs, 0);
  EXPECT_EQ(step.bytes, 2 * 24 * 4 + 10);
  EXPECT_EQ(step.seconds.size(), 2);
  executable->ResetProfile();
  EXPECT_TRUE(executable->profile()[1].seconds.empty());
}

TEST_F(ExecutableTest, ProfileHasTheMultiplyAccumulatesOfTheCalls) {
  GraphBuilder g(ops_);
  Node* product = g.Call("matmul", {g.Input({4, 2, 3}), g.Input({3, 5})});
  auto executable = Compile(g.Output({g.Call("tanh", {product})}));
  ASSERT_EQ(executable->profile().size(), 2);
  EXPECT_EQ(executable->profile()[0].macs, 4 * 2 * 3 * 5);
  EXPECT_EQ(executable->profile()[1].macs, 0);
}

TEST_F(ExecutableTest, InputsAndOutputsAreChecked) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = g.Output({g.Call("clamp", {g.Input({2, 3})})});
  auto executable = Compile(graph);
  Tensor x(DType::kF32, {2, 3}), y(DType::kF32, {2, 3}), other(DType::kF32, {3, 2});
  const auto run = [&](std::vector<const Tensor*> inputs, std::vector<Tensor*> outputs) {
    return executable->Run(inputs, outputs);
  };
  EXPECT_OK(run({&x}, {&y}));
  const auto invalid = [](auto message) { return StatusIs(absl::StatusCode::kInvalidArgument, message); };
  EXPECT_THAT(run({&other}, {&y}), invalid(HasSubstr("input %x is f32[3,2], wanted f32[2,3]")));
  EXPECT_THAT(run({&x}, {&other}), invalid(HasSubstr("output 0 is f32[3,2], wanted f32[2,3]")));
  EXPECT_THAT(run({nullptr}, {&y}), invalid(HasSubstr("input %x is null")));
  EXPECT_THAT(run({}, {&y}), invalid(HasSubstr("0 inputs and 1 outputs, wanted 1 and 1")));
  EXPECT_THAT(run({&x}, {&x}), invalid(HasSubstr("output 0 is also")));
}

TEST_F(ExecutableTest, MemoryLimit) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = g.Output({g.Call("clamp", {g.Call("clamp", {g.Input({1000})})})});
  ExecutableOptions options;
  options.max_memory_bytes = 4032 + 1024 + 20;  // One value, scratch memory, the weights of two kernels.
  EXPECT_OK(Executable::Create(graph, kernels_, &pool_, options));
  options.max_memory_bytes -= 1;
  EXPECT_THAT(Executable::Create(graph, kernels_, &pool_, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("takes 5076 bytes (5056 for activations, 20 for weights), the limit is 5075")));
  options.max_memory_bytes = 15;
  EXPECT_THAT(Executable::Create(graph, kernels_, &pool_, options),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("%clamp_1: the weights")));
}

TEST_F(ExecutableTest, HugeTensorsAreDeclined) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = g.Output({g.Call("clamp", {g.Input({1 << 22, 1 << 22})})});
  EXPECT_THAT(Executable::Create(graph, kernels_, &pool_),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("%x")));
}

TEST_F(ExecutableTest, ListsAllNodesWithoutKernel) {
  for (const char* name : {"int8.unknown", "int8.declined"}) {
    ir::OpSchema schema;
    schema.name = name;
    schema.operands = {{"input"}};
    schema.infer = [](const ir::InferCall& call) -> absl::StatusOr<ir::Type> { return ir::Type(call.tensor(0)); };
    schema.evaluate = [](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
      return std::vector<Tensor>{call.tensor(0)};
    };
    ops_.Register(std::move(schema));
  }
  kernels_.Register({"int8.declined", LayoutRule::kNhwc, [](const KernelDesc&) {
                       return absl::StatusOr<std::unique_ptr<kernels::Kernel>>(absl::UnimplementedError("too odd"));
                     }});
  GraphBuilder g(ops_);
  Node* a = g.Call("int8.unknown", {g.Input({2, 3, 4, 5})});
  Node* b = g.Call("int8.declined", {g.Call("relu", {a})});
  Node* c = g.Call("int8.unknown", {b});
  EXPECT_THAT(Executable::Create(g.Output({c}), kernels_, &pool_),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("3 nodes have no CPU kernel"), HasSubstr("%" + a->name() + " (int8.unknown)"),
                             HasSubstr("%" + b->name() + " (int8.declined): too odd"),
                             HasSubstr("%" + c->name() + " (int8.unknown)"), Not(HasSubstr("relu")))));
}

TEST_F(ExecutableTest, ErrorsOfKernelsNameTheNode) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = g.Output({g.Call("clamp", {g.Input({2})}, {{"min", 2.0}, {"max", 1.0}})});
  EXPECT_THAT(Executable::Create(graph, kernels_, &pool_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("%clamp: min above max")));
}

}  // namespace
}  // namespace fuselage::runtime
