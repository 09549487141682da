#include "kernels/int8/lookup/cuda/lookup_cuda.h"

#include <utility>

#include "gtest/gtest.h"
#include "kernels/core/testing/testing.h"
#include "kernels/cuda/testing/testing.h"
#include "kernels/int8/lookup/lookup.h"
#include "kernels/int8/lookup/lookup_cases.h"

namespace fuselage::int8::lookup::cuda {
namespace {

using LookupCuda = ::fuselage::cuda::CudaTest;

TEST_F(LookupCuda, HasTheBytesOfTheCpu) {
  for (const KernelDesc& desc : Descs()) {
    ::fuselage::cuda::ExpectBytesOf(lookup::Create, RegisterCuda, desc);
    if (HasFatalFailure()) return;
  }
}

// Also the zero point between the pixels' channels.
TEST_F(LookupCuda, PixelsWithGaps) {
  for (const auto& [channels, tables] : {std::make_pair(2, 2), {3, 3}, {3, 1}, {5, 5}, {5, 1}}) {
    for (const int pixel_bytes : {3, 4, 8, 15}) {
      for (const Layout layout : {Layout::kRowMajor, Layout::kNhwc}) {
        if (pixel_bytes < channels) continue;
        KernelDesc desc = Desc({2, channels, 3, 9}, tables, layout, Layout::kNhwc, DType::kI8);
        const Tensor x = SeededTensor(desc.input(0), 4);
        const absl::StatusOr<Tensor> wanted = kernels::RunKernel(**lookup::Create(desc), {&x});
        ASSERT_TRUE(wanted.ok()) << wanted.status();
        desc.output_placement.pixel_bytes = pixel_bytes;
        const auto kernel = ::fuselage::cuda::CreateRegistered(RegisterCuda, desc);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        const auto found = ::fuselage::cuda::RunCudaKernel(**kernel, desc, {&x});
        ASSERT_TRUE(found.ok()) << found.status();
        const auto* dense = static_cast<const uint8_t*>(wanted->raw_data());
        for (int64_t pixel = 0; pixel < 54; ++pixel) {
          for (int c = 0; c < pixel_bytes; ++c) {
            ASSERT_EQ((*found)[0][pixel * pixel_bytes + c], c < channels ? dense[pixel * channels + c] : 7)
                << channels << " in " << pixel_bytes << ": " << pixel;
          }
        }
      }
    }
  }
}

TEST_F(LookupCuda, IsRegisteredAndDeclinesAsOnTheCpu) {
  ::fuselage::cuda::ExpectSameEntries(lookup::Register, RegisterCuda);
  const KernelDesc wrong = Desc({1, 3, 4, 4}, 2);
  EXPECT_EQ(::fuselage::cuda::CreateRegistered(RegisterCuda, wrong).status(), lookup::Create(wrong).status());
}

}  // namespace
}  // namespace fuselage::int8::lookup::cuda
