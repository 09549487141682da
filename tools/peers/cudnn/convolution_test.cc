// What of cuDNN's graph API a machine without a GPU can show: for an H200 that is described to it, its heuristics name
// engines, and these make plans. Skipped where cuDNN is not installed, or takes no descriptions.
#include "tools/peers/cudnn/convolution.h"

#include <dlfcn.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/testing/matchers.h"
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

namespace fuselage::peers::cudnn {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

#if defined(CUDNN_MAJOR) && CUDNN_MAJOR * 100 + CUDNN_MINOR >= 911
#define FUSELAGE_CUDNN_SAME(name, theirs, value) static_assert(static_cast<int>(theirs) == name, #theirs);
FUSELAGE_CUDNN_VALUES(FUSELAGE_CUDNN_SAME)
static_assert(CUDNN_BACKEND_TENSOR_DESCRIPTOR == kTensor);
#endif

constexpr char kH200[] =
    R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"totalGlobalMem":150000000000,)"
    R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
    R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
    R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,)"
    R"("deviceName":"NVIDIA H200"})";

class ConvolutionTest : public ::testing::Test {
 protected:
  // Before cuDNN looks for a driver: it finds the one that is loaded.
  static void SetUpTestSuite() {
    ASSERT_NE(dlopen("tools/peers/cudnn/testing/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  }

  void SetUp() override {
    const auto library = Library::Open();
    if (!library.ok()) GTEST_SKIP() << library.status().message();
    library_ = *library;
    auto device = DescribedDevice(*library_, kH200);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    device_ = *std::move(device);
  }

  const Library* library_ = nullptr;
  Descriptor device_{nullptr, nullptr};
};

// 64 channels of 56x56 in a batch of 2, padded by 1.
Convolution Middle(DType dtype, bool relu, bool residual) {
  Convolution c;
  c.dtype = dtype;
  c.input = c.output = {2, 64, 56, 56};
  c.weight = {64, 64, 3, 3};
  c.padding = {1, 1, 1, 1};
  c.relu = relu;
  c.residual = residual;
  return c;
}

// A stem of 7x7 with stride 2, and a shortcut.
Convolution Stem(DType dtype) {
  Convolution c;
  c.dtype = dtype;
  c.input = {1, dtype == DType::kI8 ? 4 : 8, 224, 224};
  c.weight = {64, c.input[1], 7, 7};
  c.output = {1, 64, 112, 112};
  c.stride = {2, 2};
  c.padding = {3, 3, 3, 3};
  c.relu = true;
  return c;
}

Convolution Shortcut(DType dtype) {
  Convolution c;
  c.dtype = dtype;
  c.input = {1, 64, 56, 56};
  c.weight = {128, 64, 1, 1};
  c.output = {1, 128, 28, 28};
  c.stride = {2, 2};
  return c;
}

TEST_F(ConvolutionTest, TheHeuristicsHaveEnginesForEachForm) {
  for (const DType dtype : {DType::kI8, DType::kF16}) {
    std::vector<Convolution> forms = {Stem(dtype), Shortcut(dtype)};
    for (const bool relu : {false, true}) {
      for (const bool residual : {false, true}) forms.push_back(Middle(dtype, relu, residual));
    }
    for (const Convolution& form : forms) {
      ASSERT_OK_AND_ASSIGN(const FusedConvolution fused, FusedConvolution::Create(*library_, form));
      EXPECT_THAT(fused.Candidates(device_.get()).value_or(std::vector<Descriptor>()), Not(IsEmpty()))
          << DTypeName(dtype) << ", " << form.weight[2] << " rows, relu " << form.relu << ", residual "
          << form.residual;
    }
  }
}

TEST_F(ConvolutionTest, AnEngineMakesAPlan) {
  for (const DType dtype : {DType::kI8, DType::kF16}) {
    ASSERT_OK_AND_ASSIGN(const FusedConvolution fused, FusedConvolution::Create(*library_, Middle(dtype, true, true)));
    ASSERT_OK_AND_ASSIGN(const std::vector<Descriptor> candidates, fused.Candidates(device_.get()));
    ASSERT_THAT(candidates, Not(IsEmpty()));
    ASSERT_OK_AND_ASSIGN(const Plan plan, fused.PlanOf(candidates[0].get(), device_.get()));
    EXPECT_GE(plan.workspace_bytes, 0);
    EXPECT_GE(plan.engine, 0);
    // All operands are taken; what is missing is a device's handle.
    std::array<void*, 6> pointers;
    pointers.fill(&pointers);
    EXPECT_THAT(fused.Execute(nullptr, plan, pointers, nullptr),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("cuDNN: engine")));
  }
}

TEST_F(ConvolutionTest, SaysWhatIsWrong) {
  Convolution c = Middle(DType::kF32, true, true);
  EXPECT_THAT(FusedConvolution::Create(*library_, c).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "found f32, wanted i8 or f16"));
  c = Middle(DType::kI8, true, true);
  c.weight[1] = 48;
  EXPECT_THAT(
      FusedConvolution::Create(*library_, c).status(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("the convolution's operation: CUDNN_STATUS_BAD_PARAM")));
  EXPECT_THAT(DescribedDevice(*library_, "{").status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("the device that is described")));
  EXPECT_THAT(CurrentDevice(*library_).status(), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("the device: ")));
}

}  // namespace
}  // namespace fuselage::peers::cudnn
