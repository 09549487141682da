// conv1d..3d and conv_transpose1d..3d, with bias, residual and ReLU in oneDNN's post-ops.
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/fp32/families.h"
#include "kernels/fp32/onednn.h"

namespace fuselage::fp32 {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

struct Geometry {
  Dims kernel, stride, dilation, pad_begin, pad_end;  // One entry per spatial dimension; dilation 1 is dense.
  int64_t groups = 1;
};

absl::StatusOr<Geometry> GeometryOf(const KernelDesc& desc, const Tensor& weight) {
  const int n = weight.rank() - 2;
  if (n < 1 || desc.input(0).rank() != n + 2) {
    return absl::InvalidArgumentError(absl::StrCat("input ", ToString(desc.input(0)), " with weight ",
                                                   ToString(weight.type()), ", want the same rank, at least 3"));
  }
  Geometry g;
  g.kernel.assign(weight.shape().begin() + 2, weight.shape().end());
  ASSIGN_OR_RETURN(g.stride, IntsOr(desc, "stride", n, 1));
  ASSIGN_OR_RETURN(g.dilation, IntsOr(desc, "dilation", n, 1));
  ASSIGN_OR_RETURN(const Dims padding, IntsOr(desc, "padding", 2 * n, 0));
  g.pad_begin.assign(padding.begin(), padding.begin() + n);
  g.pad_end.assign(padding.begin() + n, padding.end());
  g.groups = desc.GetInt("groups");
  if (g.groups < 1 || weight.dim(0) % g.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(g.groups, " groups of weight ", ToString(weight.type())));
  }
  return g;
}

// An image of one column lies in memory as one of one row does, for which oneDNN's kernels are made.
bool IsColumn(const KernelDesc& desc, const Geometry& g) {
  return g.kernel.size() == 2 && g.kernel[1] == 1 && g.pad_begin[1] == 0 && desc.input(0).shape[3] == 1 &&
         desc.output().shape[3] == 1;
}
void SwapAxes(Geometry* g) {
  for (Dims* axes : {&g->kernel, &g->stride, &g->dilation, &g->pad_begin, &g->pad_end})
    std::swap((*axes)[0], (*axes)[1]);
}

Dims MinusOne(Dims dims) {
  for (int64_t& dim : dims) --dim;
  return dims;
}

Dims Concat(Dims head, const Dims& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

int64_t Product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

// Adds the bias, where there is one, to the call's constants; returns its description (zero: none).
absl::StatusOr<MemoryDesc> AddBias(const KernelDesc& desc, Call& call) {
  if (desc.ParameterOrNull("bias") == nullptr) return MemoryDesc();
  ASSIGN_OR_RETURN(const Tensor bias, FloatParameter(desc, "bias"));
  const MemoryDesc bias_desc = RowMajor(bias.shape());
  call.constants.push_back({DNNL_ARG_BIAS, Reordered(bias, bias_desc, bias_desc)});
  return bias_desc;
}

// How a convolution reads and gives a value. Volumes lie row-major, for which oneDNN has its reference alone.
MemoryDesc WantedOf(const TensorType& type) { return type.rank() < 5 ? DescOf(type) : AnyLayout(type.shape); }

absl::StatusOr<Call> ConvCall(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Tensor* weight, CheckedFloatParameter(desc, "weight"));
  ASSIGN_OR_RETURN(Geometry g, GeometryOf(desc, *weight));
  Call call;
  ASSIGN_OR_RETURN(const MemoryDesc bias, AddBias(desc, call));

  TensorType x = desc.input(0), y = desc.output();
  if (IsColumn(desc, g)) {
    SwapAxes(&g);
    for (TensorType* type : {&x, &y}) std::swap(type->shape[2], type->shape[3]);
  }
  const MemoryDesc src = WantedOf(x), dst = WantedOf(y);
  const Dims channels =
      g.groups == 1 ? Dims{weight->dim(0), weight->dim(1)} : Dims{g.groups, weight->dim(0) / g.groups, weight->dim(1)};
  const Dims weight_dims = Concat(channels, g.kernel);
  const auto primitive_of = [&](const dnnl::post_ops& post_ops) {
    using Convolution = dnnl::convolution_forward;
    constexpr auto kInference = dnnl::prop_kind::forward_inference;
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const MemoryDesc weights = AnyLayout(weight_dims);
    return Convolution::primitive_desc(bias.is_zero()
                                           ? Convolution::desc(kInference, kDirect, src, weights, dst, g.stride,
                                                               MinusOne(g.dilation), g.pad_begin, g.pad_end)
                                           : Convolution::desc(kInference, kDirect, src, weights, bias, dst, g.stride,
                                                               MinusOne(g.dilation), g.pad_begin, g.pad_end),
                                       Attributes(post_ops), CpuEngine());
  };
  dnnl::post_ops post_ops;
  const bool copied = desc.output().rank() == 5;
  if (desc.has_input(1) && copied) {
    post_ops.append_sum();  // oneDNN adds another operand to a volume in its reference alone.
  } else if (desc.has_input(1)) {
    post_ops.append_binary(dnnl::algorithm::binary_add, DescOf(y));
  }
  RETURN_IF_ERROR(AppendActivation(desc, post_ops));
  dnnl::convolution_forward::primitive_desc primitive = primitive_of(post_ops);
  // Those by gemm, which oneDNN has for SSE4.1 and aarch64, add residuals to other elements than theirs (oneDNN 2.6).
  while (desc.has_input(1) && !copied && absl::StrContains(primitive.impl_info_str(), "gemm")) {
    if (!primitive.next_impl()) return absl::UnimplementedError("oneDNN adds this residual wrongly");
  }
  call.inputs = {Call::InLayout(DNNL_ARG_SRC, 0, primitive.src_desc(), DescOf(x))};
  call.outputs = {Call::InLayout(DNNL_ARG_DST, 0, primitive.dst_desc(), DescOf(y))};
  if (desc.has_input(1) && copied) {
    call.inputs.push_back({DNNL_ARG_DST, 1, primitive.dst_desc(), DescOf(desc.input(1))});
  } else if (desc.has_input(1)) {
    call.inputs.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, 1, DescOf(y)});
  }
  call.SetPrimitive(primitive, dnnl::convolution_forward(primitive));
  call.SetWeight(desc, RowMajor(weight_dims), primitive.weights_desc());
  return call;
}

