#include "runtime/cuda/cuda_executable.h"

#include <atomic>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "runtime/cuda/fake_api.h"
#include "runtime/cuda/fake_kernels.h"
#include "runtime/cuda/testing.h"
#include "runtime/testing.h"

namespace fuselage::runtime::cuda {
namespace {

using ::fuselage::testing::StatusIs;
using ir::Node;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Error kMemoryAllocation = 2, kInvalidConfiguration = 9, kIllegalAddress = 700;

class CudaExecutableTest : public ::testing::Test {
 protected:
  CudaExecutableTest() {
    ops::RegisterAll(ops_);
    RegisterFakeKernels(ops_, &launches_, kernels_);
  }

  void SetUp() override { ASSERT_OK_AND_ASSIGN(device_, Device::Open(&api_)); }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(const ir::Graph& graph,
                                                      const CudaExecutableOptions& options = {}) {
    return CreateExecutable(graph, kernels_, device_.get(), options);
  }

  FakeApi api_;
  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  std::atomic<int> launches_ = 0;
  std::unique_ptr<Device> device_;
};

TEST_F(CudaExecutableTest, RunsEveryInputThroughOneGraph) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = ResidualNetwork(g);
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  EXPECT_EQ(launches_, 2 * 9) << "once to try, once to capture";
  for (uint64_t seed : {1, 2, 1}) ExpectMatchesInterpreter(graph, *executable, seed);
  EXPECT_EQ(launches_, 2 * 9);
  EXPECT_EQ(api_.launched_graphs(), 3);
  EXPECT_GT(executable->device_seconds(), 0);
  EXPECT_EQ(CountSteps(*executable, "reorder"), 1);  // The second output's.
}

// Two convolutions of one value, and what they use, in either order; their sum waits for both.
TEST_F(CudaExecutableTest, StepsThatDoNotNeedEachOtherRunBesideEachOther) {
  GraphBuilder g(ops_);
  const AttributeMap out = {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}};
  const auto conv = [&](Node* x, int64_t channels) {
    TensorType weight = {
        DType::kI8, {channels, x->tensor_type().shape[1], 1, 1}, PerTensor(0.01f, 0), Layout::kRowMajor};
    return g.CallModule("int8.conv2d", {x}, out, {{"weight", SeededTensor(weight, 3)}});
  };
  Node* x = conv(g.Call("int8.quantize", {g.Input({1, 3, 6, 5})}, out), 4);
  for (int block = 0; block < 3; ++block) {
    Node* left = conv(x, 5 + block);
    x = conv(g.Call("int8.add", {left, conv(x, 5 + block)}, out), 4);
  }
  const ir::Graph& graph = g.Output({g.Call("int8.dequantize", {x})});
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  EXPECT_EQ(api_.forks(), 3);
  for (uint64_t seed : {1, 2}) ExpectMatchesInterpreter(graph, *executable, seed);
  executable->EnableProfile(true);
  ExpectMatchesInterpreter(graph, *executable, 3);
  EXPECT_EQ(api_.forks(), 3) << "profiled steps run one by one";
}

// A kernel begins before those ahead of it end where it waits for nothing else.
TEST_F(CudaExecutableTest, KernelsOverlapWithThoseBeforeThem) {
  GraphBuilder g(ops_);
  const AttributeMap out = {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}};
  const TensorType weight = {DType::kI8, {4, 4, 1, 1}, PerTensor(0.01f, 0), Layout::kRowMajor};
  const auto conv = [&](Node* x) {
    return g.CallModule("int8.conv2d", {x}, out, {{"weight", SeededTensor(weight, 3)}});
  };
  Node* x = conv(conv(g.Call("int8.quantize", {g.Input({1, 4, 6, 5})}, out)));
  Node* left = conv(x);
  Node* sum = g.Call("int8.add", {left, conv(x)}, out);
  const ir::Graph& graph = g.Output({g.Call("int8.dequantize", {conv(conv(sum))})});

  ASSERT_TRUE(Compile(graph).ok());
  const int forks = api_.forks();
  EXPECT_THAT(api_.captured_overlaps(), Each(Overlap::kNone)) << "only where it is asked for";
  DeviceOptions options;
  options.overlap_kernels = true;
  ASSERT_OK_AND_ASSIGN(device_, Device::Open(&api_, options));
  {
    ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
    EXPECT_EQ(api_.forks(), forks) << "one behind the other";
    constexpr Overlap kNext = Overlap::kNext;
    EXPECT_THAT(api_.captured_overlaps(),
                ElementsAre(Overlap::kNone, kNext, kNext, Overlap::kBeside, kNext, kNext, kNext, kNext, kNext));
    for (uint64_t seed : {1, 2}) ExpectMatchesInterpreter(graph, *executable, seed);
    executable->EnableProfile(true);
    ExpectMatchesInterpreter(graph, *executable, 3);
    EXPECT_THAT(api_.captured_overlaps(), Each(Overlap::kNone)) << "profiled steps run one by one";
  }
  api_.properties.major = 8;
  ASSERT_OK_AND_ASSIGN(device_, Device::Open(&api_, options));
  ASSERT_TRUE(Compile(graph).ok());
  EXPECT_THAT(api_.captured_overlaps(), Each(Overlap::kNone)) << "from sm_90 on";
}

