// linear (oneDNN's inner product), matmul and gemm.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/fp32/families.h"
#include "kernels/fp32/onednn.h"

namespace fuselage::fp32 {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

// [..., in] times [out, in] transposed: all leading dimensions are rows.
absl::StatusOr<Call> LinearCall(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const Tensor* weight, CheckedFloatParameter(desc, "weight"));
  const Shape& shape = weight->shape();
  if (weight->rank() != 2 || desc.input(0).rank() < 1 || desc.input(0).shape.back() != shape[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", ToString(desc.input(0)), " with weight ", ToString(weight->type())));
  }
  const int64_t rows = desc.input(0).num_elements() / shape[1];
  const MemoryDesc src = RowMajor({rows, shape[1]}), dst = RowMajor({rows, shape[0]});
  Call call;
  call.inputs = {{DNNL_ARG_SRC, 0, src}};
  call.outputs = {{DNNL_ARG_DST, 0, dst}};

  dnnl::post_ops post_ops;
  RETURN_IF_ERROR(AppendActivation(desc, post_ops));
  using InnerProduct = dnnl::inner_product_forward;
  InnerProduct::desc description(dnnl::prop_kind::forward_inference, src, AnyLayout(shape), dst);
  if (desc.ParameterOrNull("bias") != nullptr) {
    ASSIGN_OR_RETURN(const Tensor bias, FloatParameter(desc, "bias"));
    const MemoryDesc bias_desc = RowMajor(bias.shape());
    call.constants.push_back({DNNL_ARG_BIAS, Reordered(bias, bias_desc, bias_desc)});
    description = InnerProduct::desc(dnnl::prop_kind::forward_inference, src, AnyLayout(shape), bias_desc, dst);
  }
  const InnerProduct::primitive_desc primitive(description, Attributes(post_ops), CpuEngine());
  call.SetPrimitive(primitive, InnerProduct(primitive));
  call.SetWeight(desc, RowMajor(shape), primitive.weights_desc());
  return call;
}

absl::StatusOr<Call> MatmulCall(const KernelDesc& desc) {
  const TensorType &a = desc.input(0), &b = desc.input(1);
  const int rank = std::max(a.rank(), b.rank());
  if (a.rank() < 2 || b.rank() < 2 || rank > 5) {
    return absl::UnimplementedError(absl::StrCat("matmul of ", ToString(a), " and ", ToString(b)));
  }
  const MemoryDesc a_desc = BroadcastDesc(a, rank), b_desc = BroadcastDesc(b, rank), dst = DescOf(desc.output());
  Call call;
  call.inputs = {{DNNL_ARG_SRC, 0, a_desc}, {DNNL_ARG_WEIGHTS, 1, b_desc}};
  call.outputs = {{DNNL_ARG_DST, 0, dst}};
  const dnnl::matmul::primitive_desc primitive(dnnl::matmul::desc(a_desc, b_desc, dst), Attributes(), CpuEngine());
  call.SetPrimitive(primitive, dnnl::matmul(primitive));
  return call;
}

// A matrix as it lies in memory, read as its transpose where `transposed` says so.
MemoryDesc MatrixDesc(const TensorType& type, bool transposed) {
  const int64_t rows = type.shape[0], columns = type.shape[1];
  if (!transposed) return RowMajor({rows, columns});
  return MemoryDesc({columns, rows}, dnnl::memory::data_type::f32, Dims{1, columns});
}

// relu?(a * b + c): c one value per column, added while the product is in registers.
absl::StatusOr<Call> GemmCall(const KernelDesc& desc) {
  if (desc.GetFloat("alpha") != 1 || desc.GetFloat("beta") != 1) return absl::UnimplementedError("alpha or beta");
  const MemoryDesc a = MatrixDesc(desc.input(0), desc.GetBool("trans_a")),
                   b = MatrixDesc(desc.input(1), desc.GetBool("trans_b")), dst = DescOf(desc.output());
  dnnl::post_ops post_ops;
  RETURN_IF_ERROR(AppendActivation(desc, post_ops));
  Call call;
  call.inputs = {{DNNL_ARG_SRC, 0, a}, {DNNL_ARG_WEIGHTS, 1, b}};
  call.outputs = {{DNNL_ARG_DST, 0, dst}};
  dnnl::matmul::desc description(a, b, dst);
  if (desc.has_input(2)) {
    const int64_t columns = desc.output().shape[1];
    const Shape& c = desc.input(2).shape;  // A scalar is the one value of one column.
    if (desc.input(2).num_elements() != columns || (!c.empty() && c.back() != columns)) {
      return absl::UnimplementedError(absl::StrCat("c is ", ToString(desc.input(2)), ", wanted one value per column"));
    }
    const MemoryDesc bias = RowMajor({1, columns});
    call.inputs.push_back({DNNL_ARG_BIAS, 2, bias});
    description = dnnl::matmul::desc(a, b, bias, dst);
  }
  const dnnl::matmul::primitive_desc primitive(description, Attributes(post_ops), CpuEngine());
  call.SetPrimitive(primitive, dnnl::matmul(primitive));
  return call;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLinear(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return LinearCall(desc); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return MatmulCall(desc); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGemm(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return GemmCall(desc); });
}

}  // namespace

void RegisterLinear(kernels::KernelRegistry& registry) {
  registry.Register({"linear", kernels::LayoutRule::kRowMajor, CreateLinear});
  registry.Register({"gemm", kernels::LayoutRule::kRowMajor, CreateGemm});
  registry.Register({"matmul", kernels::LayoutRule::kRowMajor, CreateMatmul});
}

}  // namespace fuselage::fp32
