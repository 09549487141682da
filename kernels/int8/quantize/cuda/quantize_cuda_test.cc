#include "kernels/int8/quantize/cuda/quantize_cuda.h"

#include <cstring>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/quantize/quantize.h"
#include "kernels/int8/quantize/quantize_cases.h"

namespace fuselage::int8::quantize::cuda {
namespace {

using ::fuselage::cuda::ExpectBytesOf;
using QuantizeCuda = ::fuselage::cuda::CudaTest;
using ::fuselage::cuda::CreateRegistered;

// Ties, their neighbours, infinities, NaNs.
TEST_F(QuantizeCuda, HasTheBytesOfTheCpuOnEdgeValues) {
  for (const Target& t : kTargets) {
    const std::vector<float> values = Values(t.scale);
    const int64_t n = static_cast<int64_t>(values.size());
    const KernelDesc desc = Desc(Floats({n}), Codes(t.dtype, {n}, t.scale, t.zero_point));
    const Tensor x = Tensor::Of<float>({n}, values);
    ExpectBytesOf(quantize::Create, CreateRegistered(RegisterCuda, desc), desc, {&x});
    if (HasFatalFailure()) return;
  }
}

TEST_F(QuantizeCuda, AnyShape) {
  for (const int64_t batch : {0, 1, 3}) {
    for (const int64_t channels : {1, 2, 3, 4, 5, 8, 17}) {
      for (const int64_t width : {1, 2, 3, 4, 5, 7, 8, 64, 65}) {
        for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
          const Shape shape = {batch, channels, 2, width};
          ExpectBytesOf(quantize::Create, RegisterCuda,
                        Desc(Floats(shape, layout), Codes(DType::kI8, shape, 0.01f, -9, Layout::kNhwc)));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Also the zero point between the pixels' channels.
TEST_F(QuantizeCuda, PixelsWithGaps) {
  for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
    for (const int64_t channels : {1, 2, 3, 4, 5, 13}) {
      for (const int pixel_bytes : {3, 4, 8, 15, 16}) {
        for (const Shape& shape : {Shape{2, channels, 1, 1}, Shape{2, channels, 3, 1}, Shape{2, channels, 3, 9}}) {
          if (pixel_bytes < channels) continue;
          KernelDesc desc = Desc(Floats(shape, layout), Codes(DType::kI8, shape, 0.01f, -9, Layout::kNhwc));
          const Tensor x = SeededTensor(desc.input(0), 4);
          const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**quantize::Create(desc), {&x});
          ASSERT_TRUE(wanted.ok()) << wanted.status();
          desc.output_placement.pixel_bytes = pixel_bytes;
          const auto kernel = CreateRegistered(RegisterCuda, desc);
          ASSERT_TRUE(kernel.ok()) << kernel.status();
          const auto found = ::fuselage::cuda::RunCudaKernel(**kernel, desc, {&x});
          ASSERT_TRUE(found.ok()) << found.status();
          const auto* dense = static_cast<const uint8_t*>(wanted->raw_data());
          for (int64_t pixel = 0; pixel < 2 * shape[2] * shape[3]; ++pixel) {
            for (int c = 0; c < pixel_bytes; ++c) {
              const uint8_t code = c < channels ? dense[pixel * channels + c] : static_cast<uint8_t>(-9);
              ASSERT_EQ((*found)[0][pixel * pixel_bytes + c], code) << ToString(desc.input(0)) << pixel_bytes;
            }
          }
        }
      }
    }
  }
}

TEST_F(QuantizeCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(quantize::Register, RegisterCuda);
  const KernelDesc desc = Desc(Floats({2}), Codes(DType::kU8, {3}, 1, 0));
  EXPECT_EQ(CreateRegistered(RegisterCuda, desc).status(), quantize::Create(desc).status());
  for (const kernels::Placement& placement :
       {kernels::Placement{kernels::Blocking::kNone, 1, 4}, kernels::Placement{kernels::Blocking::kSpaceToDepth, 0, 0},
        kernels::Placement{kernels::Blocking::kNone, 0, 2}}) {
    KernelDesc placed = Desc(Floats({1, 3, 4, 4}), Codes(DType::kU8, {1, 3, 4, 4}, 1, 0, Layout::kNhwc));
    placed.output_placement = placement;
    EXPECT_EQ(CreateRegistered(RegisterCuda, placed).status().code(), absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace fuselage::int8::quantize::cuda