// Which are kernels, too: after the convolution its codes become row-major.
TEST_F(CudaExecutableTest, ChangesOfLayoutOverlap) {
  GraphBuilder g(ops_);
  const AttributeMap out = {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}};
  Node* codes = g.Call("int8.quantize", {g.Input({2, 4, 6, 5})}, out);
  const TensorType weight = {DType::kI8, {4, 4, 1, 1}, PerTensor(0.01f, 0), Layout::kRowMajor};
  Node* conv = g.CallModule("int8.conv2d", {codes}, out, {{"weight", SeededTensor(weight, 3)}});
  const ir::Graph& graph =
      g.Output({g.Call("int8.dequantize", {g.Call("flatten", {conv}, {{"start_dim", int64_t{1}}})})});
  DeviceOptions options;
  options.overlap_kernels = true;
  ASSERT_OK_AND_ASSIGN(device_, Device::Open(&api_, options));
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  EXPECT_EQ(CountSteps(*executable, "reorder"), 1);
  EXPECT_THAT(api_.captured_overlaps(), ElementsAre(Overlap::kNone, Overlap::kNext, Overlap::kNext, Overlap::kNext));
  ExpectMatchesInterpreter(graph, *executable, 1);
}

// Two threads, of which the second copies first. They count what is on its way to the device when they begin.
class TwoThreads final : public kernels::Parallel {
 public:
  explicit TwoThreads(const FakeApi& api) : api_(api) {}
  int threads() const override { return 2; }
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override {
    uploads_before.push_back(static_cast<int>(api_.uploads().size()));
    for (int task = tasks - 1; task >= 0; --task) body(task, task);
  }
  std::vector<int> uploads_before;

 private:
  const FakeApi& api_;
};

// A large input is on its way to the device before the host has copied it all; all its threads copy.
TEST_F(CudaExecutableTest, LargeInputsGoInPieces) {
  GraphBuilder g(ops_);
  constexpr int64_t kPiece = 4 << 20;
  Node* small = g.Call("clamp", {g.Input({3})}, {{"min", -0.5}, {"max", 0.5}});
  Node* large = g.Call("clamp", {g.Input({(2 * kPiece + 12) / 4})}, {{"min", -0.5}, {"max", 0.5}});
  const ir::Graph& graph = g.Output({small, large});
  TwoThreads threads(api_);
  CudaExecutableOptions options;
  options.host = &threads;
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph, options));
  EXPECT_TRUE(api_.uploads().empty());
  ExpectMatchesInterpreter(graph, *executable, 1);
  EXPECT_THAT(api_.uploads(), ElementsAre(12, kPiece, kPiece, 12));
  EXPECT_THAT(threads.uploads_before, ElementsAre(1, 2, 4)) << "two large pieces, and the large output";
}

TEST_F(CudaExecutableTest, AllocatesArenaAndConstantsOnly) {
  GraphBuilder g(ops_);
  {
    ASSERT_OK_AND_ASSIGN(auto executable, Compile(ResidualNetwork(g)));
    EXPECT_EQ(api_.device_bytes(), executable->arena_bytes());
    const int64_t unplanned = 2 * (3 + 3 + 8 * 5) * 9 * 7;
    EXPECT_LT(executable->arena_bytes(), unplanned + 8 * 1000);
  }
  EXPECT_EQ(api_.live_handles(), 0);
}

