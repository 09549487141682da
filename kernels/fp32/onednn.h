// What the FP32 kernels share: one oneDNN primitive as a Kernel, and the way from our types to oneDNN's.
#ifndef FUSELAGE_KERNELS_FP32_ONEDNN_H_
#define FUSELAGE_KERNELS_FP32_ONEDNN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/core/float_operands.h"
#include "kernels/core/kernel.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace fuselage::fp32 {

using kernels::CheckedFloatParameter;
using kernels::FloatParameter;
using Dims = dnnl::memory::dims;
using MemoryDesc = dnnl::memory::desc;

const dnnl::engine& CpuEngine();

// A primitive and where its arguments come from.
struct Call {
  struct Argument {
    int name;   // DNNL_ARG_SRC, ...
    int index;  // The kernel's input or output with this index.
    MemoryDesc desc;
    // Where the primitive wants another layout than the operand has: the operand's. It is copied, through scratch
    // memory; an input with an output's name is what that one begins with.
    MemoryDesc own = MemoryDesc();
  };
  struct Constant {
    int name;
    dnnl::memory memory;
  };

  dnnl::primitive primitive;
  MemoryDesc scratchpad;
  std::string implementation;  // oneDNN's name of it: "jit:avx2".
  std::vector<Argument> inputs, outputs;
  std::vector<Constant> constants;
  std::shared_ptr<const Tensor> weight;  // What SetWeight packed.

  template <typename PrimitiveDesc>
  void SetPrimitive(const PrimitiveDesc& desc, dnnl::primitive made) {
    primitive = std::move(made);
    scratchpad = desc.scratchpad_desc();
    implementation = desc.impl_info_str();
  }
  // The operand in the layout `wanted`.
  static Argument InLayout(int name, int index, const MemoryDesc& wanted, const MemoryDesc& own) {
    return wanted == own ? Argument{name, index, own} : Argument{name, index, wanted, own};
  }
  // DNNL_ARG_WEIGHTS: the parameter "weight", which lies as `from`, in the layout `to`.
  void SetWeight(const kernels::KernelDesc& desc, const MemoryDesc& from, const MemoryDesc& to);
};

// The kernel of the call that `make` describes. Declines (Unimplemented) operands that are not f32 or have no elements,
// and what oneDNN declines; of exceptions only std::bad_alloc leaves it.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> MakeKernel(const kernels::KernelDesc& desc,
                                                            absl::FunctionRef<absl::StatusOr<Call>()> make);

// The operand as it lies in memory.
MemoryDesc DescOf(const TensorType& type);
// Row-major, of any rank from 1 to 5.
MemoryDesc RowMajor(const Dims& dims);
// In the layout that the primitive prefers.
MemoryDesc AnyLayout(const Dims& dims);
// DescOf with leading dimensions of size 1, as numpy broadcasts.
MemoryDesc BroadcastDesc(const TensorType& type, int rank);

// Attributes that every primitive here has: scratch memory comes from the caller.
dnnl::primitive_attr Attributes(const dnnl::post_ops& post_ops = {});

// post_ops += the op's attribute `activation`.
absl::Status AppendActivation(const kernels::KernelDesc& desc, dnnl::post_ops& post_ops);

// Copies `values`, laid out as `from`, into new memory laid out as `to`.
dnnl::memory Reordered(const Tensor& values, const MemoryDesc& from, const MemoryDesc& to);

// The list attribute; `fill` n times where it is empty. InvalidArgument where it has another length.
absl::StatusOr<Dims> IntsOr(const kernels::KernelDesc& desc, absl::string_view name, int n, int64_t fill);

}  // namespace fuselage::fp32

#endif  // FUSELAGE_KERNELS_FP32_ONEDNN_H_
