#include "kernels/int8/global_avg_pool_linear/cuda/global_avg_pool_linear_cuda.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/global_avg_pool_linear/cuda/create.h"
#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear.h"
#include "kernels/int8/global_avg_pool_linear/global_avg_pool_linear_cases.h"

namespace fuselage::int8::global_avg_pool_linear::cuda {
namespace {

using GlobalAvgPoolLinearCuda = ::fuselage::cuda::CudaTest;

// Both ways, whatever the number of images.
const Options kFused = {std::numeric_limits<int64_t>::max()}, kParts = {-1};

void ExpectBytesOfCpu(const Case& c, uint64_t seed = 1) {
  Layer layer(c, seed);
  const Tensor x = SeededTensor(layer.whole.input(0), seed + 7);
  for (const Options& options : {kFused, kParts}) {
    ::fuselage::cuda::ExpectBytesOf(global_avg_pool_linear::Create, Create(layer.whole, options), layer.whole, {&x});
    if (::testing::Test::HasFatalFailure()) FAIL() << ToString(c);
  }
}

TEST_F(GlobalAvgPoolLinearCuda, ResNetHeads) {
  Case c;
  c.classes = 1000;
  for (const int64_t channels : {512, 2048}) {
    c.input = {1, channels, 7, 7};
    ExpectBytesOfCpu(c);
  }
  c.input = {5, 512, 7, 7};
  ExpectBytesOfCpu(c);
}

TEST_F(GlobalAvgPoolLinearCuda, AnyTypes) {
  for (const Case& c : TypeCases()) {
    ExpectBytesOfCpu(c);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GlobalAvgPoolLinearCuda, RandomShapes) {
  uint64_t seed = 0;
  for (const Case& c : RandomCases()) {
    ExpectBytesOfCpu(c, seed++);
    if (HasFatalFailure()) return;
  }
}

// More channels than threads take at once, and then more than shared memory holds.
TEST_F(GlobalAvgPoolLinearCuda, ManyChannels) {
  for (const int64_t channels : {4100, 9000, 12000}) {
    Case c;
    c.input = {1, channels, 2, 2};
    c.classes = 9;
    ExpectBytesOfCpu(c);
  }
}

TEST_F(GlobalAvgPoolLinearCuda, FewImagesTakeOneKernel) {
  const auto variant = [](int64_t images) {
    Case c;
    c.input = {images, 512, 7, 7};
    c.classes = 1000;
    return (*Create(Layer(c).whole))->variant();
  };
  EXPECT_EQ(variant(1), "cuda fused");
  EXPECT_EQ(variant(64).substr(0, 8), "cuda mma");
}

TEST_F(GlobalAvgPoolLinearCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(global_avg_pool_linear::Register, RegisterCuda);
  Layer layer{Case()};
  layer.whole.attributes.insert_or_assign("activation", "elu");
  EXPECT_EQ(Create(layer.whole).status(), global_avg_pool_linear::Create(layer.whole).status());
}

}  // namespace
}  // namespace fuselage::int8::global_avg_pool_linear::cuda
