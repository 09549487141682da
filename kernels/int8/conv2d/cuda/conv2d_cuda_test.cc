// On a device: every kernel against the CPU's, byte for byte. Without one: Create says so.
#include <vector>

#include "gtest/gtest.h"
#include "third_party/cuda/testing/no_gpu.h"

#if FUSELAGE_CUDA
#include "kernels/cuda/device.h"
#include "kernels/int8/conv2d/cuda/conv2d_cuda.h"
#include "kernels/int8/conv2d/cuda/testing.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

using ::fuselage::cuda::CurrentDevice;
using ::fuselage::cuda::DeviceBuffer;
using ::fuselage::cuda::ToStatus;

class Conv2dCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CurrentDevice().ok()) FUSELAGE_NO_GPU("no CUDA device");
  }
};

absl::StatusOr<std::vector<uint8_t>> OnDevice(const kernels::KernelDesc& desc, const Instance& instance,
                                              const PlanOptions& options) {
  ASSIGN_OR_RETURN(const auto kernel, Create(desc, options));
  ASSIGN_OR_RETURN(const auto input, DeviceBuffer::Upload(instance.input.data(), instance.input.size(), "the input"));
  DeviceBuffer residual, scratch;
  if (!instance.residual.empty()) {
    ASSIGN_OR_RETURN(residual,
                     DeviceBuffer::Upload(instance.residual.data(), instance.residual.size(), "the residual"));
  }
  if (kernel->scratch_bytes() > 0) {
    ASSIGN_OR_RETURN(scratch, DeviceBuffer::Allocate(kernel->scratch_bytes(), "scratch"));
  }
  ASSIGN_OR_RETURN(const auto output, DeviceBuffer::Allocate(kernel->outputs()[0].byte_size(), "the output"));
  kernels::Serial serial;
  kernels::RunContext context;
  context.parallel = &serial;
  context.scratch = {scratch.data(), scratch.bytes()};
  const kernels::ConstBuffer inputs[] = {{input.data(), input.bytes()}, {residual.data(), residual.bytes()}};
  RETURN_IF_ERROR(
      kernel->Run(absl::MakeConstSpan(inputs, desc.inputs.size()), {{output.data(), output.bytes()}}, context));
  RETURN_IF_ERROR(ToStatus(cudaGetLastError(), kernel->variant()));
  std::vector<uint8_t> bytes(output.bytes());
  RETURN_IF_ERROR(
      ToStatus(cudaMemcpy(bytes.data(), output.data(), bytes.size(), cudaMemcpyDeviceToHost), kernel->variant()));
  return bytes;
}

void ExpectEqualsCpu(const Case& c, uint64_t seed, const PlanOptions& options = {},
                     const kernels::PoolWindow* pool = nullptr) {
  const Instance instance(c, seed);
  const auto bytes = OnDevice(pool == nullptr ? instance.Desc() : PooledDesc(instance, *pool), instance, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status() << " " << c.ToString();
  EXPECT_TRUE(*bytes == OnCpu(instance, pool)) << "differs: " << c.ToString();
}

TEST(Conv2dCudaCreateTest, SaysThatThereIsNoDevice) {
  if (CurrentDevice().ok()) GTEST_SKIP() << "there is a CUDA device";
  const auto kernel = Create(Instance(Case(), 1).Desc());
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnavailable) << kernel.status();
}

TEST(Conv2dCudaCreateTest, DeclinesWhatIsScaledBehindAFunction) {
  Case c;
  c.activation = ParseActivation("silu").value();
  c.post = true;
  const auto kernel = Create(Instance(c, 1).Desc());
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented) << kernel.status();
}

TEST_F(Conv2dCudaTest, ResNet18) {
  for (int batch : {1, 3, 16}) {
    for (const Case& c : ResNet18(batch)) ExpectEqualsCpu(c, batch);
  }
}

TEST_F(Conv2dCudaTest, EveryTileAndSplit) {
  const int tiles = CurrentDevice()->sm == 90 ? kTileCount : kFirstHopperTile;
  for (int i = 0; i < 400; ++i) {
    const bool halo = kTiles[i % tiles].halo;
    PlanOptions options;
    options.family = Family::kGemm;
    const Case c = halo ? RandomHaloCase(i) : RandomCase(i, 16, /*groups=*/false);
    options.tiling = TilingFor(c, i % tiles, 1 + i / tiles % 5);
    ExpectEqualsCpu(c, i, options);
  }
}

