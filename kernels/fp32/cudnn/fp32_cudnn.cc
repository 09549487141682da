#include "kernels/fp32/cudnn/fp32_cudnn.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "kernels/cuda/device.h"
#include "kernels/fp32/cudnn/descriptors.h"
#include "kernels/fused_elementwise/cuda/fused_elementwise_cuda.h"

namespace fuselage::fp32::cudnn {
namespace {

using cuda::DeviceBuffer;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;

constexpr float kOne = 1, kZero = 0;

// Where a call finds its operands, all in device memory.
struct Operands {
  absl::Span<const ConstBuffer> inputs;
  void* output;
  void* scratch;
};

// One call of cuDNN, and what it refers to.
struct Call {
  std::string name;
  std::vector<Descriptor> descriptors;
  DeviceBuffer weight, bias;
  size_t scratch_bytes = 0;
  std::function<int(void* handle, const Operands& operands)> run;

  void* Keep(Descriptor descriptor) {
    descriptors.push_back(std::move(descriptor));
    return descriptors.back().get();
  }
};

// The process's handle: kernels are made and run on one thread.
absl::StatusOr<void*> HandleOf(const Library& library) {
  static void* handle = nullptr;
  if (handle == nullptr) RETURN_IF_ERROR(library.Check(library.Create(&handle), "cudnnCreate"));
  return handle;
}

class CudnnKernel final : public Kernel {
 public:
  CudnnKernel(const KernelDesc& desc, const Library& library, void* handle, Call call)
      : Kernel(desc), library_(library), handle_(handle), call_(std::move(call)) {
    set_variant(call_.name);
    set_scratch_bytes(static_cast<int64_t>(call_.scratch_bytes));
    set_weight_bytes(call_.weight.bytes() + call_.bias.bytes());
  }

 private:
  // A call that fails while a graph is captured would leave one that is fast and wrong.
  absl::Status TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                          const kernels::RunContext& context) const override {
    RETURN_IF_ERROR(library_.Check(library_.SetStream(handle_, context.stream), "stream"));
    return library_.Check(call_.run(handle_, {inputs, outputs[0].data, context.scratch.data}), call_.name);
  }

  const Library& library_;
  void* const handle_;
  const Call call_;
};

// Runs the call once on memory of its own.
absl::Status Try(const Library& library, void* handle, const KernelDesc& desc, const Call& call) {
  std::vector<DeviceBuffer> owned;
  std::vector<ConstBuffer> inputs;
  for (const auto& type : desc.inputs) {
    inputs.emplace_back();
    if (!type.has_value()) continue;
    ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::Allocate(type->byte_size(), "a first run of cuDNN"));
    RETURN_IF_ERROR(cuda::ToStatus(cudaMemset(buffer.data(), 0, buffer.bytes()), "cudaMemset"));
    inputs.back() = {buffer.data(), buffer.bytes()};
    owned.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(const DeviceBuffer output,
                   DeviceBuffer::Allocate(desc.output().byte_size(), "a first run of cuDNN"));
  DeviceBuffer scratch;
  if (call.scratch_bytes > 0) {
    ASSIGN_OR_RETURN(scratch, DeviceBuffer::Allocate(static_cast<int64_t>(call.scratch_bytes), "cuDNN's workspace"));
  }
  RETURN_IF_ERROR(library.Check(library.SetStream(handle, nullptr), "stream"));
  RETURN_IF_ERROR(library.Check(call.run(handle, {inputs, output.data(), scratch.data()}), call.name));
  return cuda::ToStatus(cudaDeviceSynchronize(), call.name);
}

using MakeCall = absl::StatusOr<Call> (*)(const Library& library, void* handle, const KernelDesc& desc);

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc, MakeCall make) {
  ASSIGN_OR_RETURN(const Library* library, Library::Open());
  ASSIGN_OR_RETURN(void* const handle, HandleOf(*library));
  ASSIGN_OR_RETURN(Call call, make(*library, handle, desc));
  RETURN_IF_ERROR(Try(*library, handle, desc, call));
  return std::make_unique<CudnnKernel>(desc, *library, handle, std::move(call));
}

