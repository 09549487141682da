// Elementwise operators: one operand through oneDNN's eltwise, two (with numpy's broadcasting) through its binary. What
// oneDNN does not have, or has as reference code only, runs on kernels/pointwise.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/fp32/families.h"
#include "kernels/fp32/onednn.h"
#include "kernels/pointwise/pointwise.h"

namespace fuselage::fp32 {
namespace {

using dnnl::algorithm;
using kernels::Kernel;
using kernels::KernelDesc;

struct Function {
  algorithm kind;
  float alpha = 0, beta = 0;  // As oneDNN defines them for the algorithm.
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateUnary(const KernelDesc& desc, const Function& function) {
  return MakeKernel(desc, [&]() -> absl::StatusOr<Call> {
    const MemoryDesc all = RowMajor({desc.output().num_elements()});  // Whatever the layout.
    const dnnl::eltwise_forward::primitive_desc primitive(
        dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference, function.kind, all, function.alpha,
                                    function.beta),
        Attributes(), CpuEngine());
    Call call;
    call.inputs = {{DNNL_ARG_SRC, 0, all}};
    call.outputs = {{DNNL_ARG_DST, 0, all}};
    call.SetPrimitive(primitive, dnnl::eltwise_forward(primitive));
    return call;
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGelu(const KernelDesc& desc) {
  const std::string& approximate = desc.GetString("approximate");
  if (approximate == "none") return CreateUnary(desc, {algorithm::eltwise_gelu_erf});
  if (approximate == "tanh") return CreateUnary(desc, {algorithm::eltwise_gelu_tanh});
  return absl::UnimplementedError(absl::StrCat("approximate \"", approximate, "\""));
}

absl::StatusOr<Call> BinaryCall(const KernelDesc& desc, algorithm kind) {
  dnnl::post_ops post_ops;
  if (kind == algorithm::binary_add) {
    if (desc.GetFloat("alpha") != 1.0) return absl::UnimplementedError("alpha other than 1");
    RETURN_IF_ERROR(AppendActivation(desc, post_ops));
  }
  int a = 0, b = 1;
  const bool same = desc.input(0).shape == desc.input(1).shape;
  // oneDNN broadcasts its second operand only.
  if (!same && desc.input(0).shape != desc.output().shape) {
    if (kind != algorithm::binary_add && kind != algorithm::binary_mul) {
      return absl::UnimplementedError("the first operand is broadcast");
    }
    std::swap(a, b);
    if (desc.input(a).shape != desc.output().shape) return absl::UnimplementedError("both operands are broadcast");
  }
  const int rank = std::max(1, desc.output().rank());
  const MemoryDesc flat = RowMajor({desc.output().num_elements()});
  const MemoryDesc src0 = same ? flat : BroadcastDesc(desc.input(a), rank);
  const MemoryDesc src1 = same ? flat : BroadcastDesc(desc.input(b), rank);
  const MemoryDesc dst = same ? flat : BroadcastDesc(desc.output(), rank);
  const dnnl::binary::primitive_desc primitive(dnnl::binary::desc(kind, src0, src1, dst), Attributes(post_ops),
                                               CpuEngine());
  Call call;
  call.inputs = {{DNNL_ARG_SRC_0, a, src0}, {DNNL_ARG_SRC_1, b, src1}};
  call.outputs = {{DNNL_ARG_DST, 0, dst}};
  call.SetPrimitive(primitive, dnnl::binary(primitive));
  return call;
}

}  // namespace

void RegisterElementwise(kernels::KernelRegistry& registry) {
  const auto add = [&](const char* op,
                       std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelDesc&)> create) {
    // oneDNN's reference code, for what its generated code does not broadcast, takes some hundred cycles an element.
    const auto or_own = [create = std::move(create)](const KernelDesc& desc) {
      auto kernel = create(desc);
      const bool slow = kernel.ok() && absl::StrContains((*kernel)->variant(), "ref:");
      if (!slow && !absl::IsUnimplemented(kernel.status())) return kernel;
      auto own = pointwise::Create(desc);
      return own.ok() || !slow ? std::move(own) : std::move(kernel);
    };
    registry.Register({op, kernels::LayoutRule::kSame, or_own});
  };
  const std::pair<const char*, Function> functions[] = {
      {"relu", {algorithm::eltwise_relu}},        {"sigmoid", {algorithm::eltwise_logistic}},
      {"tanh", {algorithm::eltwise_tanh}},        {"hardswish", {algorithm::eltwise_hardswish}},
      {"silu", {algorithm::eltwise_swish, 1.0f}},
  };
  for (const auto& [op, function] : functions) {
    add(op, [function = function](const KernelDesc& desc) { return CreateUnary(desc, function); });
  }
  add("clamp", [](const KernelDesc& desc) {
    return CreateUnary(desc, {algorithm::eltwise_clip, static_cast<float>(desc.GetFloat("min")),
                              static_cast<float>(desc.GetFloat("max"))});
  });
  add("leaky_relu", [](const KernelDesc& desc) {
    return CreateUnary(desc, {algorithm::eltwise_relu, static_cast<float>(desc.GetFloat("negative_slope"))});
  });
  add("gelu", CreateGelu);

  const std::pair<const char*, algorithm> binaries[] = {{"add", algorithm::binary_add},
                                                        {"sub", algorithm::binary_sub},
                                                        {"mul", algorithm::binary_mul},
                                                        {"div", algorithm::binary_div}};
  for (const auto& [op, kind] : binaries) {
    add(op, [kind = kind](const KernelDesc& desc) { return MakeKernel(desc, [&] { return BinaryCall(desc, kind); }); });
  }

  kernels::KernelRegistry own;
  pointwise::RegisterAll(own);
  for (const kernels::KernelEntry* entry : own.Sorted()) {
    if (registry.FindOrNull(entry->op) == nullptr) registry.Register(*entry);
  }
}

}  // namespace fuselage::fp32
