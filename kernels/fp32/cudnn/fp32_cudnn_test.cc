// Without a GPU: our declarations are those of cuDNN's header, the library has them all, and its descriptors take what
// they are given. With one: results near those of the CPU's FP32 kernels, in FP16 too.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda/testing/no_gpu.h"

#ifdef FUSELAGE_NO_CUDA
TEST(Cudnn, NeedsAToolkit) { FUSELAGE_NO_GPU("no CUDA toolkit on this machine"); }
#else
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/base/comparison.h"
#include "ir/base/status.h"
#include "kernels/core/parallel.h"
#include "kernels/cuda/device.h"
#include "kernels/fp32/cudnn/descriptors.h"
#include "kernels/fp32/cudnn/fp32_cudnn.h"
#include "kernels/fp32/fp32.h"
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

namespace fuselage::fp32::cudnn {
namespace {

using kernels::KernelDesc;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

#ifdef CUDNN_MAJOR
// As library.h writes a type: enumerations are int, pointers to cuDNN's structs void*.
template <typename T>
struct Erase {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <typename T>
struct Erase<T*> {
  using type = std::conditional_t<std::is_class_v<T>, void, typename Erase<T>::type>*;
};
template <typename R, typename... A>
struct Erase<R(A...)> {
  using type = typename Erase<R>::type (*)(typename Erase<A>::type...);
};
#define FUSELAGE_CUDNN_SAME(name, result, parameters) \
  static_assert(std::is_same_v<Erase<decltype(cudnn##name)>::type, decltype(Library::name)>, "cudnn" #name);
FUSELAGE_CUDNN_FUNCTIONS(FUSELAGE_CUDNN_SAME)

static_assert(kNhwc == CUDNN_TENSOR_NHWC && kFloat == CUDNN_DATA_FLOAT && kHalf == CUDNN_DATA_HALF);
static_assert(kCrossCorrelation == CUDNN_CROSS_CORRELATION);
static_assert(kFmaMath == CUDNN_FMA_MATH && kTensorOpMath == CUDNN_TENSOR_OP_MATH);
static_assert(kImplicitPrecompGemm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
static_assert(kRelu == CUDNN_ACTIVATION_RELU && kIdentity == CUDNN_ACTIVATION_IDENTITY);
static_assert(kPropagateNan == CUDNN_PROPAGATE_NAN && kOpTensorAdd == CUDNN_OP_TENSOR_ADD);
static_assert(kPoolingMax == CUDNN_POOLING_MAX);
static_assert(kPoolingAverageExcludePadding == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
static_assert(CUDNN_STATUS_SUCCESS == 0);
#endif

// Skips where cuDNN is not installed.
class CudnnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto library = Library::Open();
    if (!library.ok()) {
      EXPECT_EQ(library.status().code(), absl::StatusCode::kUnimplemented) << library.status();
      GTEST_SKIP() << library.status().message();
    }
    library_ = *library;
  }

  const Library* library_ = nullptr;
};

// A function of the opened library that only tests call: the size or the math type that a descriptor has.
template <typename T>
T PropertyOf(void* descriptor, const char* function) {
  T value = {};
  for (const char* name : {"libcudnn.so.9", "libcudnn.so.8"}) {
    void* handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    const auto get = reinterpret_cast<int (*)(void*, T*)>(dlsym(handle, function));
    EXPECT_TRUE(get != nullptr && get(descriptor, &value) == 0) << function;
    break;
  }
  return value;
}

TEST_F(CudnnTest, DescriptorsHaveTheirElementType) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const auto x = TensorOf(*library_, dtype, {2, 16, 20, 30});
    const auto w = FilterOf(*library_, dtype, {8, 16, 3, 5});
    const auto conv = ConvolutionOf(*library_, dtype, Convolution());
    ASSERT_TRUE(x.ok() && w.ok() && conv.ok()) << x.status() << w.status() << conv.status();
    const size_t bytes = static_cast<size_t>(ByteSize(dtype));
    EXPECT_EQ(PropertyOf<size_t>(x->get(), "cudnnGetTensorSizeInBytes"), 2 * 16 * 20 * 30 * bytes);
    EXPECT_EQ(PropertyOf<size_t>(w->get(), "cudnnGetFilterSizeInBytes"), 8 * 16 * 3 * 5 * bytes);
    EXPECT_EQ(PropertyOf<int>(conv->get(), "cudnnGetConvolutionMathType"),
              dtype == DType::kF16 ? kTensorOpMath : kFmaMath);
  }
}

TEST_F(CudnnTest, DescriptorsGiveTheSizesThatWeExpect) {
  EXPECT_GE(library_->GetVersion(), 8000);
  for (int i = 0; i < 6; ++i) {
    const DType dtype = i < 3 ? DType::kF32 : DType::kF16;
    const Convolution c =
        std::array{Convolution{3, 3, 2, 2}, Convolution{1, 0, 1, 3, 2, 1}, Convolution{0, 2, 1, 1, 1, 1, 4}}[i % 3];
    const int kernel_y = 3, kernel_x = 5;
    const auto size = [](int in, int pad, int kernel, int dilation, int stride) {
      return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
    };
    const Dims4 wanted = {2, 8, size(20, c.pad_y, kernel_y, c.dilation_y, c.stride_y),
                          size(30, c.pad_x, kernel_x, c.dilation_x, c.stride_x)};
    const auto x = TensorOf(*library_, dtype, {2, 16, 20, 30});
    const auto w = FilterOf(*library_, dtype, {8, 16 / c.groups, kernel_y, kernel_x});
    const auto conv = ConvolutionOf(*library_, dtype, c);
    ASSERT_TRUE(x.ok() && w.ok() && conv.ok()) << x.status() << w.status() << conv.status();
    EXPECT_TRUE(CheckConvolution(*library_, conv->get(), x->get(), w->get(), wanted).ok());
    const auto wrong = CheckConvolution(*library_, conv->get(), x->get(), w->get(), {2, 8, 1, 1});
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(wrong.message()), HasSubstr("wanted [2,8,1,1]"));
  }
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const auto x = TensorOf(*library_, dtype, {2, 16, 112, 110});
    const auto pool = PoolingOf(*library_, {kPoolingMax, 3, 2, 1, 0, 2, 1});
    ASSERT_TRUE(x.ok() && pool.ok());
    EXPECT_TRUE(CheckPooling(*library_, pool->get(), x->get(), {2, 16, 56, 109}).ok());
    EXPECT_EQ(TensorOf(*library_, dtype, {1, -1, 1, 1}).status().code(), absl::StatusCode::kUnimplemented);
  }
  EXPECT_TRUE(ActivationOf(*library_, kRelu).ok());
}

TensorType Floats(Shape shape, DType dtype = DType::kF32) {
  const Layout layout = shape.size() == 4 ? Layout::kNhwc : Layout::kRowMajor;
  return {dtype, std::move(shape), std::nullopt, layout};
}

TEST(Cudnn, DimsAreThoseOfOneElementType) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const auto dims = DimsOf(Floats({2, 3, 4, 5}, dtype), dtype);
    ASSERT_TRUE(dims.ok()) << dims.status();
    EXPECT_EQ(*dims, (Dims4{2, 3, 4, 5}));
    const auto rows = DimsOf(Floats({2, 3}, dtype), dtype);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, (Dims4{2, 3, 1, 1}));
    EXPECT_EQ(DimsOf(Floats({2, 3, 4}, dtype), dtype).status().code(), absl::StatusCode::kUnimplemented);
  }
  const auto mixed = DimsOf(Floats({2, 3}), DType::kF16);
  EXPECT_EQ(mixed.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(mixed.status().message()), HasSubstr("f32[2,3], wanted f16 of rank 2 or 4"));
}

