#include "kernels/fp32/onednn.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "kernels/fp32/openmp.h"

namespace fuselage::fp32 {
namespace {

using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::Kernel;
using kernels::KernelDesc;

class OnednnKernel final : public Kernel {
 public:
  OnednnKernel(const KernelDesc& desc, Call call) : Kernel(desc), threads_(desc.threads), call_(std::move(call)) {
    int64_t constant_bytes = 0;
    for (const Call::Constant& constant : call_.constants) constant_bytes += constant.memory.get_desc().get_size();
    set_variant(absl::StrCat("onednn ", call_.implementation));
    idle_.push_back(std::make_unique<Binding>(call_));
    set_scratch_bytes(idle_[0]->scratch_bytes());
    if (call_.weight == nullptr) {
      set_weight_bytes(constant_bytes);
    } else {
      set_weight_bytes(constant_bytes - call_.weight->byte_size(), {call_.weight});
    }
  }

 private:
  // What oneDNN wants of one run: objects that know where its operands lie.
  class Binding {
   public:
    explicit Binding(const Call& call) : stream_(CpuEngine()) {
      for (const Call::Argument& argument : call.outputs) outputs_.push_back(Bind(argument));
      for (const Call::Argument& argument : call.inputs) inputs_.push_back(Bind(argument));
      for (Bound& bound : outputs_) AddCopy(bound.copy, bound.memory, bound);
      for (Bound& bound : inputs_) AddCopy(bound.memory, bound.copy, bound);
      for (const Call::Constant& constant : call.constants) {
        arguments_.push_back({constant.name, constant.memory.get()});
      }
      if (call.scratchpad.get_size() > 0) {
        scratchpad_ = dnnl::memory(call.scratchpad, CpuEngine(), DNNL_MEMORY_NONE);
        arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
      }
    }

    void Run(const dnnl::primitive& primitive, absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
             void* scratch) const {
      for (const Bound& bound : inputs_) SetHandle(bound.memory, inputs[bound.index].data);
      for (const Bound& bound : outputs_) SetHandle(bound.memory, outputs[bound.index].data);
      uint8_t* free = static_cast<uint8_t*>(scratch);
      for (const dnnl::memory& copy : copies_) {
        SetHandle(copy, free);
        free += BytesOf(copy);
      }
      if (scratchpad_) SetHandle(scratchpad_, free);
      for (const Bound& bound : inputs_) Copy(bound);
      Execute(primitive, arguments_);
      for (const Bound& bound : outputs_) Copy(bound);
      CheckDone(dnnl_stream_wait(stream_.get()));
    }

    int64_t scratch_bytes() const {
      int64_t bytes = scratchpad_ ? BytesOf(scratchpad_) : 0;
      for (const dnnl::memory& copy : copies_) bytes += BytesOf(copy);
      return bytes;
    }

   private:
    using Arguments = std::vector<dnnl_exec_arg_t>;

    struct Bound {
      int name, index;
      dnnl::memory memory;          // The operand.
      dnnl::memory copy = {};       // In the layout that the primitive wants, where the operand has another.
      dnnl::primitive copies = {};  // From the one to the other.
      Arguments copied = {};
    };

    static int64_t BytesOf(const dnnl::memory& memory) {
      return (static_cast<int64_t>(memory.get_desc().get_size()) + 63) / 64 * 64;
    }

    Bound Bind(const Call::Argument& argument) {
      dnnl::memory wanted(argument.desc, CpuEngine(), DNNL_MEMORY_NONE);
      const auto output = std::find_if(outputs_.begin(), outputs_.end(),
                                       [&](const Bound& bound) { return bound.name == argument.name; });
      if (output != outputs_.end()) {
        wanted = output->copy ? output->copy : output->memory;
      } else {
        arguments_.push_back({argument.name, wanted.get()});
        if (argument.own.is_zero()) return {argument.name, argument.index, wanted};
        copies_.push_back(wanted);
      }
      return {argument.name, argument.index, dnnl::memory(argument.own, CpuEngine(), DNNL_MEMORY_NONE), wanted};
    }

    static void AddCopy(const dnnl::memory& from, const dnnl::memory& to, Bound& bound) {
      if (!bound.copy) return;
      const dnnl::reorder::primitive_desc copy(from, to, Attributes());
      FUSELAGE_CHECK(copy.scratchpad_desc().get_size() == 0);
      bound.copies = dnnl::reorder(copy);
      bound.copied = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
    }

