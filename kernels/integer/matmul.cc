#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/integer/integer.h"
#include "kernels/integer/product.h"

namespace fuselage::integer {
namespace {

using kernels::KernelDesc;

enum Operand { kA, kB, kAZeroPoint, kBZeroPoint };

using LessFunction = int16_t(const void* codes, int64_t i, int32_t zero_point);

template <typename Code>
int16_t Less(const void* codes, int64_t i, int32_t zero_point) {
  return static_cast<int16_t>(static_cast<const Code*>(codes)[i] - zero_point);
}

class MatmulInteger : public kernels::Kernel {
 public:
  MatmulInteger(const KernelDesc& desc, const Product& product, const Variant& variant)
      : Kernel(desc),
        product_(product),
        per_column_(desc.has_input(kBZeroPoint) && desc.input(kBZeroPoint).num_elements() != 1),
        run_(variant.run) {
    set_variant(variant.name);
    const Tensor *b = desc.ParameterOrNull("b"), *zero_point = desc.ParameterOrNull("b_zero_point");
    if (b != nullptr && (zero_point != nullptr || !desc.has_input(kBZeroPoint))) {
      const TensorType type = product.packed_type();
      const std::string layout =
          absl::StrCat("matmul_integer ", variant.name, " ", TextOf(zero_point), " ", ToString(type));
      packed_b_ = desc.Packed("b", layout, [&] {
        kernels::Serial serial;
        std::vector<kernels::ConstBuffer> known(desc.inputs.size());
        known[kB].data = b->raw_data();
        if (zero_point != nullptr) known[kBZeroPoint].data = zero_point->raw_data();
        Tensor packed(type);
        PackB(known, packed.raw_data(), serial);
        return packed;
      });
      set_weight_bytes(0, {packed_b_});
    }
    rows_bytes_ = product.scratch_bytes(desc.threads);
    set_scratch_bytes(rows_bytes_ + (packed_b_ == nullptr ? product.packed_type().byte_size() : 0));
  }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const override {
    const void* packed_b = packed_b_ == nullptr ? nullptr : packed_b_->raw_data();
    if (packed_b == nullptr) {
      void* packed = static_cast<char*>(context.scratch.data) + rows_bytes_;
      PackB(inputs, packed, *context.parallel);
      packed_b = packed;
    }
    const DType dtype = this->inputs()[kA]->dtype;
    const Left left = LeftOf(product_, dtype, ZeroPoint(*this, kAZeroPoint, inputs));
    const auto pack_rows = [&](int64_t row, int64_t n, int64_t, void* to) {
      WithTypes(product_, dtype, [&](auto code, auto packed) {
        const auto* from = static_cast<const decltype(code)*>(inputs[kA].data) + row * product_.depth;
        auto* rows = static_cast<decltype(packed)*>(to);
        const int64_t depth = product_.steps() * product_.per_step();
        for (int64_t r = 0; r < n; ++r, from += product_.depth, rows += depth) {
          PackCodes(from, product_.depth, left.less, rows);
          std::fill(rows + product_.depth, rows + depth, decltype(packed){0});
        }
      });
    };
    Multiply(product_, packed_b, left.zero, pack_rows, run_, static_cast<int32_t*>(outputs[0].data),
             context.scratch.data, *context.parallel);
  }

  void PackB(absl::Span<const kernels::ConstBuffer> inputs, void* packed, kernels::Parallel& parallel) const {
    LessFunction* const less = this->inputs()[kB]->dtype == DType::kU8 ? Less<uint8_t> : Less<int8_t>;
    const auto element = [&](int64_t, int64_t k, int64_t n) {
      return less(inputs[kB].data, k * product_.columns + n,
                  ZeroPoint(*this, kBZeroPoint, inputs, per_column_ ? n : 0));
    };
    kernels::ForRanges(parallel, product_.panels(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) PackPanel(product_, panel, element, packed);
    });
  }

  const Product product_;
  const bool per_column_;  // A zero point of b for each.
  Function* const run_;
  std::shared_ptr<const Tensor> packed_b_;  // Null: b arrives at run time.
  int64_t rows_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateMatmul(const KernelDesc& desc) {
  if (!desc.has_input(kA) || !desc.has_input(kB)) return absl::InvalidArgumentError("matmul_integer: wanted a and b");
  const TensorType &a = desc.input(kA), &b = desc.input(kB);
  if (a.rank() < 2 || b.rank() != 2) {
    return absl::UnimplementedError(absl::StrCat("matmul_integer of ", ToString(a), " and ", ToString(b)));
  }
  Product product;
  product.rows = 1;
  for (int axis = 0; axis + 1 < a.rank(); ++axis) product.rows *= a.shape[axis];
  product.depth = b.shape[0];
  product.columns = b.shape[1];
  if (desc.has_input(kAZeroPoint) && desc.input(kAZeroPoint).num_elements() != 1) {
    return absl::UnimplementedError(
        absl::StrCat("a_zero_point is ", ToString(desc.input(kAZeroPoint)), ", wanted one element"));
  }
  if (desc.has_input(kBZeroPoint)) {
    const TensorType& zero = desc.input(kBZeroPoint);
    const bool columns = zero.rank() > 0 && zero.shape.back() == b.shape[1] && zero.num_elements() == b.shape[1];
    if (zero.num_elements() != 1 && !columns) {
      return absl::UnimplementedError(
          absl::StrCat("b_zero_point is ", ToString(zero), ", wanted one element, or one per column"));
    }
  }
  const Variant& variant = kernels::BestVariant(Variants(), desc.isa);
  product.bytes = variant.bytes;
  return std::make_unique<MatmulInteger>(desc, product, variant);
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"matmul_integer", kernels::LayoutRule::kRowMajor, CreateMatmul});
  registry.Register({"conv_integer2d", kernels::LayoutRule::kNhwc, CreateConv});
}

}  // namespace fuselage::integer