struct Case {
  const char* op;
  std::vector<Shape> inputs;
  Shape output;
  AttributeMap attributes;
  Shape weight = {};
};

std::vector<Case> Cases() {
  const auto conv = [](int64_t stride, int64_t padding, int64_t groups, const char* activation) -> AttributeMap {
    return {{"stride", Ints{stride, stride}},
            {"padding", Ints(4, padding)},
            {"dilation", Ints{1, 1}},
            {"groups", groups},
            {"activation", activation}};
  };
  return {
      {"conv2d", {{2, 3, 32, 30}}, {2, 64, 16, 15}, conv(2, 3, 1, "relu"), {64, 3, 7, 7}},
      {"conv2d", {{2, 16, 9, 9}, {2, 24, 9, 9}}, {2, 24, 9, 9}, conv(1, 1, 1, "relu"), {24, 16, 3, 3}},
      {"conv2d", {{1, 16, 9, 9}}, {1, 32, 9, 9}, conv(1, 0, 1, "none"), {32, 16, 1, 1}},
      {"linear", {{3, 512}}, {3, 100}, {{"activation", "none"}}, {100, 512}},
      {"max_pool2d",
       {{2, 16, 12, 12}},
       {2, 16, 6, 6},
       {{"kernel_size", Ints{3, 3}},
        {"stride", Ints{2, 2}},
        {"padding", Ints(4, 1)},
        {"dilation", Ints{1, 1}},
        {"ceil_mode", false}}},
      {"global_avg_pool", {{2, 16, 7, 7}}, {2, 16, 1, 1}, {}},
      {"relu", {{2, 5, 7, 7}}, {2, 5, 7, 7}, {}},
      {"add", {{2, 5, 7, 7}, {2, 5, 7, 7}}, {2, 5, 7, 7}, {{"alpha", 1.0}, {"activation", "none"}}},
  };
}