// oneDNN's deconvolution wants [groups, oc/groups, ic/groups, k...]; the op's weight is [ic, oc/groups, k...].
MemoryDesc TransposedWeight(const Tensor& weight, const Geometry& g, Dims& dims) {
  const int64_t ic = weight.dim(0) / g.groups, oc = weight.dim(1), k = Product(g.kernel);
  dims = Concat({g.groups, oc, ic}, g.kernel);
  Dims strides = {ic * oc * k, k, oc * k};
  for (int64_t rest = k, i = 0; i < static_cast<int64_t>(g.kernel.size()); ++i) strides.push_back(rest /= g.kernel[i]);
  return MemoryDesc(dims, dnnl::memory::data_type::f32, strides);
}

absl::StatusOr<Call> ConvTransposeCall(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Tensor* weight, CheckedFloatParameter(desc, "weight"));
  ASSIGN_OR_RETURN(Geometry g, GeometryOf(desc, *weight));
  // The end padding that gives the output its size, output_padding included.
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    g.pad_end[i] = (desc.input(0).shape[i + 2] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1 -
                   g.pad_begin[i] - desc.output().shape[i + 2];
  }
  Call call;
  ASSIGN_OR_RETURN(const MemoryDesc bias, AddBias(desc, call));
  const MemoryDesc src = WantedOf(desc.input(0)), dst = WantedOf(desc.output());

  Dims weight_dims;
  const MemoryDesc weight_desc = TransposedWeight(*weight, g, weight_dims);
  using Deconvolution = dnnl::deconvolution_forward;
  const Deconvolution::primitive_desc primitive(
      bias.is_zero()
          ? Deconvolution::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, src,
                                AnyLayout(weight_dims), dst, g.stride, MinusOne(g.dilation), g.pad_begin, g.pad_end)
          : Deconvolution::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, src,
                                AnyLayout(weight_dims), bias, dst, g.stride, MinusOne(g.dilation), g.pad_begin,
                                g.pad_end),
      Attributes(), CpuEngine());
  call.inputs = {Call::InLayout(DNNL_ARG_SRC, 0, primitive.src_desc(), DescOf(desc.input(0)))};
  call.outputs = {Call::InLayout(DNNL_ARG_DST, 0, primitive.dst_desc(), DescOf(desc.output()))};
  call.SetPrimitive(primitive, Deconvolution(primitive));
  call.SetWeight(desc, weight_desc, primitive.weights_desc());
  return call;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConv(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return ConvCall(desc); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConvTranspose(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return ConvTransposeCall(desc); });
}

}  // namespace

void RegisterConv(kernels::KernelRegistry& registry) {
  for (const char* suffix : {"1d", "2d", "3d"}) {
    registry.Register({absl::StrCat("conv", suffix), kernels::LayoutRule::kNhwc, CreateConv});
    registry.Register({absl::StrCat("conv_transpose", suffix), kernels::LayoutRule::kNhwc, CreateConvTranspose});
  }
}

}  // namespace fuselage::fp32