// x and two constants: one that all images have, one with values for each.
const ir::Graph& NetworkOfConstants(GraphBuilder& g, int64_t batch) {
  const AttributeMap out = {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}};
  const auto codes = [](int64_t images) {
    return SeededTensor({DType::kU8, {images, 3, 16, 16}, PerTensor(0.05f, 3), Layout::kRowMajor}, 5);
  };
  Node* x = g.Call("int8.quantize", {g.Input({batch, 3, 16, 16})}, out);
  Node* sum = g.Call("int8.add", {x, g.Constant(codes(1))}, out);
  return g.Output({g.Call("int8.dequantize", {g.Call("int8.add", {sum, g.Constant(codes(batch))}, out)})});
}

TEST_F(CudaExecutableTest, ConstantsAreOnceOnTheDevice) {
  constexpr int64_t kImage = 3 * 16 * 16;
  std::vector<std::unique_ptr<GraphBuilder>> builders;
  std::vector<const ir::Graph*> graphs;
  std::vector<std::unique_ptr<Executable>> executables;
  int64_t arenas = 0;
  const auto add = [&](int64_t batch) {
    builders.push_back(std::make_unique<GraphBuilder>(ops_));
    graphs.push_back(&NetworkOfConstants(*builders.back(), batch));
    ASSERT_OK_AND_ASSIGN(executables.emplace_back(), Compile(*graphs.back()));
    arenas += executables.back()->arena_bytes();
  };
  for (int64_t batch : {1, 1, 2, 2, 1}) add(batch);
  EXPECT_EQ(api_.device_bytes(), arenas + kImage + 2 * kImage) << "a constant of one image and one of two";
  EXPECT_EQ(executables[2]->weight_bytes(), executables[0]->weight_bytes() + kImage) << "whoever else has them";
  executables[0] = nullptr;
  for (size_t i = 1; i < executables.size(); ++i) ExpectMatchesInterpreter(*graphs[i], *executables[i], i);
  executables.clear();
  EXPECT_EQ(api_.live_handles(), 0);
}

// Each thread's executable is on a stream of its own; one of them uploads.
TEST_F(CudaExecutableTest, ThreadsShareConstants) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = NetworkOfConstants(g, 1);
  std::vector<std::unique_ptr<Executable>> executables(4);
  std::vector<std::thread> threads;
  for (auto& executable : executables) {
    threads.emplace_back([&] {
      ASSERT_OK_AND_ASSIGN(executable, Compile(graph));
      for (uint64_t seed : {1, 2, 3}) ExpectMatchesInterpreter(graph, *executable, seed);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(api_.device_bytes(), 4 * executables[0]->arena_bytes() + 3 * 16 * 16);
}

TEST_F(CudaExecutableTest, InputsAndConstantsMayBeOutputs) {
  GraphBuilder g(ops_);
  Node* x = g.Input({2, 3, 4, 5});
  Node* c = g.Constant({2, 7});
  Node* q = g.Call("int8.quantize", {x}, {{"out_dtype", DType::kU8}, {"out_scale", 0.05}, {"out_zero_point", 3}});
  Node* later = g.Call("clamp", {x}, {{"min", -0.5}, {"max", 0.5}});
  const ir::Graph& graph = g.Output({x, c, q, later, g.Call("flatten", {x})});
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  for (uint64_t seed : {1, 2}) ExpectMatchesInterpreter(graph, *executable, seed);
}

TEST_F(CudaExecutableTest, UnusedInputs) {
  GraphBuilder g(ops_);
  g.Input({4});
  Node* x = g.Input({3});
  const ir::Graph& graph = g.Output({g.Call("clamp", {x}, {{"min", -0.5}, {"max", 0.5}})});
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  ExpectMatchesInterpreter(graph, *executable, 1);
}

TEST_F(CudaExecutableTest, ProfileTimesEachStepWithEvents) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = ResidualNetwork(g);
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  executable->EnableProfile(true);
  for (uint64_t seed : {1, 2}) ExpectMatchesInterpreter(graph, *executable, seed);
  EXPECT_EQ(launches_, 3 * 9) << "a graph of its own, with events";
  EXPECT_EQ(executable->device_seconds(), 0);
  executable->EnableProfile(false);
  ExpectMatchesInterpreter(graph, *executable, 3);
  for (const StepProfile& step : executable->profile()) {
    EXPECT_EQ(step.seconds, std::vector<double>({1e-3, 1e-3})) << step.node;
    EXPECT_GT(step.bytes, 0) << step.node;
  }
  executable->ResetProfile();
  EXPECT_TRUE(executable->profile()[0].seconds.empty());
}

TEST_F(CudaExecutableTest, NodesWithoutAKernelAreAllNamed) {
  GraphBuilder g(ops_);
  Node* x = g.Input({2, 3});
  Node* y = g.Call("sigmoid", {g.Call("clamp", {x}, {{"min", -0.5}, {"max", 0.5}})});
  EXPECT_THAT(Compile(g.Output({g.Call("tanh", {y})})),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("2 nodes have no CUDA kernel"), HasSubstr("%sigmoid (sigmoid)"),
                             HasSubstr("%tanh (tanh)"), Not(HasSubstr("clamp")))));
  EXPECT_EQ(api_.live_handles(), 0);
}

