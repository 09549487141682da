#include "kernels/cast/cuda/cast_cuda.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"

namespace fuselage::cast::cuda {
namespace {

using CastCuda = ::fuselage::cuda::CudaTest;

kernels::KernelDesc Desc(TensorType from, DType to) {
  kernels::KernelDesc desc;
  desc.op = "to";
  desc.attributes = {{"dtype", Attribute(to)}};
  desc.inputs = {from};
  from.dtype = to;
  desc.outputs = {from};
  return desc;
}

// As the reference casts; of NaN any.
void ExpectCast(const Tensor& x, DType to) {
  const kernels::KernelDesc desc = Desc(x.type(), to);
  const auto kernel = ::fuselage::cuda::CreateRegistered(RegisterCuda, desc);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto found = ::fuselage::cuda::RunCudaKernel(**kernel, desc, {&x});
  ASSERT_TRUE(found.ok()) << found.status();
  const Tensor wanted = ::fuselage::Cast(x, to);
  ASSERT_EQ(static_cast<int64_t>((*found)[0].size()), wanted.byte_size());
  Tensor y(wanted.type());
  if (y.byte_size() > 0) std::memcpy(y.raw_data(), (*found)[0].data(), y.byte_size());
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    if (std::isnan(x.At(i))) {
      ASSERT_TRUE(std::isnan(y.At(i))) << "element " << i;
      continue;
    }
    ASSERT_EQ(y.At(i), wanted.At(i)) << x.At(i);
    ASSERT_EQ(std::signbit(y.At(i)), std::signbit(wanted.At(i))) << x.At(i);
  }
}

TEST_F(CastCuda, EveryHalf) {
  Tensor halves(DType::kF16, {1 << 16});
  for (int i = 0; i < 1 << 16; ++i) halves.data<Half>()[i].bits = static_cast<uint16_t>(i);
  ExpectCast(halves, DType::kF32);
  ExpectCast(::fuselage::Cast(halves, DType::kF32), DType::kF16);
}

// Halfway between each half and the next one away from zero (beyond the largest: what would be next), and the floats
// beside it.
TEST_F(CastCuda, EveryTie) {
  constexpr int kFinite = 0x7c00;
  Tensor x(DType::kF32, {kFinite * 6});
  float* values = x.data<float>();
  for (int i = 0; i < kFinite; ++i) {
    const float here = ToFloat(Half{static_cast<uint16_t>(i)});
    const float next = i + 1 == kFinite ? 65536.0f : ToFloat(Half{static_cast<uint16_t>(i + 1)});
    const float tie = (here + next) / 2;
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e9f)}) {
      *values++ = value;
      *values++ = -value;
    }
  }
  ExpectCast(x, DType::kF16);
}

TEST_F(CastCuda, AnyLength) {
  for (const int64_t elements : {0, 1, 2, 3, 4, 5, 7, 8, 1023, 1025}) {
    const TensorType floats = kernels::Floats({elements});
    ExpectCast(SeededTensor(floats, 1), DType::kF16);
    ExpectCast(::fuselage::Cast(SeededTensor(floats, 1), DType::kF16), DType::kF32);
    if (HasFatalFailure()) FAIL() << elements;
  }
}

TEST_F(CastCuda, DeclinesOtherTypes) {
  const auto kernel = ::fuselage::cuda::CreateRegistered(RegisterCuda, Desc(kernels::Floats({2}), DType::kI32));
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented) << kernel.status();
}

}  // namespace
}  // namespace fuselage::cast::cuda
