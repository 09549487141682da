#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"
#include "kernels/indexing/indexing.h"
#include "kernels/indexing/positions.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

// How two elements become one. Integers wrap around; NaN wins.
template <typename T>
T Sum(T a, T b) {
  return a + b;
}
template <>
int64_t Sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <>
int32_t Sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
template <typename T>
T Product(T a, T b) {
  return a * b;
}
template <>
int64_t Product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <>
int32_t Product(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
template <typename T>
T Largest(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T Least(T a, T b) {
  return a < b || a != a ? a : b;
}

// `count` elements of `from` reduced into `to`.
using Reducer = void (*)(char* to, const char* from, int64_t count);

template <typename T, T (*kReduce)(T, T)>
void ReduceRow(char* to, const char* from, int64_t count) {
  T* y = reinterpret_cast<T*>(to);
  const T* x = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) y[i] = kReduce(y[i], x[i]);
}
template <int kBytes>
void PutRow(char* to, const char* from, int64_t count) {
  std::memcpy(to, from, count * kBytes);
}

template <typename T>
Reducer ReducerOf(absl::string_view reduce) {
  if (reduce == "add") return ReduceRow<T, Sum<T>>;
  if (reduce == "mul") return ReduceRow<T, Product<T>>;
  return reduce == "max" ? ReduceRow<T, Largest<T>> : ReduceRow<T, Least<T>>;
}

// Null where there is none.
Reducer ReducerOrNull(DType dtype, absl::string_view reduce) {
  if (reduce == "none") {
    switch (ByteSize(dtype)) {
      case 1: return PutRow<1>;
      case 2: return PutRow<2>;
      case 4: return PutRow<4>;
      default: return PutRow<8>;
    }
  }
  switch (dtype) {
    case DType::kF32: return ReducerOf<float>(reduce);
    case DType::kI64: return ReducerOf<int64_t>(reduce);
    case DType::kI32: return ReducerOf<int32_t>(reduce);
    case DType::kU8: return ReducerOf<uint8_t>(reduce);
    case DType::kI8: return ReducerOf<int8_t>(reduce);
    default: return nullptr;
  }
}

// Row i of the source, in their order, goes to where positions say. Threads share the work so that each place belongs
// to one of them: by columns of long rows, by index on axis 0 where that is not the scattered one.
class Scatter : public kernels::Kernel {
 public:
  // `axis` < 0: scatter_nd.
  Scatter(const KernelDesc& desc, int axis, Reducer reducer)
      : Kernel(desc),
        reducer_(reducer),
        element_bytes_(ByteSize(desc.output().dtype)),
        wide_(desc.input(1).dtype == DType::kI64),
        axis_(axis),
        shape_(desc.input(1).shape),
        dims_(desc.input(0).shape),
        strides_(kernels::StridesOf(desc.input(0))),
        rows_(desc.input(1).num_elements()) {
    set_variant("scalar");
    if (axis >= 0) return;
    const int depth = static_cast<int>(shape_.back());
    rows_ /= depth;
    row_ = SizeOf(dims_, depth, desc.input(0).rank());
    dims_.resize(depth);
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const char* from = static_cast<const char*>(inputs[0].data);
    char* to = static_cast<char*>(outputs[0].data);
    kernels::ForRanges(*context.parallel, outputs[0].bytes, kGrain,
                       [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
    const Positions positions{inputs[1].data, wide_};
    for (int64_t i = 0; i < inputs[1].bytes / (wide_ ? 8 : 4); ++i) {
      const int64_t dim = axis_ >= 0 ? dims_[axis_] : dims_[i % dims_.size()];
      if (OnAxis(positions[i], dim) < 0) return BeyondAxis(positions[i], dim);
    }
    if (rows_ == 0 || row_ == 0) return absl::OkStatus();
    const char* source = static_cast<const char*>(inputs[2].data);
    if (axis_ > 0) {
      const int64_t slices = shape_[0], rows = rows_ / slices, grain = kGrain / (rows * element_bytes_);
      kernels::ForRanges(*context.parallel, slices, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        PutRows(positions, source, to, {begin * rows, end * rows, 0, 1});
      });
    } else {
      const int64_t grain = kGrain / (rows_ * element_bytes_);
      kernels::ForRanges(*context.parallel, row_, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        PutRows(positions, source, to, {0, rows_, begin, end});
      });
    }
    return absl::OkStatus();
  }

  struct Part {
    int64_t begin, end;                // Rows.
    int64_t first_column, end_column;  // In each of them.
  };
  void PutRows(Positions positions, const char* source, char* to, const Part& part) const {
    for (int64_t i = part.begin; i < part.end; ++i) {
      const int64_t target = Offset(positions, i) + part.first_column, own = i * row_ + part.first_column;
      reducer_(to + target * element_bytes_, source + own * element_bytes_, part.end_column - part.first_column);
    }
  }

  int64_t Offset(Positions positions, int64_t i) const {
    int64_t offset = 0;
    if (axis_ >= 0) {
      offset = OnAxis(positions[i], dims_[axis_]) * strides_[axis_];
      for (int axis = static_cast<int>(shape_.size()) - 1; axis >= 0; i /= shape_[axis--]) {
        if (axis != axis_) offset += i % shape_[axis] * strides_[axis];
      }
      return offset;
    }
    for (size_t k = 0; k < dims_.size(); ++k) offset += OnAxis(positions[i * dims_.size() + k], dims_[k]) * strides_[k];
    return offset;
  }

  const Reducer reducer_;
  const int64_t element_bytes_;
  const bool wide_;
  const int axis_;
  const Shape shape_;  // The positions'.
  Shape dims_;         // The sizes of the axes that they are on.
  const std::vector<int64_t> strides_;
  int64_t rows_, row_ = 1;
};

}  // namespace

KernelOr CreateScatter(const KernelDesc& desc) {
  const Reducer reducer = ReducerOrNull(desc.output().dtype, desc.GetString("reduce"));
  if (reducer == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("reductions of ", DTypeName(desc.output().dtype), " while scattering"));
  }
  const int axis = desc.op == "scatter" ? NormalizedAxis(desc.GetInt("dim"), desc.input(0).rank()) : -1;
  return std::make_unique<Scatter>(desc, axis, reducer);
}

}  // namespace fuselage::indexing