    void Copy(const Bound& bound) const {
      if (bound.copy) Execute(bound.copies, bound.copied);
    }

    // The C interface: no exceptions, and no argument map to build.
    void Execute(const dnnl::primitive& primitive, const Arguments& arguments) const {
      CheckDone(
          dnnl_primitive_execute(primitive.get(), stream_.get(), static_cast<int>(arguments.size()), arguments.data()));
    }

    static void SetHandle(const dnnl::memory& memory, const void* data) {
      FUSELAGE_CHECK(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)) == dnnl_success);
    }

    // The primitive was made for exactly these operands: it lacks nothing but memory.
    static void CheckDone(dnnl_status_t status) {
      if (status == dnnl_out_of_memory) throw std::bad_alloc();
      FUSELAGE_CHECK(status == dnnl_success);
    }

    dnnl::stream stream_;
    std::vector<Bound> inputs_, outputs_;
    std::vector<dnnl::memory> copies_;  // In scratch memory, before the scratchpad.
    dnnl::memory scratchpad_;
    Arguments arguments_;
  };

  void Compute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
               const kernels::RunContext& context) const override {
    const OpenMpScope scope(*context.parallel, threads_);
    std::unique_ptr<Binding> binding = Take();
    binding->Run(call_.primitive, inputs, outputs, context.scratch.data);
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(binding));
  }

  // An idle binding; a new one where as many runs as there are use them all at this moment.
  std::unique_ptr<Binding> Take() const {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Binding> binding = std::move(idle_.back());
        idle_.pop_back();
        return binding;
      }
    }
    return std::make_unique<Binding>(call_);
  }

  const int threads_;
  const Call call_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Binding>> idle_;
};

Dims DimsOf(const TensorType& type) { return type.shape.empty() ? Dims{1} : type.shape; }

