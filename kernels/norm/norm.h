// layer_norm, rms_norm, group_norm and instance_norm of f32, to the bits of their reference evaluation: mean and factor
// of each row from sums in double, and then float32, one rounding an operation (docs/arithmetic.md).
//
// Declines (Unimplemented): operands that are not f32, or without elements; a weight or bias that a run computes.
#ifndef FUSELAGE_KERNELS_NORM_NORM_H_
#define FUSELAGE_KERNELS_NORM_NORM_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/variant.h"

namespace fuselage::norm {

constexpr int kBlockRows = 8;

// At most kBlockRows rows of n elements, one behind the other, with the same parameters. `inner` divides n, and is 1
// where there is more than one row:
//   y[i] = f((x[i] - mean) / sqrt(variance + eps) * weight[i / inner] + bias[i / inner])
// y is x, or does not overlap it.
struct Block {
  const float* x = nullptr;
  const float* residual = nullptr;  // Unless null, x + residual goes to `sum`, and is what is normalized.
  float *sum = nullptr, *y = nullptr;
  const float *weight = nullptr, *bias = nullptr;
  int64_t n = 1, inner = 1, rows = 1;
  bool centered = true;  // Otherwise the mean is 0: the variance is the mean square.
  double eps = 0;
  // f: a function or none, and then a clamp.
  const ElementwiseInstruction* function = nullptr;
  float min = -std::numeric_limits<float>::infinity(), max = std::numeric_limits<float>::infinity();
};

using Function = void(const Block& block);
using Variant = kernels::Variant<kernels::KernelDesc, Function>;

absl::Span<const Variant> Variants();

// The rows of a call, which lie one behind the other.
class Rows {
 public:
  // The rows that a call of any of the four norms works on, for an operand of type `x`, which has elements.
  static absl::StatusOr<Rows> Of(const kernels::KernelDesc& desc, const TensorType& x, bool centered);

  int64_t count() const { return count_; }
  int64_t columns() const { return block_.n; }
  const Block& block() const { return block_; }  // Of as many rows as are best done at once, without its places.
  absl::Span<const float> weight() const { return weight_; }  // Of element i of all at i / inner, modulo their number.
  absl::Span<const float> bias() const { return bias_; }
  const std::optional<ElementwiseInstruction>& function() const { return function_; }  // In front of the clamp.
  const char* variant() const { return variant_->name; }
  // The block's rows, of which `first` is the first, by their parameters.
  void Normalize(int64_t first, Block* block) const;

 private:
  Block block_;
  int64_t count_ = 0;
  std::vector<float> weight_, bias_;
  std::optional<ElementwiseInstruction> function_;
  const Variant* variant_ = nullptr;
};

// Any of the four.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// All but layer_norm, which kernels/fp32 and kernels/reproducible register, each its own.
void Register(kernels::KernelRegistry& registry);

FUSELAGE_VARIANTS(Function, Normalize)

}  // namespace fuselage::norm

#endif  // FUSELAGE_KERNELS_NORM_NORM_H_