TEST_F(Conv2dCudaTest, Clusters) {
  if (CurrentDevice()->sm < 90) GTEST_SKIP() << "no clusters before sm_90";
  int ran = 0;
  for (int i = 0; i < 120; ++i) {
    Case c = RandomCase(500 + i, 16, /*groups=*/false);
    c.in_channels = 128 * (1 + i % 8);
    PlanOptions options;
    options.family = Family::kGemm;
    options.tiling = Tiling{kLeastTile + i / 3 % 2, 2 << i % 3, /*clusters=*/true};
    // Too few steps for so many splits, or too many for a ShortGemm.
    if (absl::IsFailedPrecondition(PlanOf(Instance(c, i).Desc(), options).status())) continue;
    ++ran;
    ExpectEqualsCpu(c, i, options);
  }
  EXPECT_GT(ran, 40);
}

TEST_F(Conv2dCudaTest, HalosOfWideImages) {
  const int tiles = CurrentDevice()->sm == 90 ? kTileCount : kFirstHopperTile;
  for (int tile = 0; tile < tiles; ++tile) {
    if (!kTiles[tile].halo) continue;
    PlanOptions options;
    options.tiling = Tiling{tile, 1};
    for (const int width : {60, 100, 199}) {
      Case c = SquareCase(width == 60 ? 128 : 48, /*size=*/40, /*out_channels=*/80, /*kernel=*/3, /*stride=*/1);
      c.width = width;
      c.residual_type = DType::kU8;
      ExpectEqualsCpu(c, width, options);
    }
  }
}

TEST_F(Conv2dCudaTest, RandomShapes) {
  for (int i = 0; i < 400; ++i) {
    Case c = RandomCase(1000 + i, 1, /*groups=*/i % 4 == 0);
    if (i % 4 == 1) c.in_channels = 1 + i % 3;
    if (i % 4 == 2) c.in_channels = (1 + i % 9) * 8;
    ExpectEqualsCpu(c, i);
  }
}

TEST_F(Conv2dCudaTest, Groups) {
  for (int i = 0; i < 200; ++i) ExpectEqualsCpu(RandomGroupedCase(7000 + i), i);
  PlanOptions halo;
  halo.tiling = Tiling{kHaloTile, 1};
  for (int i = 0; i < 40; ++i) {
    const int channels = 8 << i % 3;
    ExpectEqualsCpu(WithGroups(RandomHaloCase(i), 4 + i % 5 * 2, channels, channels), i, halo);
  }
}

TEST_F(Conv2dCudaTest, Depthwise) {
  PlanOptions options;
  options.family = Family::kDepthwise;
  for (int i = 0; i < 200; ++i) ExpectEqualsCpu(RandomDepthwiseCase(6000 + i), i, options);
}

TEST_F(Conv2dCudaTest, TheDirectKernelIsAnOracle) {
  PlanOptions direct;
  direct.family = Family::kDirect;
  for (int i = 0; i < 100; ++i) ExpectEqualsCpu(RandomCase(2000 + i, 1, /*groups=*/i % 2 == 0), i, direct);
}

TEST_F(Conv2dCudaTest, Pools) {
  for (int batch : {1, 16, 64}) {
    const Case c = ResNet18(batch)[0];
    const kernels::PoolWindow pool = SquarePool(c, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
    ExpectEqualsCpu(c, 1, {}, &pool);
  }
  for (int i = 0; i < 200; ++i) {
    Case c = RandomCase(4000 + i, 1, /*groups=*/i % 8 == 0);
    if (i % 2 == 1) c.in_channels = 1 + i / 2 % 4;
    c.residual_type.reset();
    if (c.output_type == DType::kF32) c.output_type = DType::kU8;
    const kernels::PoolWindow pool = RandomPool(i, c);
    ExpectEqualsCpu(c, i, {}, &pool);
  }
}

TEST_F(Conv2dCudaTest, PooledStems) {
  for (int i = 0; i < 200; ++i) {
    const PooledStemCase stem = RandomPooledStem(9000 + i, i % 2 == 0 ? kFewTapRows : kMostTapRows);
    PlanOptions options;
    options.segment = 1 + i / 2 % 9;
    ExpectEqualsCpu(stem.conv, i, options, &stem.pool);
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d::cuda
#else
TEST(Conv2dCudaTest, NeedsAToolkit) { FUSELAGE_NO_GPU("no CUDA toolkit on this machine"); }
#endif