TEST_F(CudaExecutableTest, MemoryLimits) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = ResidualNetwork(g);
  CudaExecutableOptions options;
  options.max_memory_bytes = 3000;
  EXPECT_THAT(Compile(graph, options), StatusIs(absl::StatusCode::kResourceExhausted,
                                                AllOf(HasSubstr("device memory"), HasSubstr("the limit is 3000"))));
  api_.properties.memory_bytes = 3000;
  EXPECT_THAT(Compile(graph),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("cudaMalloc of "), HasSubstr(" bytes for the arena: out of memory (2)"))));
  EXPECT_EQ(api_.live_handles(), 0);
}

TEST_F(CudaExecutableTest, WrongTensors) {
  GraphBuilder g(ops_);
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(ResidualNetwork(g)));
  Tensor small({DType::kF32, {2, 3, 9, 6}, std::nullopt, Layout::kRowMajor});
  EXPECT_THAT(RunOnce(*executable, absl::MakeConstSpan(&small, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input %x is f32[2,3,9,6], wanted f32[2,3,9,7]")));
  EXPECT_THAT(RunOnce(*executable, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 inputs")));
}

TEST_F(CudaExecutableTest, ALaunchThatFailsNamesItsNode) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = ResidualNetwork(g);
  api_.FailLaunch(kInvalidConfiguration);
  EXPECT_THAT(Compile(graph),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("%int8.quantize (int8.quantize): kernel launch"), HasSubstr("(9)"))));
  EXPECT_EQ(api_.live_handles(), 0);
}

// Whichever call fails, the error comes out, nothing leaks, and nothing is used that is not there.
TEST_F(CudaExecutableTest, AnyCallMayFail) {
  GraphBuilder g(ops_), with_constants(ops_);
  const ir::Graph &residual = ResidualNetwork(g), &constants = NetworkOfConstants(with_constants, 2);
  for (const auto& [network, profiling] :
       {std::make_pair(&residual, false), std::make_pair(&residual, true), std::make_pair(&constants, false)}) {
    const ir::Graph& graph = *network;
    const std::vector<Tensor> inputs = SeededInputs(graph);
    for (const auto& [error, lost, code] :
         {std::make_tuple(kMemoryAllocation, false, absl::StatusCode::kResourceExhausted),
          std::make_tuple(kIllegalAddress, true, absl::StatusCode::kDataLoss)}) {
      for (int call = 0; call == 0 || api_.failed(); ++call) {
        ASSERT_LT(call, 1000);
        api_.FailAt(call, error, lost);
        {
          auto executable = Compile(graph);
          absl::Status status = executable.status();
          if (status.ok()) {
            (*executable)->EnableProfile(profiling);
            status = RunOnce(**executable, inputs).status();
          }
          EXPECT_EQ(status.code(), api_.failed() ? code : absl::StatusCode::kOk) << "call " << call << ": " << status;
        }  // The destructor waits for the stream: the last call.
        EXPECT_EQ(api_.live_handles(), 0) << "call " << call;
      }
    }
  }
}

TEST_F(CudaExecutableTest, RunsAgainAfterAnErrorThatPasses) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = ResidualNetwork(g);
  ASSERT_OK_AND_ASSIGN(auto executable, Compile(graph));
  const std::vector<Tensor> inputs = SeededInputs(graph, 7);
  for (int call = 0;; ++call) {
    api_.FailAt(call, kInvalidConfiguration, false);
    const absl::Status status = RunOnce(*executable, inputs).status();
    if (!api_.failed()) break;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("(9)"))) << call;
    api_.FailAt(-1, 0, false);
    ExpectMatchesInterpreter(graph, *executable, 8);
  }
}

}  // namespace
}  // namespace fuselage::runtime::cuda
