#include "kernels/int8/avgpool_linear/cuda/avgpool_linear_cuda.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/avgpool_linear/avgpool_linear.h"
#include "kernels/int8/avgpool_linear/avgpool_linear_cases.h"
#include "kernels/int8/avgpool_linear/cuda/create.h"

namespace fuselage::int8::avgpool_linear::cuda {
namespace {

using AvgPoolLinearCuda = ::fuselage::cuda::CudaTest;

// Both ways, whatever the number of images.
const Options kFused = {std::numeric_limits<int64_t>::max()}, kParts = {-1};

void ExpectBytesOfCpu(const Case& c, uint64_t seed = 1) {
  Layer layer(c, seed);
  const Tensor x = SeededTensor(layer.whole.input(0), seed + 7);
  for (const Options& options : {kFused, kParts}) {
    ::fuselage::cuda::ExpectBytesOf(avgpool_linear::Create, Create(layer.whole, options), layer.whole, {&x});
    if (::testing::Test::HasFatalFailure()) FAIL() << ToString(c);
  }
}

TEST_F(AvgPoolLinearCuda, ResNetHeads) {
  Case c;
  c.classes = 1000;
  for (const int64_t channels : {512, 2048}) {
    c.input = {1, channels, 7, 7};
    ExpectBytesOfCpu(c);
  }
  c.input = {5, 512, 7, 7};
  ExpectBytesOfCpu(c);
}

TEST_F(AvgPoolLinearCuda, AnyTypes) {
  for (const Case& c : TypeCases()) {
    ExpectBytesOfCpu(c);
    if (HasFatalFailure()) return;
  }
}

TEST_F(AvgPoolLinearCuda, RandomShapes) {
  uint64_t seed = 0;
  for (const Case& c : RandomCases()) {
    ExpectBytesOfCpu(c, seed++);
    if (HasFatalFailure()) return;
  }
}

// More channels than threads take at once, and then more than shared memory holds.
TEST_F(AvgPoolLinearCuda, ManyChannels) {
  for (const int64_t channels : {4100, 9000, 12000}) {
    Case c;
    c.input = {1, channels, 2, 2};
    c.classes = 9;
    ExpectBytesOfCpu(c);
  }
}

TEST_F(AvgPoolLinearCuda, FewImagesTakeOneKernel) {
  const auto variant = [](int64_t images) {
    Case c;
    c.input = {images, 512, 7, 7};
    c.classes = 1000;
    return (*Create(Layer(c).whole))->variant();
  };
  EXPECT_EQ(variant(1), "cuda fused");
  EXPECT_EQ(variant(64).substr(0, 8), "cuda mma");
}

TEST_F(AvgPoolLinearCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(avgpool_linear::Register, RegisterCuda);
  Layer layer{Case()};
  layer.whole.attributes.insert_or_assign("activation", "elu");
  EXPECT_EQ(Create(layer.whole).status(), avgpool_linear::Create(layer.whole).status());
}

}  // namespace
}  // namespace fuselage::int8::avgpool_linear::cuda
