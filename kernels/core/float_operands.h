// What float kernels check and read alike.
#ifndef FUSELAGE_KERNELS_CORE_FLOAT_OPERANDS_H_
#define FUSELAGE_KERNELS_CORE_FLOAT_OPERANDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/kernel.h"

namespace fuselage::kernels {

// Unimplemented: an operand or a result that is not f32, or has no elements.
absl::Status CheckFloats(const KernelDesc& desc);

// A parameter whose values are f32, or dequantize to them. InvalidArgument where it is absent, Unimplemented where its
// element type is another.
absl::StatusOr<const Tensor*> CheckedFloatParameter(const KernelDesc& desc, absl::string_view name);
// Its f32 values.
absl::StatusOr<Tensor> FloatParameter(const KernelDesc& desc, absl::string_view name);
// The same as a list; without such a parameter, `size` times `fill`.
absl::StatusOr<std::vector<float>> FloatsOr(const KernelDesc& desc, absl::string_view name, int64_t size, float fill);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_FLOAT_OPERANDS_H_
