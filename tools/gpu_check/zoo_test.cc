// Networks run whole on CUDA's kernels, emulated on the fake device, with the bits that they have on the CPU. Only
// convolutions, whose emulation is tested elsewhere, are evaluated by their reference.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/library.h"
#include "frontend/onnx/model_builder.h"
#include "gtest/gtest.h"
#include "harness/base/files.h"
#include "harness/load_config.h"
#include "harness/recorder.h"
#include "harness/run.h"
#include "harness/testing/testing.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "kernels/cuda/testing/emulated.h"
#include "kernels/register_all_emulated.h"
#include "runtime/cuda/fake_kernels.h"

namespace fuselage::gpu_check {
namespace {

using runtime::cuda::FakeApi;

// A kernel in the emulation, launched on the fake device.
class OnFakeDevice final : public kernels::Kernel {
 public:
  OnFakeDevice(const kernels::KernelDesc& desc, std::unique_ptr<kernels::Kernel> kernel)
      : Kernel(desc), kernel_(std::move(kernel)) {
    set_variant(kernel_->variant());
    set_scratch_bytes(kernel_->scratch_bytes());
    set_weight_bytes(kernel_->weight_bytes());
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    std::vector<kernels::ConstBuffer> in(inputs.begin(), inputs.end());
    std::vector<kernels::Buffer> out(outputs.begin(), outputs.end());
    FakeApi::Launch(context.stream, [this, in = std::move(in), out = std::move(out), scratch = context.scratch] {
      cuda::Emulator emulator;
      for (const auto& [data, bytes] : in) emulator.AllowReads("an input", data, bytes);
      for (const auto& [data, bytes] : out) emulator.AllowWrites("an output", data, bytes);
      emulator.AllowWrites("scratch memory", scratch.data, scratch.bytes);
      cuda::AllowUploads(&emulator);
      kernels::Serial serial;
      EXPECT_OK(kernel_->Run(in, out, {&serial, scratch, &emulator}));
      EXPECT_EQ(emulator.error(), "") << kernel_->variant();
    });
  }

  const std::unique_ptr<kernels::Kernel> kernel_;
};

class EmulatedBackend final : public runtime::cuda::Backend {
 public:
  explicit EmulatedBackend(std::unique_ptr<runtime::cuda::Device> device) : device_(std::move(device)) {
    kernels::KernelRegistry emulated, fakes;
    kernels::RegisterAllEmulated(emulated);
    for (const kernels::KernelEntry* entry : emulated.Sorted()) {
      kernels::KernelEntry launched = *entry;
      launched.create = [create = entry->create](
                            const kernels::KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
        ASSIGN_OR_RETURN(auto kernel, create(desc));
        return std::make_unique<OnFakeDevice>(desc, std::move(kernel));
      };
      kernels_.Register(std::move(launched));
    }
    ops::RegisterAll(ops_);
    runtime::cuda::RegisterFakeKernels(ops_, &launches_, fakes);
    kernels_.Register(*fakes.FindOrNull("int8.conv2d"));
  }

  runtime::cuda::Device& device() override { return *device_; }
  const kernels::KernelRegistry& kernels() const override { return kernels_; }

