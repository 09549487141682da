// max_pool1d..3d, avg_pool1d..3d, global_avg_pool.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/fp32/families.h"
#include "kernels/fp32/onednn.h"

namespace fuselage::fp32 {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

struct Window {
  dnnl::algorithm algorithm;
  Dims kernel, stride, dilation, pad_begin, pad_end;  // dilation 1 is dense.
};

// Volumes are pooled with their channels last: for others oneDNN has no vectors.
MemoryDesc Pooled(const MemoryDesc& own) {
  if (own.dims().size() < 5) return own;
  return MemoryDesc(own.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::ndhwc);
}

absl::StatusOr<Call> PoolCall(const KernelDesc& desc, const Window& w, const MemoryDesc& dst) {
  const MemoryDesc src = DescOf(desc.input(0)), pooled_src = Pooled(src), pooled_dst = Pooled(dst);
  Dims holes = w.dilation;
  for (int64_t& dilation : holes) --dilation;
  using Pooling = dnnl::pooling_v2_forward;
  const Pooling::primitive_desc primitive(Pooling::desc(dnnl::prop_kind::forward_inference, w.algorithm, pooled_src,
                                                        pooled_dst, w.stride, w.kernel, holes, w.pad_begin, w.pad_end),
                                          Attributes(), CpuEngine());
  Call call;
  call.inputs = {Call::InLayout(DNNL_ARG_SRC, 0, pooled_src, src)};
  call.outputs = {Call::InLayout(DNNL_ARG_DST, 0, pooled_dst, dst)};
  call.SetPrimitive(primitive, Pooling(primitive));
  return call;
}

// Whether each window has a tap in the input: taps `dilation` apart may step over all of it.
bool EveryWindowHasATap(int64_t input, int64_t output, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t pad_begin) {
  for (int64_t o = 0; dilation > 1 && o < output; ++o) {
    const int64_t first = o * stride - pad_begin;
    const int64_t outside = first < 0 ? (-first + dilation - 1) / dilation : 0;  // Taps in front of the input.
    if (outside >= kernel || first + outside * dilation >= input) return false;
  }
  return true;
}

absl::StatusOr<Window> WindowOf(const KernelDesc& desc, bool max) {
  const int n = desc.input(0).rank() - 2;
  Window w;
  w.kernel = desc.GetInts("kernel_size");
  if (n < 1 || static_cast<int>(w.kernel.size()) != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel_size has ", w.kernel.size(), " entries for input ", ToString(desc.input(0))));
  }
  w.stride = desc.GetInts("stride").empty() ? w.kernel : desc.GetInts("stride");
  w.dilation = Dims(n, 1);
  if (max) {
    ASSIGN_OR_RETURN(w.dilation, IntsOr(desc, "dilation", n, 1));
  }
  ASSIGN_OR_RETURN(const Dims padding, IntsOr(desc, "padding", 2 * n, 0));
  w.pad_begin.assign(padding.begin(), padding.begin() + n);
  w.pad_end.assign(padding.begin() + n, padding.end());
  const bool include_pad = !max && desc.GetBool("count_include_pad");
  w.algorithm = max           ? dnnl::algorithm::pooling_max
                : include_pad ? dnnl::algorithm::pooling_avg_include_padding
                              : dnnl::algorithm::pooling_avg_exclude_padding;
  for (int i = 0; i < n; ++i) {
    // ceil_mode: the last window may reach beyond the padding.
    const int64_t extent = (w.kernel[i] - 1) * w.dilation[i] + 1;
    const int64_t reach = (desc.output().shape[i + 2] - 1) * w.stride[i] + extent;
    const int64_t beyond = reach - desc.input(0).shape[i + 2] - w.pad_begin[i];
    if (beyond > w.pad_end[i] && include_pad) {
      return absl::UnimplementedError("count_include_pad with windows beyond the padding");
    }
    w.pad_end[i] = std::max(w.pad_end[i], beyond);
    if (w.pad_begin[i] >= extent || w.pad_end[i] >= extent) {
      return absl::UnimplementedError("windows that lie in the padding alone");
    }
    // The largest of no values is -inf, for which oneDNN has the lowest float.
    if (!EveryWindowHasATap(desc.input(0).shape[i + 2], desc.output().shape[i + 2], w.kernel[i], w.stride[i],
                            w.dilation[i], w.pad_begin[i])) {
      return absl::UnimplementedError("windows without a tap in the input");
    }
  }
  return w;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePool(const KernelDesc& desc, bool max) {
  return MakeKernel(desc, [&]() -> absl::StatusOr<Call> {
    ASSIGN_OR_RETURN(const Window window, WindowOf(desc, max));
    return PoolCall(desc, window, DescOf(desc.output()));
  });
}

absl::StatusOr<Call> GlobalAverageCall(const KernelDesc& desc) {
  const TensorType& input = desc.input(0);
  if (input.rank() < 3 || input.rank() > 5) return absl::UnimplementedError(absl::StrCat("input ", ToString(input)));
  const int n = input.rank() - 2;
  Window w{dnnl::algorithm::pooling_avg_exclude_padding,
           Dims(input.shape.begin() + 2, input.shape.end()),
           {},
           Dims(n, 1),
           Dims(n, 0),
           Dims(n, 0)};
  w.stride = w.kernel;
  // The result lies the same in memory with and without its dimensions of size 1.
  TensorType output = input;
  std::fill(output.shape.begin() + 2, output.shape.end(), 1);
  return PoolCall(desc, w, DescOf(output));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGlobalAverage(const KernelDesc& desc) {
  return MakeKernel(desc, [&] { return GlobalAverageCall(desc); });
}

}  // namespace

void RegisterPool(kernels::KernelRegistry& registry) {
  for (const char* suffix : {"1d", "2d", "3d"}) {
    registry.Register({absl::StrCat("max_pool", suffix), kernels::LayoutRule::kNhwc,
                       [](const KernelDesc& desc) { return CreatePool(desc, true); }});
    registry.Register({absl::StrCat("avg_pool", suffix), kernels::LayoutRule::kNhwc,
                       [](const KernelDesc& desc) { return CreatePool(desc, false); }});
  }
  registry.Register({"global_avg_pool", kernels::LayoutRule::kNhwc, CreateGlobalAverage});
}

}  // namespace fuselage::fp32
