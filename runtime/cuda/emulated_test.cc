// A network through the convolutions that a GPU runs, emulated on the fake device: what the schedule hands them, in the
// arena as it is planned, gives the interpreter's bits.
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/plan.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/fake_kernels.h"
#include "runtime/cuda/testing.h"

namespace fuselage::runtime::cuda {
namespace {

namespace conv2d = int8::conv2d;
using conv2d::cuda::Launch;
using conv2d::cuda::Plan;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class EmulatedConv final : public kernels::Kernel {
 public:
  EmulatedConv(const kernels::KernelDesc& desc, Plan plan) : Kernel(desc), plan_(std::move(plan)) {
    set_variant(plan_.name());
    set_scratch_bytes(plan_.scratch_bytes());
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
    FakeApi::Launch(
        context.stream, [this, input = inputs[0], residual = inputs.size() > 1 ? inputs[1] : kernels::ConstBuffer(),
                         output = outputs[0], scratch = context.scratch] {
          fuselage::cuda::Emulator emulator;
          emulator.AllowReads("input", input.data, input.bytes);
          emulator.AllowReads("residual", residual.data, residual.bytes);
          emulator.AllowConstants("constants", constants_.get(), static_cast<int64_t>(plan_.constants().size()));
          emulator.AllowWrites("output", output.data, output.bytes);
          emulator.AllowWrites("scratch", scratch.data, scratch.bytes);
          conv2d::Arguments arguments;
          arguments.input = input.data;
          arguments.residual = residual.data;
          arguments.output = output.data;
          for (const Launch& launch : plan_.launches()) {
            const Launch bound = plan_.Bind(launch, arguments, constants_.get(), scratch.data);
            conv2d::cuda::WithKernel(bound.id, [&](auto kernel) {
              emulator.Launch<decltype(kernel)>(bound.grid, bound.shared_bytes, bound.params);
            });
          }
          EXPECT_EQ(emulator.error(), "") << plan_.name();
        });
  }

  const Plan plan_;
  std::unique_ptr<uint8_t, Free> constants_;
};

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateEmulated(const kernels::KernelDesc& desc) {
  ASSIGN_OR_RETURN(const conv2d::Problem problem, conv2d::ProblemOf(desc));
  ASSIGN_OR_RETURN(Plan plan, Plan::Make(problem, nullptr, fuselage::cuda::kH100));
  return std::make_unique<EmulatedConv>(desc, std::move(plan));
}

TEST(Emulated, ANetworkOfTheGpusConvolutions) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  int launches = 0;
  kernels::KernelRegistry fakes, kernels;
  RegisterFakeKernels(ops, &launches, fakes);
  for (const kernels::KernelEntry* entry : fakes.Sorted()) {
    kernels::KernelEntry copy = *entry;
    if (copy.op == "int8.conv2d") copy.create = CreateEmulated;
    kernels.Register(std::move(copy));
  }
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(const auto device, Device::Open(&api));
  std::set<std::string> variants;
  for (int channels : {8, 32, 80}) {
    GraphBuilder g(ops);
    const ir::Graph& graph = ResidualNetwork(g, channels);
    ASSERT_OK_AND_ASSIGN(const auto executable, CreateExecutable(graph, kernels, device.get()));
    for (uint64_t seed : {1, 2}) ExpectMatchesInterpreter(graph, *executable, seed);
    for (const StepProfile& step : executable->profile()) variants.insert(step.variant);
  }
  EXPECT_THAT(variants, IsSupersetOf({HasSubstr("cuda stem"), HasSubstr("cuda gemm")}));
}

}  // namespace
}  // namespace fuselage::runtime::cuda
