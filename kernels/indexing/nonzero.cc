#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/indexing/indexing.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

template <typename T>
class Nonzero : public kernels::Kernel {
 public:
  explicit Nonzero(const KernelDesc& desc) : Kernel(desc) { set_variant("scalar"); }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer> in, absl::Span<const kernels::Buffer> out,
               const kernels::RunContext&) const override {
    const Shape& shape = inputs()[0]->shape;
    const T* x = static_cast<const T*>(in[0].data);
    const int64_t size = inputs()[0]->num_elements(), rank = static_cast<int64_t>(shape.size());
    auto* const positions = static_cast<int64_t*>(out[0].data);
    int64_t* to = positions;
    const int64_t row = rank == 0 ? 1 : shape.back();
    int64_t found = 0;
    for (int64_t i = 0; size > 0 && i < size; i += row) {
      for (int64_t column = 0; column < row; ++column) {
        if (x[i + column] == 0) continue;
        ++found;
        if (rank == 0) continue;
        to[rank - 1] = column;
        for (int64_t axis = rank - 2, outer = i / row; axis >= 0; --axis) {
          to[axis] = outer % shape[axis];
          outer /= shape[axis];
        }
        to += rank;
      }
    }
    std::fill(to, positions + size * rank, 0);
    *static_cast<int64_t*>(out[1].data) = found;
  }
};

}  // namespace

KernelOr CreateNonzero(const KernelDesc& desc) {
  switch (desc.input(0).dtype) {
    case DType::kBool:
    case DType::kU8: return std::make_unique<Nonzero<uint8_t>>(desc);
    case DType::kI8: return std::make_unique<Nonzero<int8_t>>(desc);
    case DType::kI32: return std::make_unique<Nonzero<int32_t>>(desc);
    case DType::kI64: return std::make_unique<Nonzero<int64_t>>(desc);
    case DType::kF32: return std::make_unique<Nonzero<float>>(desc);
    default: return absl::UnimplementedError(absl::StrCat("nonzero of ", DTypeName(desc.input(0).dtype)));
  }
}

}  // namespace fuselage::indexing
