// dynamic_quantize_asymmetric (ONNX DynamicQuantizeLinear) and dynamic_quantize_symmetric, to the bits of their
// reference evaluation (ir/ops/dynamic_quantize): the range of each group of values, a scale from it, and codes by
// int8.quantize. Least and greatest are found on the floats' bits as ordered integers, so in any order they are the
// same. A group is one or more segments of memory: a token's features, or of its features those of each head. One
// segment alone (dims = []) is spread over the threads in pieces, groups are whole.
#ifndef FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_
#define FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"
#include "kernels/int8/quantize/quantize_params.h"

namespace fuselage::dynamic_quantize {

// Holds the values and 0. Floats as integers of the same order: their bits, all but the sign flipped where it is set.
struct Range {
  int32_t least = 0, greatest = 0;
};

// The values of a group are those of its segments: [offset + segment, offset + segment + length) in memory.
struct Groups {
  std::vector<int64_t> offsets, segments;
  int64_t length = 0;

  int64_t size() const { return static_cast<int64_t>(offsets.size()); }
  int64_t values() const { return static_cast<int64_t>(segments.size()) * length; }  // Of each group.
};

Groups GroupsOf(const TensorType& x, const TensorType& scale);

// The scale of a group's codes: 1 where it would be no normal number, and the value itself where one is not finite.
float SymmetricScale(const Range& range);
// From values to codes in [-127, 127], by the variants of int8.quantize.
int8::quantize::Params SymmetricParams(float scale);

// n values.
using Function = Range(const float* x, int64_t n);
using Variant = kernels::Variant<kernels::KernelDesc, Function>;

absl::Span<const Variant> Variants();

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, FindRange)

}  // namespace fuselage::dynamic_quantize

#endif  // FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_