 private:
  ir::OpRegistry ops_;
  std::atomic<int> launches_ = 0;
  kernels::KernelRegistry kernels_;
  std::unique_ptr<runtime::cuda::Device> device_;
};

TEST(Zoo, AVisionTransformerHasTheBitsOfTheCpu) {
  harness::testing::UseFixedPeaks();
  const std::string folder = ::testing::TempDir() + "/zoo";
  ASSERT_OK(harness::MakeWritableFolder(folder));
  harness::testing::WriteTinyDataset(folder);
  harness::RunRequest request;
  request.search = harness::SearchPath::FromEnvironment();
  ASSERT_OK_AND_ASSIGN(auto loaded, harness::LoadConfig("harness/configs/vit.textproto", request.search,
                                                        compiler::BuiltIn().passes.OptionTypes()));
  request.config = loaded.config;
  HarnessConfig& config = request.config;
  config.clear_benchmark();
  config.clear_gates();
  auto& variants = *config.mutable_variants();
  variants.erase(std::remove_if(variants.begin(), variants.end(), [](const auto& one) { return one.has_pipeline(); }),
                 variants.end());
  config.set_slowest_layers(0);
  config.mutable_evaluation()->set_limit(1);
  config.mutable_evaluation()->set_batch(1);
  config.mutable_calibration()->set_images(4);
  config.mutable_dataset()->mutable_fashion_mnist()->set_path(folder);
  auto* variant = config.add_variants();
  variant->set_name("int8_cuda");
  variant->set_backend("cuda");
  FakeApi api;
  request.open_cuda = [&]() -> absl::StatusOr<std::unique_ptr<runtime::cuda::Backend>> {
    ASSIGN_OR_RETURN(auto device, runtime::cuda::Device::Open(&api));
    return std::make_unique<EmulatedBackend>(std::move(device));
  };
  harness::Recorder recorder(folder);
  std::ostringstream err;
  report::Progress progress(err, false);
  ASSERT_OK(harness::RunHarness(request, progress, recorder)) << err.str();
  const Results results = recorder.Snapshot();
  ASSERT_EQ(results.variants_size(), 3);
  EXPECT_EQ(results.variants(2).not_run(), "");
  EXPECT_NE(results.variants(2).logits_fingerprint(), "");
  EXPECT_EQ(results.variants(2).logits_fingerprint(), results.variants(1).logits_fingerprint());
}

// The output y of a network on the CPU and on the emulated device, of two samples.
void ExpectTheBitsOfTheCpu(const Model& model, const std::string& input, const Tensor& samples,
                           EmulatedBackend& backend) {
  SessionOptions cpu, cuda;
  cpu.batch = cuda.batch = 2;
  cuda.device = "cuda";
  cuda.cuda = &backend;
  Tensor found, wanted;
  for (const auto& [options, y] : {std::make_pair(cpu, &wanted), std::make_pair(cuda, &found)}) {
    ASSERT_OK_AND_ASSIGN(Session session, Prepare(model, options));
    ASSERT_OK(session.Run({{input, samples}}, {{"y", y}}));
  }
  EXPECT_TRUE(found.SameBytes(wanted));
}

TEST(Zoo, ConvolutionsOverVolumesHaveTheBitsOfTheCpu) {
  onnx::ModelBuilder builder(13);
  builder.Input("volume", {"N", 2, 5, 8, 6});
  auto weight = [&, seed = 0](const char* name, Shape shape) mutable {
    builder.Initializer(name, onnx::Seeded(std::move(shape), ++seed));
  };
  weight("k", {8, 2, 3, 3, 3}), weight("along", {8, 8, 3, 1, 1}), weight("depthwise", {8, 1, 3, 3, 3});
  weight("scale", {8}), weight("shift", {8}), weight("up", {8, 4, 3, 3, 3});
  builder.Node("Conv", {"volume", "k"}, {"a"}, "first").Ints("strides", {2, 1, 2}).Ints("pads", {1, 1, 1, 1, 1, 1});
  builder.Node("Relu", {"a"}, {"b"}, "relu");
  builder.Node("Conv", {"b", "along"}, {"c"}, "along").Ints("pads", {1, 0, 0, 1, 0, 0});
  builder.Node("InstanceNormalization", {"c", "scale", "shift"}, {"d"}, "norm").Node("Add", {"d", "b"}, {"e"}, "add");
  builder.Node("MaxPool", {"e"}, {"f"}, "pool").Ints("kernel_shape", {2, 2, 2}).Ints("strides", {1, 2, 1});
  builder.Node("Conv", {"f", "depthwise"}, {"g"}, "depthwise").Ints("pads", {1, 1, 1, 1, 1, 1}).Int("group", 8);
  builder.Node("ConvTranspose", {"g", "up"}, {"y"}, "up").Ints("strides", {2, 2, 2}).Ints("pads", {1, 1, 1, 1, 1, 1});
  builder.Output("y");
  const std::string path = ::testing::TempDir() + "/volumes.onnx";
  std::ofstream(path, std::ios::binary) << builder.Bytes();
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path));
  ASSERT_OK_AND_ASSIGN(const Model int8, Compile(network, {{"volume", onnx::Seeded({8, 2, 5, 8, 6}, 20)}}));
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, runtime::cuda::Device::Open(&api));
  EmulatedBackend backend(std::move(device));
  ExpectTheBitsOfTheCpu(int8, "volume", onnx::Seeded({2, 2, 5, 8, 6}, 21), backend);
  const std::string text = ir::Print(int8.graph());
  EXPECT_NE(text.find("stack_frames("), std::string::npos);
  EXPECT_EQ(text.find("conv3d"), std::string::npos);
}

