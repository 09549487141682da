#include "kernels/norm/norm.h"

#include <algorithm>
#include <utility>

#include "ir/base/activation.h"
#include "kernels/core/float_operands.h"
#include "kernels/norm/rows.h"

namespace fuselage::norm {
namespace {

using kernels::Isa;
using kernels::Kernel;
using kernels::KernelDesc;

constexpr Variant kVariants[] = {
    {"scalar", Isa::kScalar, nullptr, scalar::Normalize},
    {"avx2", Isa::kAvx2, nullptr, avx2::Normalize},
    {"avx512_vnni", Isa::kAvx512Vnni, nullptr, avx512_vnni::Normalize},
};

constexpr int64_t kGrain = 1 << 13;          // Elements that are worth a thread's while.
constexpr int64_t kBlockElements = 1 << 12;  // Of a block: its floats stay in a core's first cache.

class Norm final : public kernels::UnaryKernel {
 public:
  Norm(const KernelDesc& desc, Rows rows) : UnaryKernel(desc), rows_(std::move(rows)) { set_variant(rows_.variant()); }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    const int64_t columns = rows_.columns(), grain = std::max<int64_t>(1, kGrain / columns);
    kernels::ForRanges(*context.parallel, rows_.count(), grain, [&](int64_t begin, int64_t end) {
      Block block = rows_.block();
      for (int64_t i = begin; i < end; i += block.rows) {
        block.rows = std::min(block.rows, end - i);
        block.x = static_cast<const float*>(x) + i * columns;
        block.y = static_cast<float*>(y) + i * columns;
        rows_.Normalize(i, &block);
      }
    });
  }

  const Rows rows_;
};

struct Double {
  static Double Load(const float* x) { return {*x}; }
  static Double Load(const double* x) { return {*x}; }

  friend Double operator+(Double a, Double b) { return {a.v + b.v}; }
  friend Double operator-(Double a, double b) { return {a.v - b}; }
  friend Double operator*(Double a, Double b) { return {a.v * b.v}; }

  double Sum() const { return v; }

  double v;
};

}  // namespace

absl::Span<const Variant> Variants() { return kVariants; }

absl::StatusOr<Rows> Rows::Of(const KernelDesc& desc, const TensorType& x, bool centered) {
  Rows rows;
  Block& block = rows.block_;
  int64_t parameters;
  if (desc.attributes.count("normalized_shape") > 0) {
    for (const int64_t size : desc.GetInts("normalized_shape")) block.n *= size;
    parameters = block.n;
    block.rows = std::clamp<int64_t>(kBlockElements / block.n / 2 * 2, 2, kBlockRows);
  } else {
    for (size_t axis = 2; axis < x.shape.size(); ++axis) block.inner *= x.shape[axis];
    parameters = x.shape[1];
    const bool grouped = desc.attributes.count("num_groups") > 0;
    block.n = (grouped ? parameters / desc.GetInt("num_groups") : 1) * block.inner;
    ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
    block.min = activation.min;
    block.max = activation.max;
    rows.function_ = activation.function;
  }
  block.centered = centered;
  block.eps = desc.GetFloat("eps");
  rows.count_ = x.num_elements() / block.n;
  ASSIGN_OR_RETURN(rows.weight_, kernels::FloatsOr(desc, "weight", parameters, 1.0f));
  ASSIGN_OR_RETURN(rows.bias_, kernels::FloatsOr(desc, "bias", parameters, 0.0f));
  rows.variant_ = &kernels::BestVariant(Variants(), desc.isa);
  return rows;
}

void Rows::Normalize(int64_t first, Block* block) const {
  const int64_t parameter = first * block_.n / block_.inner % static_cast<int64_t>(weight_.size());
  block->weight = weight_.data() + parameter;
  block->bias = bias_.data() + parameter;
  block->function = function_ ? &*function_ : nullptr;
  variant_->run(*block);
}

absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelDesc& desc) {
  RETURN_IF_ERROR(kernels::CheckFloats(desc));
  ASSIGN_OR_RETURN(Rows rows, Rows::Of(desc, desc.input(0), desc.op != "rms_norm"));
  return std::make_unique<Norm>(desc, std::move(rows));
}

void Register(kernels::KernelRegistry& registry) {
  for (const char* op : {"group_norm", "instance_norm", "rms_norm"}) {
    registry.Register({op, kernels::LayoutRule::kRowMajor, Create});
  }
}

void scalar::Normalize(const Block& block) {
  NormalizeBlock<Double>(block, [](const ElementwiseInstruction& function, float* values, int64_t size) {
    for (int64_t i = 0; i < size; ++i) values[i] = elementwise::Activated(function, values[i]);
  });
}

}  // namespace fuselage::norm