absl::StatusOr<Tensor> OnDevice(const kernels::Kernel& kernel, const std::vector<Tensor>& inputs, bool residual) {
  std::vector<cuda::DeviceBuffer> owned;
  std::vector<kernels::ConstBuffer> buffers;
  for (const Tensor& input : inputs) {
    ASSIGN_OR_RETURN(auto buffer, cuda::DeviceBuffer::Upload(input.raw_data(), input.byte_size(), "a test"));
    buffers.push_back({buffer.data(), buffer.bytes()});
    owned.push_back(std::move(buffer));
  }
  if (residual) buffers.emplace_back();
  Tensor output(kernel.outputs()[0]);
  ASSIGN_OR_RETURN(const auto result, cuda::DeviceBuffer::Allocate(output.byte_size(), "a test"));
  cuda::DeviceBuffer scratch;
  if (kernel.scratch_bytes() > 0) {
    ASSIGN_OR_RETURN(scratch, cuda::DeviceBuffer::Allocate(kernel.scratch_bytes(), "a test"));
  }
  kernels::Serial serial;
  const kernels::Buffer outputs[] = {{result.data(), result.bytes()}};
  RETURN_IF_ERROR(kernel.Run(buffers, outputs, {&serial, {scratch.data(), scratch.bytes()}}));
  RETURN_IF_ERROR(cuda::ToStatus(
      cudaMemcpy(output.raw_data(), result.data(), output.byte_size(), cudaMemcpyDeviceToHost), "a test"));
  return output;
}

// `cuda` on values of `dtype`, against `cpu` on the same values as f32.
void ExpectNear(const Case& c, DType dtype, const kernels::KernelEntry& cpu, const kernels::KernelEntry& cuda) {
  KernelDesc desc, wide;
  desc.op = wide.op = c.op;
  desc.attributes = wide.attributes = c.attributes;
  wide.isa = kernels::BestIsa();
  desc.outputs = {Floats(c.output, dtype)};
  wide.outputs = {Floats(c.output)};
  std::vector<Tensor> inputs, wide_inputs;
  for (const Shape& shape : c.inputs) {
    desc.inputs.emplace_back(Floats(shape, dtype));
    wide.inputs.emplace_back(Floats(shape));
    inputs.push_back(SeededTensor(Floats(shape, dtype), inputs.size() + 1));
    wide_inputs.push_back(Cast(inputs.back(), DType::kF32));
  }
  const bool absent = desc.op == "conv2d" && c.inputs.size() == 1;
  if (absent) {
    desc.inputs.emplace_back();
    wide.inputs.emplace_back();
  }
  Tensor weight, bias, wide_weight, wide_bias;
  if (!c.weight.empty()) {
    weight = SeededTensor({dtype, c.weight, std::nullopt, Layout::kRowMajor}, 3);
    bias = SeededTensor(Floats({c.weight[0]}, dtype), 4);
    wide_weight = Cast(weight, DType::kF32);
    wide_bias = Cast(bias, DType::kF32);
    desc.parameters = {{"weight", &weight}, {"bias", &bias}};
    wide.parameters = {{"weight", &wide_weight}, {"bias", &wide_bias}};
  }
  const auto ours = cuda.create(desc);
  const auto reference = cpu.create(wide);
  ASSERT_TRUE(ours.ok() && reference.ok()) << c.op << ": " << ours.status() << reference.status();
  const auto found = OnDevice(**ours, inputs, absent);
  ASSERT_TRUE(found.ok()) << c.op << ": " << found.status();

  std::vector<kernels::ConstBuffer> buffers;
  for (const Tensor& input : wide_inputs) buffers.push_back({input.raw_data(), input.byte_size()});
  if (absent) buffers.emplace_back();
  Tensor wanted(wide.output()), scratch(DType::kU8, {(*reference)->scratch_bytes()});
  kernels::Serial serial;
  const kernels::Buffer outputs[] = {{wanted.raw_data(), wanted.byte_size()}};
  ASSERT_TRUE((*reference)->Run(buffers, outputs, {&serial, {scratch.raw_data(), scratch.byte_size()}}).ok());
  const Difference difference = Compare(wanted, *found);
  EXPECT_LE(difference.max_abs_error, (dtype == DType::kF32 ? 1e-5 : 1e-3) * difference.magnitude)
      << c.op << " in " << DTypeName(dtype);
}

class CudnnDeviceTest : public CudnnTest {
 protected:
  void SetUp() override {
    if (!cuda::CurrentDevice().ok()) FUSELAGE_NO_GPU("no CUDA device");
    CudnnTest::SetUp();
  }
};

TEST_F(CudnnDeviceTest, IsNearTheCpu) {
  kernels::KernelRegistry cpu, cuda;
  fp32::Register(cpu);
  RegisterCuda(cuda);
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const Case& c : Cases()) ExpectNear(c, dtype, *cpu.FindOrNull(c.op), *cuda.FindOrNull(c.op));
  }
}

TEST(Cudnn, WhereItCannotRunThereIsNoKernel) {
  if (cuda::CurrentDevice().ok()) GTEST_SKIP() << "there is a CUDA device";
  kernels::KernelRegistry registry;
  RegisterCuda(registry);
  KernelDesc desc;
  desc.op = "relu";
  desc.inputs = {Floats({2, 3})};
  desc.outputs = {Floats({2, 3})};
  const auto kernel = registry.FindOrNull("relu")->create(desc);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented) << kernel.status();
  EXPECT_THAT(std::string(kernel.status().message()), HasSubstr("cuDNN"));
}

}  // namespace
}  // namespace fuselage::fp32::cudnn
#endif
