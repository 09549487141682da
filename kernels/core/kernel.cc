#include "kernels/core/kernel.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fuselage::kernels {
namespace {

absl::Status CheckBuffer(const void* data, int64_t bytes, int64_t wanted, const TensorType& type,
                         absl::string_view what, int index) {
  if (bytes < wanted || (data == nullptr && wanted > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", index, " has ", data == nullptr ? 0 : bytes,
                                                   " bytes, wanted ", wanted, " for ", ToString(type)));
  }
  return absl::OkStatus();
}

}  // namespace

const Tensor* KernelDesc::ParameterOrNull(absl::string_view name) const {
  const auto it = parameters.find(std::string(name));
  return it == parameters.end() ? nullptr : it->second.get();
}

std::shared_ptr<const Tensor> KernelDesc::Packed(absl::string_view name, const std::string& layout,
                                                 absl::FunctionRef<Tensor()> pack) const {
  auto packed = weights == nullptr ? std::make_shared<const Tensor>(pack())
                                   : weights->Get(parameters.at(std::string(name)), layout, pack);
  // A layout ends with the type of what is packed. So weights that a file holds under this name are as large as the
  // kernel reads.
  FUSELAGE_CHECK(absl::EndsWith(layout, absl::StrCat(" ", ToString(packed->type()))));
  return packed;
}

const Attribute& KernelDesc::attribute(absl::string_view name) const {
  const auto it = attributes.find(name);
  FUSELAGE_CHECK(it != attributes.end());
  return it->second;
}

Kernel::Kernel(const KernelDesc& desc) : inputs_(desc.inputs), outputs_(desc.outputs) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    input_bytes_.push_back(inputs_[i] ? PlacedBytes(*inputs_[i], desc.input_placement(static_cast<int>(i))) : 0);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    output_bytes_.push_back(PlacedBytes(outputs_[i], i == 0 ? desc.output_placement : Placement()));
  }
}

int64_t PlacedBytes(const TensorType& type, const Placement& placement) {
  return placement.dense() ? type.byte_size() : PlacedTensor(type.shape, placement).bytes;
}

absl::Status Kernel::Run(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                         const RunContext& context) const {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs and ", outputs.size(), " outputs, wanted ",
                                                   inputs_.size(), " and ", outputs_.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_[i]) {
      RETURN_IF_ERROR(
          CheckBuffer(inputs[i].data, inputs[i].bytes, input_bytes_[i], *inputs_[i], "input", static_cast<int>(i)));
    } else if (inputs[i].data != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is present, wanted it absent"));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(
        CheckBuffer(outputs[i].data, outputs[i].bytes, output_bytes_[i], outputs_[i], "output", static_cast<int>(i)));
  }
  if (context.parallel == nullptr) return absl::InvalidArgumentError("no threads to run on");
  if (scratch_bytes_ > 0 && (context.scratch.data == nullptr || context.scratch.bytes < scratch_bytes_)) {
    return absl::InvalidArgumentError(absl::StrCat("scratch has ",
                                                   context.scratch.data == nullptr ? 0 : context.scratch.bytes,
                                                   " bytes, wanted ", scratch_bytes_));
  }
  return TryCompute(inputs, outputs, context);
}

void Kernel::Compute(absl::Span<const ConstBuffer>, absl::Span<const Buffer>, const RunContext&) const {
  FUSELAGE_CHECK(false && "a kernel without Compute and TryCompute");
}

absl::Status Kernel::TryCompute(absl::Span<const ConstBuffer> inputs, absl::Span<const Buffer> outputs,
                                const RunContext& context) const {
  Compute(inputs, outputs, context);
  return absl::OkStatus();
}

int64_t Kernel::weight_bytes() const {
  int64_t bytes = own_weight_bytes_;
  for (const auto& packed : packed_) bytes += packed->byte_size();
  return bytes;
}

float Kernel::output_scale() const {
  const std::optional<QuantParams>& quant = outputs_[0].quant;
  return quant && quant->per_tensor() ? quant->scale() : 1.0f;
}

int32_t Kernel::output_zero_point() const {
  const std::optional<QuantParams>& quant = outputs_[0].quant;
  return quant && quant->per_tensor() ? quant->zero_point() : 0;
}

absl::Status CheckCodes(const TensorType& type, absl::string_view what) {
  if (type.dtype != DType::kU8 && type.dtype != DType::kI8) {
    return absl::UnimplementedError(absl::StrCat(what, " is ", ToString(type), ", wanted u8 or i8 codes"));
  }
  if (!type.quant) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is ", ToString(type), " without quantization parameters"));
  }
  if (!type.quant->per_tensor()) {
    return absl::UnimplementedError(
        absl::StrCat(what, " is quantized per axis ", type.quant->axis, ", wanted per tensor"));
  }
  return Annotate(CheckQuantParams(*type.quant, type.dtype, type.shape), what);
}

absl::Status CheckSameQuantization(const TensorType& a, const TensorType& b, absl::string_view what) {
  if (a.dtype == b.dtype && a.quant == b.quant) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", ToString(a), " and ", ToString(b),
                                                 ", wanted the same element type, scale and zero point"));
}

}  // namespace fuselage::kernels
