#include "kernels/core/float_operands.h"

#include "absl/strings/str_cat.h"

namespace fuselage::kernels {
namespace {

absl::Status CheckFloat(const TensorType& type) {
  if (type.dtype != DType::kF32 || type.quant.has_value()) {
    return absl::UnimplementedError(absl::StrCat("operand of type ", ToString(type), ", want f32"));
  }
  if (type.num_elements() == 0) return absl::UnimplementedError(absl::StrCat("operand ", ToString(type), " is empty"));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFloats(const KernelDesc& desc) {
  for (const auto& input : desc.inputs) {
    if (input.has_value()) RETURN_IF_ERROR(CheckFloat(*input));
  }
  for (const TensorType& output : desc.outputs) RETURN_IF_ERROR(CheckFloat(output));
  return absl::OkStatus();
}

absl::StatusOr<const Tensor*> CheckedFloatParameter(const KernelDesc& desc, absl::string_view name) {
  const Tensor* tensor = desc.ParameterOrNull(name);
  if (tensor == nullptr) return absl::InvalidArgumentError(absl::StrCat("no parameter ", name));
  if (tensor->dtype() != DType::kF32 && !tensor->type().quant.has_value()) {
    return absl::UnimplementedError(absl::StrCat(name, " of type ", ToString(tensor->type()), ", want f32"));
  }
  return tensor;
}

absl::StatusOr<Tensor> FloatParameter(const KernelDesc& desc, absl::string_view name) {
  ASSIGN_OR_RETURN(const Tensor* tensor, CheckedFloatParameter(desc, name));
  return tensor->type().quant.has_value() ? Dequantized(*tensor) : *tensor;
}

absl::StatusOr<std::vector<float>> FloatsOr(const KernelDesc& desc, absl::string_view name, int64_t size, float fill) {
  if (desc.ParameterOrNull(name) == nullptr) return std::vector<float>(size, fill);
  ASSIGN_OR_RETURN(const Tensor tensor, FloatParameter(desc, name));
  return std::vector<float>(tensor.values<float>().begin(), tensor.values<float>().end());
}

}  // namespace fuselage::kernels