// All operands have it: f32 or f16.
absl::StatusOr<DType> ElementsOf(const KernelDesc& desc) {
  const DType dtype = desc.input(0).dtype;
  if (dtype == DType::kF32 || dtype == DType::kF16) return dtype;
  return absl::UnimplementedError(absl::StrCat("cuDNN: input ", ToString(desc.input(0)), ", wanted f32 or f16"));
}

absl::StatusOr<int> ActivationMode(const KernelDesc& desc) {
  const std::string& activation = desc.GetString("activation");
  if (activation == "none") return kIdentity;
  if (activation == "relu") return kRelu;
  return absl::UnimplementedError(absl::StrCat("activation \"", activation, "\""));
}

absl::StatusOr<std::array<int, 2>> Pair(const KernelDesc& desc, absl::string_view name, int fill) {
  const std::vector<int64_t>& values = desc.GetInts(name);
  if (values.empty()) return std::array<int, 2>{fill, fill};
  if (values.size() != 2) return absl::InvalidArgumentError(absl::StrCat(name, " has ", values.size(), " entries"));
  return std::array<int, 2>{static_cast<int>(values[0]), static_cast<int>(values[1])};
}

// cuDNN pads both sides of an image alike.
absl::StatusOr<std::array<int, 2>> Padding(const KernelDesc& desc) {
  const std::vector<int64_t>& values = desc.GetInts("padding");
  if (values.empty()) return std::array<int, 2>{0, 0};
  if (values.size() != 4 || values[0] != values[2] || values[1] != values[3]) {
    return absl::UnimplementedError("cuDNN: padding that differs from side to side");
  }
  return std::array<int, 2>{static_cast<int>(values[0]), static_cast<int>(values[1])};
}

// [oc, ic, kh, kw] to [oc, kh, kw, ic]; of rank 2 they are the same.
template <typename T>
Tensor ToFilter(const Tensor& weight) {
  Tensor filter(weight.type());
  const int64_t ic = weight.dim(1), taps = weight.num_elements() / (weight.dim(0) * ic);
  for (int64_t oc = 0; oc < weight.dim(0); ++oc) {
    for (int64_t c = 0; c < ic; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        filter.data<T>()[(oc * taps + tap) * ic + c] = weight.data<T>()[(oc * ic + c) * taps + tap];
      }
    }
  }
  return filter;
}

// conv2d, and linear as a convolution of one pixel.
absl::StatusOr<Call> ConvolutionCall(const Library& library, void* handle, const KernelDesc& desc,
                                     const Convolution& convolution) {
  const Tensor* weight = desc.ParameterOrNull("weight");
  if (weight == nullptr) return absl::InvalidArgumentError("no weight");
  ASSIGN_OR_RETURN(const DType dtype, ElementsOf(desc));
  ASSIGN_OR_RETURN(const Dims4 x_dims, DimsOf(desc.input(0), dtype));
  ASSIGN_OR_RETURN(const Dims4 y_dims, DimsOf(desc.output(), dtype));
  ASSIGN_OR_RETURN(const Dims4 w_dims, DimsOf(weight->type(), dtype));
  ASSIGN_OR_RETURN(const int mode, ActivationMode(desc));
  Tensor bias(dtype, {y_dims[1]});  // cuDNN wants one.
  if (const Tensor* given = desc.ParameterOrNull("bias")) {
    if (given->type() != bias.type()) {
      return absl::UnimplementedError(
          absl::StrCat("bias ", ToString(given->type()), ", wanted ", ToString(bias.type())));
    }
    bias = *given;
  } else {
    for (int64_t i = 0; i < bias.num_elements(); ++i) bias.Set(i, 0);
  }

  Call call;
  call.name = "cudnn conv";
  ASSIGN_OR_RETURN(Descriptor x_made, TensorOf(library, dtype, x_dims));
  ASSIGN_OR_RETURN(Descriptor y_made, TensorOf(library, dtype, y_dims));
  ASSIGN_OR_RETURN(Descriptor bias_made, TensorOf(library, dtype, {1, y_dims[1], 1, 1}));
  ASSIGN_OR_RETURN(Descriptor w_made, FilterOf(library, dtype, w_dims));
  ASSIGN_OR_RETURN(Descriptor conv_made, ConvolutionOf(library, dtype, convolution));
  ASSIGN_OR_RETURN(Descriptor act_made, ActivationOf(library, mode));
  RETURN_IF_ERROR(CheckConvolution(library, conv_made.get(), x_made.get(), w_made.get(), y_dims));
  RETURN_IF_ERROR(
      library.Check(library.GetConvolutionForwardWorkspaceSize(handle, x_made.get(), w_made.get(), conv_made.get(),
                                                               y_made.get(), kImplicitPrecompGemm, &call.scratch_bytes),
                    "the convolution's workspace"));
  const Tensor filter = dtype == DType::kF16 ? ToFilter<Half>(*weight) : ToFilter<float>(*weight);
  ASSIGN_OR_RETURN(call.weight, DeviceBuffer::Upload(filter.raw_data(), filter.byte_size(), "weights"));
  ASSIGN_OR_RETURN(call.bias, DeviceBuffer::Upload(bias.raw_data(), bias.byte_size(), "bias"));

  void *x = call.Keep(std::move(x_made)), *y = call.Keep(std::move(y_made)), *b = call.Keep(std::move(bias_made));
  void *w = call.Keep(std::move(w_made)), *conv = call.Keep(std::move(conv_made)),
       *act = call.Keep(std::move(act_made));
  call.run = [=, &library, weights = call.weight.data(), biases = call.bias.data(), bytes = call.scratch_bytes](
                 void* handle, const Operands& o) {
    const bool residual = o.inputs.size() > 1 && o.inputs[1].data != nullptr;
    return library.ConvolutionBiasActivationForward(
        handle, &kOne, x, o.inputs[0].data, w, weights, conv, kImplicitPrecompGemm, o.scratch, bytes,
        residual ? &kOne : &kZero, y, residual ? o.inputs[1].data : o.output, b, biases, act, y, o.output);
  };
  return call;
}

