#include "kernels/int8/dequantize/cuda/dequantize_cuda.h"

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/dequantize/dequantize.h"
#include "kernels/int8/dequantize/dequantize_cases.h"

namespace fuselage::int8::dequantize::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using DequantizeCuda = ::fuselage::cuda::CudaTest;

TEST_F(DequantizeCuda, HasTheBytesOfTheCpuForEveryCode) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const int32_t least = static_cast<int32_t>(RangeOf(dtype).min);
    for (const int32_t zero_point : {least, least + 100, least + 255}) {
      const KernelDesc desc = Desc(Codes(dtype, {256}, 0.0123f, zero_point), Floats({256}));
      Tensor x(desc.input(0));
      for (int i = 0; i < 256; ++i) x.Set(i, least + i);
      ExpectBytesOf(dequantize::Create, ::fuselage::cuda::CreateRegistered(RegisterCuda, desc), desc, {&x});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(DequantizeCuda, AnyShape) {
  for (const int64_t batch : {0, 1, 3}) {
    for (const int64_t channels : {1, 2, 3, 4, 5, 8, 17}) {
      for (const int64_t width : {1, 2, 3, 4, 5, 7, 8, 64, 65}) {
        for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
          const Shape shape = {batch, channels, 2, width};
          ExpectBytesOf(dequantize::Create, RegisterCuda,
                        Desc(Codes(DType::kI8, shape, 0.0123f, 77, Layout::kNhwc), Floats(shape, layout)));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(DequantizeCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(dequantize::Register, RegisterCuda);
  const KernelDesc desc = Desc(Codes(DType::kU8, {2}, 1, 0), Floats({3}));
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, desc).status(), dequantize::Create(desc).status());
}

}  // namespace
}  // namespace fuselage::int8::dequantize::cuda
