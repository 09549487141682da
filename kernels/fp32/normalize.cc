// softmax, layer_norm, and batch_norm with the running statistics.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/fp32/families.h"
#include "kernels/fp32/onednn.h"
#include "kernels/softmax/softmax.h"

namespace fuselage::fp32 {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

absl::StatusOr<Call> SoftmaxCall(const KernelDesc& desc) {
  const TensorType& input = desc.input(0);
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(desc.GetInt("dim"), input.rank()));
  const MemoryDesc both = DescOf(input);
  const dnnl::softmax_forward::primitive_desc primitive(
      dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, both, axis), Attributes(), CpuEngine());
  Call call;
  call.inputs = {{DNNL_ARG_SRC, 0, both}};
  call.outputs = {{DNNL_ARG_DST, 0, both}};
  call.SetPrimitive(primitive, dnnl::softmax_forward(primitive));
  return call;
}

absl::StatusOr<Tensor> ParameterOr(const KernelDesc& desc, absl::string_view name, int64_t size, float fill) {
  if (desc.ParameterOrNull(name) != nullptr) return FloatParameter(desc, name);
  Tensor tensor(DType::kF32, {size});
  std::fill_n(tensor.data<float>(), size, fill);
  return tensor;
}

absl::StatusOr<Call> BatchNormCall(const KernelDesc& desc) {
  const TensorType& input = desc.input(0);
  if (desc.GetBool("training") || desc.ParameterOrNull("running_mean") == nullptr) {
    return absl::UnimplementedError("statistics of the batch");
  }
  if (input.rank() < 2) return absl::UnimplementedError(absl::StrCat("input ", ToString(input)));
  const int64_t channels = input.shape[1];
  ASSIGN_OR_RETURN(const Tensor scale, ParameterOr(desc, "weight", channels, 1.0f));
  ASSIGN_OR_RETURN(const Tensor shift, ParameterOr(desc, "bias", channels, 0.0f));
  ASSIGN_OR_RETURN(const Tensor mean, FloatParameter(desc, "running_mean"));
  ASSIGN_OR_RETURN(const Tensor variance, FloatParameter(desc, "running_var"));

  const MemoryDesc both = DescOf(input);
  using BatchNorm = dnnl::batch_normalization_forward;
  const auto flags = dnnl::normalization_flags::use_global_stats | dnnl::normalization_flags::use_scale |
                     dnnl::normalization_flags::use_shift;
  const BatchNorm::primitive_desc primitive(
      BatchNorm::desc(dnnl::prop_kind::forward_inference, both, static_cast<float>(desc.GetFloat("eps")), flags),
      Attributes(), CpuEngine());
  Call call;
  call.inputs = {{DNNL_ARG_SRC, 0, both}};
  call.outputs = {{DNNL_ARG_DST, 0, both}};
  const MemoryDesc per_channel = RowMajor({channels});
  call.constants = {{DNNL_ARG_SCALE, Reordered(scale, per_channel, per_channel)},
                    {DNNL_ARG_SHIFT, Reordered(shift, per_channel, per_channel)},
                    {DNNL_ARG_MEAN, Reordered(mean, per_channel, per_channel)},
                    {DNNL_ARG_VARIANCE, Reordered(variance, per_channel, per_channel)}};
  call.SetPrimitive(primitive, BatchNorm(primitive));
  return call;
}

// The normalized axes are the columns of a matrix, all others its rows.
absl::StatusOr<Call> LayerNormCall(const KernelDesc& desc) {
  const Dims normalized = desc.GetInts("normalized_shape");
  int64_t columns = 1;
  for (int64_t size : normalized) columns *= size;
  if (columns == 0) return absl::UnimplementedError("no elements");
  ASSIGN_OR_RETURN(const Tensor scale, ParameterOr(desc, "weight", columns, 1.0f));
  ASSIGN_OR_RETURN(const Tensor shift, ParameterOr(desc, "bias", columns, 0.0f));

  const MemoryDesc both = RowMajor({desc.input(0).num_elements() / columns, columns});
  using LayerNorm = dnnl::layer_normalization_forward;
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const LayerNorm::primitive_desc primitive(
      LayerNorm::desc(dnnl::prop_kind::forward_inference, both, static_cast<float>(desc.GetFloat("eps")), flags),
      Attributes(), CpuEngine());
  Call call;
  call.inputs = {{DNNL_ARG_SRC, 0, both}};
  call.outputs = {{DNNL_ARG_DST, 0, both}};
  const MemoryDesc per_column = RowMajor({columns});
  call.constants = {{DNNL_ARG_SCALE, Reordered(scale, per_column, per_column)},
                    {DNNL_ARG_SHIFT, Reordered(shift, per_column, per_column)}};
  call.SetPrimitive(primitive, LayerNorm(primitive));
  return call;
}

// Along an axis that is not the innermost oneDNN has reference code only, and of short rows it computes one at a time.
absl::StatusOr<std::unique_ptr<Kernel>> CreateSoftmax(const KernelDesc& desc) {
  if (desc.input(0).rank() > 0 && desc.input(0).shape.back() <= softmax::kShortRow) return softmax::Create(desc);
  auto kernel = MakeKernel(desc, [&] { return SoftmaxCall(desc); });
  const bool slow = kernel.ok() && absl::StrContains((*kernel)->variant(), "ref:");
  return slow ? softmax::Create(desc) : std::move(kernel);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLayerNorm(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return LayerNormCall(desc); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBatchNorm(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return BatchNormCall(desc); });
}

}  // namespace

void RegisterNormalize(kernels::KernelRegistry& registry) {
  registry.Register({"softmax", kernels::LayoutRule::kRowMajor, CreateSoftmax});
  registry.Register({"layer_norm", kernels::LayoutRule::kRowMajor, CreateLayerNorm});
  registry.Register({"batch_norm", kernels::LayoutRule::kNhwc, CreateBatchNorm});
}

}  // namespace fuselage::fp32