// Elements between neighbours along each dimension.
Dims StridesOf(const TensorType& type) {
  const Dims dims = DimsOf(type);
  Dims strides(dims.size(), 1);
  if (type.layout == Layout::kNhwc) {
    return {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
  }
  for (int i = static_cast<int>(dims.size()) - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

// Dimensions, strides and blocks: all that two descriptions of floats can differ in.
std::string LayoutText(const MemoryDesc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  FUSELAGE_CHECK(d.format_kind == dnnl_blocked && d.extra.flags == dnnl_memory_extra_flag_none);
  const dnnl_blocking_desc_t& blocks = d.format_desc.blocking;
  std::string text;
  for (int i = 0; i < d.ndims; ++i)
    absl::StrAppend(&text, d.dims[i], "/", d.padded_dims[i], ":", blocks.strides[i], " ");
  for (int i = 0; i < blocks.inner_nblks; ++i) {
    absl::StrAppend(&text, "block ", blocks.inner_blks[i], " of ", blocks.inner_idxs[i], " ");
  }
  return text;
}

void Reorder(const Tensor& values, const MemoryDesc& from, dnnl::memory& target) {
  FUSELAGE_CHECK(static_cast<int64_t>(from.get_size()) == values.byte_size());
  dnnl::memory source(from, CpuEngine(), const_cast<void*>(values.raw_data()));
  dnnl::stream stream(CpuEngine());
  kernels::Serial serial;
  const OpenMpScope scope(serial, 1);
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
}

}  // namespace

const dnnl::engine& CpuEngine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelDesc& desc,
                                                   absl::FunctionRef<absl::StatusOr<Call>()> make) {
  RETURN_IF_ERROR(kernels::CheckFloats(desc));
  // oneDNN plans for the number of threads at creation. What it runs then (Reordered) runs on this one.
  kernels::Serial serial;
  const OpenMpScope scope(serial, desc.threads);
  try {
    ASSIGN_OR_RETURN(Call call, make());
    return std::make_unique<OnednnKernel>(desc, std::move(call));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
  }
}

MemoryDesc DescOf(const TensorType& type) {
  // oneDNN recognizes layouts by their tags: for dimensions of size 1, strides would be ambiguous.
  if (type.layout == Layout::kNhwc) {
    return MemoryDesc(type.shape, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc);
  }
  return RowMajor(DimsOf(type));
}

MemoryDesc RowMajor(const Dims& dims) {
  using Tag = dnnl::memory::format_tag;
  static constexpr Tag kTags[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
  FUSELAGE_CHECK(!dims.empty());
  if (dims.size() > 6) {
    return MemoryDesc(dims, dnnl::memory::data_type::f32, StridesOf(TensorType{DType::kF32, dims, {}, {}}));
  }
  return MemoryDesc(dims, dnnl::memory::data_type::f32, kTags[dims.size() - 1]);
}

MemoryDesc AnyLayout(const Dims& dims) {
  return MemoryDesc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
}

MemoryDesc BroadcastDesc(const TensorType& type, int rank) {
  Dims dims = DimsOf(type), strides = StridesOf(type);
  if (static_cast<int>(dims.size()) == rank) return DescOf(type);
  const int64_t elements = type.num_elements();
  dims.insert(dims.begin(), rank - dims.size(), 1);
  strides.insert(strides.begin(), rank - strides.size(), elements);
  return MemoryDesc(dims, dnnl::memory::data_type::f32, strides);
}

dnnl::primitive_attr Attributes(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(post_ops);
  return attributes;
}

absl::Status Append(dnnl::post_ops& post_ops, dnnl::algorithm kind, float alpha = 0, float beta = 0) {
  post_ops.append_eltwise(1.0f, kind, alpha, beta);
  return absl::OkStatus();
}

absl::Status AppendFunction(const ElementwiseInstruction& function, dnnl::post_ops& post_ops) {
  using dnnl::algorithm;
  switch (function.op) {
    case ElementwiseOp::kLeakyRelu: return Append(post_ops, algorithm::eltwise_relu, function.p);
    case ElementwiseOp::kHardsigmoid:
      Append(post_ops, algorithm::eltwise_linear, function.p, function.q).IgnoreError();
      return Append(post_ops, algorithm::eltwise_clip, 0, 1);
    case ElementwiseOp::kHardswish: return Append(post_ops, algorithm::eltwise_hardswish);
    case ElementwiseOp::kSigmoid: return Append(post_ops, algorithm::eltwise_logistic);
    case ElementwiseOp::kSilu: return Append(post_ops, algorithm::eltwise_swish, 1);
    case ElementwiseOp::kTanh: return Append(post_ops, algorithm::eltwise_tanh);
    case ElementwiseOp::kGelu: return Append(post_ops, algorithm::eltwise_gelu_erf);
    case ElementwiseOp::kGeluTanh: return Append(post_ops, algorithm::eltwise_gelu_tanh);
    case ElementwiseOp::kMish: return Append(post_ops, algorithm::eltwise_mish);
    default: return absl::UnimplementedError(absl::StrCat("activation ", StepOf(function).op));
  }
}

absl::Status AppendActivation(const KernelDesc& desc, dnnl::post_ops& post_ops) {
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  if (activation.is_relu()) return Append(post_ops, dnnl::algorithm::eltwise_relu);
  if (activation.function) RETURN_IF_ERROR(AppendFunction(*activation.function, post_ops));
  if (activation.bounds().is_none()) return absl::OkStatus();
  constexpr float kMost = std::numeric_limits<float>::max();
  return Append(post_ops, dnnl::algorithm::eltwise_clip, std::max(activation.min, -kMost),
                std::min(activation.max, kMost));
}

dnnl::memory Reordered(const Tensor& values, const MemoryDesc& from, const MemoryDesc& to) {
  dnnl::memory target(to, CpuEngine());
  Reorder(values, from, target);
  return target;
}

void Call::SetWeight(const KernelDesc& desc, const MemoryDesc& from, const MemoryDesc& to) {
  const TensorType type{DType::kU8, {static_cast<int64_t>(to.get_size())}, std::nullopt, Layout::kRowMajor};
  const std::string layout = absl::StrCat("onednn ", LayoutText(from), " to ", LayoutText(to), " ", ToString(type));
  weight = desc.Packed("weight", layout, [&] {
    const Tensor& values = *desc.ParameterOrNull("weight");
    Tensor packed(type);
    dnnl::memory target(to, CpuEngine(), packed.raw_data());
    if (values.type().quant.has_value()) {
      Reorder(Dequantized(values), from, target);
    } else {
      Reorder(values, from, target);
    }
    return packed;
  });
  constants.push_back({DNNL_ARG_WEIGHTS, dnnl::memory(to, CpuEngine(), const_cast<void*>(weight->raw_data()))});
}

absl::StatusOr<Dims> IntsOr(const KernelDesc& desc, absl::string_view name, int n, int64_t fill) {
  const std::vector<int64_t>& values = desc.GetInts(name);
  if (values.empty()) return Dims(n, fill);
  if (static_cast<int>(values.size()) != n) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", values.size(), " entries, want ", n));
  }
  return values;
}

}  // namespace fuselage::fp32