absl::StatusOr<Call> Conv2d(const Library& library, void* handle, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const auto padding, Padding(desc));
  ASSIGN_OR_RETURN(const auto stride, Pair(desc, "stride", 1));
  ASSIGN_OR_RETURN(const auto dilation, Pair(desc, "dilation", 1));
  return ConvolutionCall(library, handle, desc,
                         {padding[0], padding[1], stride[0], stride[1], dilation[0], dilation[1],
                          static_cast<int>(desc.GetInt("groups"))});
}

absl::StatusOr<Call> Linear(const Library& library, void* handle, const KernelDesc& desc) {
  if (desc.input(0).rank() != 2) return absl::UnimplementedError(absl::StrCat("input ", ToString(desc.input(0))));
  return ConvolutionCall(library, handle, desc, Convolution());
}

absl::StatusOr<Call> PoolingCall(const Library& library, const KernelDesc& desc, const Pooling& pooling,
                                 const Dims4& y_dims) {
  ASSIGN_OR_RETURN(const DType dtype, ElementsOf(desc));
  ASSIGN_OR_RETURN(const Dims4 x_dims, DimsOf(desc.input(0), dtype));
  ASSIGN_OR_RETURN(Descriptor x_made, TensorOf(library, dtype, x_dims));
  ASSIGN_OR_RETURN(Descriptor y_made, TensorOf(library, dtype, y_dims));
  ASSIGN_OR_RETURN(Descriptor pool_made, PoolingOf(library, pooling));
  RETURN_IF_ERROR(CheckPooling(library, pool_made.get(), x_made.get(), y_dims));
  Call call;
  call.name = "cudnn pool";
  void *x = call.Keep(std::move(x_made)), *y = call.Keep(std::move(y_made)), *pool = call.Keep(std::move(pool_made));
  call.run = [=, &library](void* handle, const Operands& o) {
    return library.PoolingForward(handle, pool, &kOne, x, o.inputs[0].data, &kZero, y, o.output);
  };
  return call;
}

absl::StatusOr<Call> MaxPool2d(const Library& library, void*, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const auto kernel, Pair(desc, "kernel_size", 1));
  ASSIGN_OR_RETURN(const auto padding, Padding(desc));
  ASSIGN_OR_RETURN(const auto dilation, Pair(desc, "dilation", 1));
  const bool strided = !desc.GetInts("stride").empty();
  ASSIGN_OR_RETURN(const auto stride, Pair(desc, strided ? "stride" : "kernel_size", 1));
  if (dilation[0] != 1 || dilation[1] != 1) return absl::UnimplementedError("cuDNN: a dilated pool");
  ASSIGN_OR_RETURN(const DType dtype, ElementsOf(desc));
  ASSIGN_OR_RETURN(const Dims4 y_dims, DimsOf(desc.output(), dtype));
  return PoolingCall(library, desc, {kPoolingMax, kernel[0], kernel[1], padding[0], padding[1], stride[0], stride[1]},
                     y_dims);
}

