// A network through the convolutions that a GPU runs, emulated on the fake device: what the schedule hands them, in the
// arena as it is planned, gives the interpreter's bits. And how many launches a graph has.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/plan.h"
#include "kernels/int8/conv2d/cuda/pooled_conv.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/fake_kernels.h"
#include "runtime/cuda/testing.h"
#include "runtime/int8_graph_builder.h"

namespace fuselage::runtime::cuda {
namespace {

namespace conv2d = int8::conv2d;
using conv2d::cuda::Launch;
using conv2d::cuda::Plan;
using ir::Node;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class EmulatedConv final : public kernels::Kernel {
 public:
  EmulatedConv(const kernels::KernelDesc& desc, Plan plan) : Kernel(desc), plan_(std::move(plan)) {
    set_variant(plan_.name());
    set_scratch_bytes(plan_.scratch_bytes());
    tickets_.resize(plan_.tickets());
    const int64_t bytes = (plan_.constants().size() + Plan::kAlignment - 1) / Plan::kAlignment * Plan::kAlignment;
    constants_.reset(static_cast<uint8_t*>(std::aligned_alloc(Plan::kAlignment, bytes)));
    std::memcpy(constants_.get(), plan_.constants().data(), plan_.constants().size());
  }

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    for (const Launch& launch : plan_.launches()) {
      FakeApi::Launch(context.stream, [this, &launch, input = inputs[0],
                                       residual = inputs.size() > 1 ? inputs[1] : kernels::ConstBuffer(),
                                       output = outputs[0], scratch = context.scratch] {
        fuselage::cuda::Emulator emulator;
        emulator.AllowReads("input", input.data, input.bytes);
        emulator.AllowReads("residual", residual.data, residual.bytes);
        emulator.AllowConstants("constants", constants_.get(), static_cast<int64_t>(plan_.constants().size()));
        emulator.AllowWrites("output", output.data, output.bytes);
        emulator.AllowWrites("scratch", scratch.data, scratch.bytes);
        emulator.AllowTickets("tickets", tickets_.data(), plan_.tickets());
        const conv2d::Arguments arguments = {input.data, residual.data, output.data};
        const Launch bound = plan_.Bind(launch, arguments, {constants_.get(), scratch.data, tickets_.data()});
        conv2d::cuda::WithKernel(bound.id, [&](auto kernel) {
          emulator.Launch<decltype(kernel)>(bound.grid, bound.shared_bytes, bound.params, bound.clusters());
        });
        EXPECT_EQ(emulator.error(), "") << plan_.name();
      });
    }
  }

  const Plan plan_;
  std::unique_ptr<uint8_t, Free> constants_;
  mutable std::vector<uint32_t> tickets_;
};

// Launches what the GPU's convolution does, without its work.
class LaunchedConv final : public kernels::Kernel {
 public:
  LaunchedConv(const kernels::KernelDesc& desc, Plan plan) : Kernel(desc), plan_(std::move(plan)) {
    set_variant(plan_.name());
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer>, absl::Span<const kernels::Buffer>,
               const kernels::RunContext& context) const override {
    for (size_t i = 0; i < plan_.launches().size(); ++i) FakeApi::Launch(context.stream, [] {});
  }

  const Plan plan_;
};

template <typename Conv>
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateConv(const kernels::KernelDesc& desc) {
  conv2d::cuda::PooledConv parts;
  const bool pooled = desc.op == "int8.conv2d_max_pool2d";
  if (pooled) {
    ASSIGN_OR_RETURN(parts, conv2d::cuda::SplitPool(desc));
  }
  ASSIGN_OR_RETURN(const conv2d::Problem problem, conv2d::ProblemOf(pooled ? parts.conv : desc));
  ASSIGN_OR_RETURN(Plan plan, Plan::Make(problem, pooled ? &parts.pool : nullptr, fuselage::cuda::kH100));
  return std::make_unique<Conv>(desc, std::move(plan));
}

class Emulated : public ::testing::Test {
 protected:
  Emulated() { ops::RegisterAll(ops_); }

  void SetUp() override { ASSERT_OK_AND_ASSIGN(device_, Device::Open(&api_)); }

  // The fake kernels, but for convolutions.
  template <typename Conv>
  void Register() {
    kernels::KernelRegistry fakes;
    RegisterFakeKernels(ops_, &launches_, fakes);
    for (const kernels::KernelEntry* entry : fakes.Sorted()) {
      kernels::KernelEntry copy = *entry;
      if (copy.op == "int8.conv2d" || copy.op == "int8.conv2d_max_pool2d") copy.create = CreateConv<Conv>;
      kernels_.Register(std::move(copy));
    }
  }

  ir::OpRegistry ops_;
  std::atomic<int> launches_ = 0;
  kernels::KernelRegistry kernels_;
  FakeApi api_;
  std::unique_ptr<Device> device_;
};

TEST_F(Emulated, ANetworkOfTheGpusConvolutions) {
  Register<EmulatedConv>();
  std::set<std::string> variants;
  for (int channels : {8, 32, 80}) {
    GraphBuilder g(ops_);
    const ir::Graph& graph = ResidualNetwork(g, channels);
    ASSERT_OK_AND_ASSIGN(const auto executable, CreateExecutable(graph, kernels_, device_.get()));
    for (uint64_t seed : {1, 2}) ExpectMatchesInterpreter(graph, *executable, seed);
    for (const StepProfile& step : executable->profile()) variants.insert(step.variant);
  }
  EXPECT_THAT(variants, IsSupersetOf({HasSubstr("cuda stem"), HasSubstr("cuda gemm"), HasSubstr("teams")}));
}

// Its gaps are what a launch costs: at batch 1 most convolutions are split, and still one launch each.
TEST_F(Emulated, ResNet18HasALaunchForEachOperator) {
  Register<LaunchedConv>();
  DeviceOptions options;
  options.overlap_kernels = true;
  ASSERT_OK_AND_ASSIGN(device_, Device::Open(&api_, options));
  Int8GraphBuilder g(ops_, DType::kU8);
  Node* stem = g.ConvMaxPool(g.Quantized({1, 3, 224, 224}),
                             {.channels = 64, .kernel = 7, .stride = 2, .padding = 3, .relu = true});
  const ir::Graph& graph = g.Output({g.GlobalAveragePoolLinear(g.ResNet18Blocks(stem), 1000, true)});
  ASSERT_OK_AND_ASSIGN(const auto executable, CreateExecutable(graph, kernels_, device_.get()));
  EXPECT_EQ(api_.captured_nodes(), 1 + 1 + (16 + 3) + 1) << "quantize, stem, convolutions, head";
  const std::vector<Overlap>& overlaps = api_.captured_overlaps();
  EXPECT_EQ(std::count(overlaps.begin(), overlaps.end(), Overlap::kNone), 1) << "the first";
  EXPECT_EQ(std::count(overlaps.begin(), overlaps.end(), Overlap::kBeside), 3) << "those of shortcuts";
  int clusters = 0;
  for (const StepProfile& step : executable->profile()) clusters += absl::StrContains(step.variant, "cluster");
  EXPECT_GT(clusters, 0);
}

}  // namespace
}  // namespace fuselage::runtime::cuda