// An image's bytes in, a recurrent layer over its pixels.
TEST(Zoo, BytesAndARecurrentLayerHaveTheBitsOfTheCpu) {
  onnx::ModelBuilder builder(13);
  builder.Input("image", {"N", 3, 8, 6}).Initializer("k", onnx::Seeded({16, 3, 3, 3}, 1));
  builder.Initializer("w", onnx::Seeded({2, 40, 16}, 2)).Initializer("r", onnx::Seeded({2, 40, 10}, 3));
  builder.Initializer("tokens", Tensor::Of<int64_t>({3}, {0, 16, 12}));
  builder.Node("Conv", {"image", "k"}, {"c"}, "conv").Ints("strides", {2, 2}).Ints("pads", {1, 1, 1, 1});
  builder.Node("Relu", {"c"}, {"a"}, "relu").Node("Reshape", {"a", "tokens"}, {"t"}, "reshape");
  builder.Node("Transpose", {"t"}, {"x"}, "transpose").Ints("perm", {2, 0, 1});
  builder.Node("LSTM", {"x", "w", "r"}, {"", "h"}, "lstm").Int("hidden_size", 10).String("direction", "bidirectional");
  builder.Node("Transpose", {"h"}, {"y"}, "last").Ints("perm", {1, 0, 2}).Output("y");
  const std::string path = ::testing::TempDir() + "/recurrent.onnx";
  std::ofstream(path, std::ios::binary) << builder.Bytes();
  LoadOptions load;
  load.bytes = ByteInput{/*pixels=*/true, {0.5f, 0.4f, 0.3f}, {0.2f}};
  ASSERT_OK_AND_ASSIGN(const Model network, Load(path, load));
  ASSERT_OK_AND_ASSIGN(const Model int8, Compile(network, {{"image", onnx::Seeded({8, 8, 6, 3}, 4, DType::kU8)}}));
  FakeApi api;
  ASSERT_OK_AND_ASSIGN(auto device, runtime::cuda::Device::Open(&api));
  EmulatedBackend backend(std::move(device));
  ExpectTheBitsOfTheCpu(int8, "image", onnx::Seeded({2, 8, 6, 3}, 5, DType::kU8), backend);
  EXPECT_EQ(cuda::DeviceBytes(), 0) << "the session has gone";
  SessionOptions cuda;
  cuda.batch = 2;
  cuda.device = "cuda";
  cuda.cuda = &backend;
  {
    // Of kernels' weights, too, the device has one copy, whatever the batch.
    ASSERT_OK_AND_ASSIGN(const Session first, Prepare(int8, cuda));
    const int64_t bytes = cuda::DeviceBytes();
    EXPECT_GT(bytes, 2 * 40 * (16 + 10)) << "the layer's matrices";
    std::vector<Session> others;
    for (int64_t batch : {2, 1, 3, 0}) {
      cuda.batch = batch;
      ASSERT_OK_AND_ASSIGN(Session session, Prepare(int8, cuda));
      if (batch == 0) {
        ASSERT_OK(session.OutputsAt(4));
      }
      others.push_back(std::move(session));
    }
    EXPECT_EQ(cuda::DeviceBytes(), bytes);
  }
  EXPECT_EQ(cuda::DeviceBytes(), 0);
  const std::string text = ir::Print(int8.graph());
  EXPECT_NE(text.find("int8.lookup("), std::string::npos);
  EXPECT_NE(text.find("int8.lstm("), std::string::npos);
}

}  // namespace
}  // namespace fuselage::gpu_check