absl::StatusOr<Call> GlobalAveragePool(const Library& library, void*, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const DType dtype, ElementsOf(desc));
  ASSIGN_OR_RETURN(const Dims4 x_dims, DimsOf(desc.input(0), dtype));
  // With or without its dimensions of size 1 the result lies the same in memory.
  return PoolingCall(library, desc, {kPoolingAverageExcludePadding, x_dims[2], x_dims[3], 0, 0, x_dims[2], x_dims[3]},
                     {x_dims[0], x_dims[1], 1, 1});
}

absl::StatusOr<Call> Relu(const Library& library, void*, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const DType dtype, ElementsOf(desc));
  ASSIGN_OR_RETURN(const Dims4 dims, DimsOf(desc.output(), dtype));
  ASSIGN_OR_RETURN(Descriptor made, TensorOf(library, dtype, dims));
  ASSIGN_OR_RETURN(Descriptor act_made, ActivationOf(library, kRelu));
  Call call;
  call.name = "cudnn relu";
  void *x = call.Keep(std::move(made)), *act = call.Keep(std::move(act_made));
  call.run = [=, &library](void* handle, const Operands& o) {
    return library.ActivationForward(handle, act, &kOne, x, o.inputs[0].data, &kZero, x, o.output);
  };
  return call;
}

absl::StatusOr<Call> Add(const Library& library, void*, const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const int mode, ActivationMode(desc));
  if (desc.GetFloat("alpha") != 1.0 || mode != kIdentity || desc.input(0).shape != desc.input(1).shape) {
    return absl::UnimplementedError("cuDNN: an add of f16 with alpha, an activation, or operands of different shapes");
  }
  ASSIGN_OR_RETURN(const DType dtype, ElementsOf(desc));
  ASSIGN_OR_RETURN(const Dims4 dims, DimsOf(desc.output(), dtype));
  ASSIGN_OR_RETURN(Descriptor made, TensorOf(library, dtype, dims));
  void* op = nullptr;
  RETURN_IF_ERROR(library.Check(library.CreateOpTensorDescriptor(&op), "descriptor"));
  Call call;
  call.name = "cudnn add";
  void* x = call.Keep(std::move(made));
  call.Keep(Descriptor(op, library.DestroyOpTensorDescriptor));
  RETURN_IF_ERROR(library.Check(library.SetOpTensorDescriptor(op, kOpTensorAdd, kFloat, kPropagateNan), "add"));
  call.run = [=, &library](void* handle, const Operands& o) {
    return library.OpTensor(handle, op, &kOne, x, o.inputs[0].data, &kOne, x, o.inputs[1].data, &kZero, x, o.output);
  };
  return call;
}

}  // namespace

void RegisterCuda(kernels::KernelRegistry& registry) {
  using kernels::LayoutRule;
  const struct {
    const char* op;
    LayoutRule layout;
    MakeCall make;
  } kernels[] = {
      {"conv2d", LayoutRule::kNhwc, Conv2d},
      {"linear", LayoutRule::kRowMajor, Linear},
      {"max_pool2d", LayoutRule::kNhwc, MaxPool2d},
      {"global_avg_pool", LayoutRule::kNhwc, GlobalAveragePool},
      {"relu", LayoutRule::kSame, Relu},
  };
  for (const auto& kernel : kernels) {
    registry.Register(
        {kernel.op, kernel.layout, [make = kernel.make](const KernelDesc& desc) { return Create(desc, make); }});
  }
  // cuDNN's of tensors is for few shapes; of f32 there is a kernel for all.
  registry.Register({"add", LayoutRule::kSame, [](const KernelDesc& desc) {
                       return desc.output().dtype == DType::kF16 ? Create(desc, Add)
                                                                 : fused_elementwise::cuda::Create(desc);
                     }});
}

}  // namespace fuselage::fp32::cudnn
