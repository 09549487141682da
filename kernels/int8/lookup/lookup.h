// int8.lookup: bytes to codes by a table of 256, one for all channels or one each.
//
// A row-major image may become NHWC on the way, and is placed as int8.quantize places it (pixel_codes.h).
#ifndef FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_H_
#define FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/lookup/lookup_params.h"

namespace fuselage::int8::lookup {

constexpr int64_t kTableBytes = 256;

absl::StatusOr<Params> MakeParams(const kernels::KernelDesc& desc);

// Pixels [begin, end) of the images * pixels, all channels; x and y are whole tensors.
using Function = void(const Params& params, const uint8_t* tables, const uint8_t* x, uint8_t* y, int64_t begin,
                      int64_t end);
using Variant = kernels::Variant<Params, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::int8::lookup

#endif  // FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_H_
