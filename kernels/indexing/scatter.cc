#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
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
    if (axis < 0) {
      const int depth = static_cast<int>(shape_.back());
      rows_ /= depth;
      row_ = SizeOf(dims_, depth, desc.input(0).rank());
      dims_.resize(depth);
    }
    if (const Tensor* known = desc.ParameterOrNull(axis < 0 ? "indices" : "index")) {
      known_.resize(rows_);
      if (!FindOffsets({known->raw_data(), wide_}, known_.data()).ok()) known_.clear();  // An error of the run.
    }
    if (known_.empty()) set_scratch_bytes(rows_ * sizeof(int64_t));
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const char* from = static_cast<const char*>(inputs[0].data);
    char* to = static_cast<char*>(outputs[0].data);
    kernels::ForRanges(*context.parallel, outputs[0].bytes, kGrain,
                       [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
    const int64_t* offsets = known_.data();
    if (known_.empty()) {
      int64_t* found = static_cast<int64_t*>(context.scratch.data);
      RETURN_IF_ERROR(FindOffsets({inputs[1].data, wide_}, found));
      offsets = found;
    }
    if (rows_ == 0 || row_ == 0) return absl::OkStatus();
    const char* source = static_cast<const char*>(inputs[2].data);
    if (axis_ > 0) {
      const int64_t slices = shape_[0], rows = rows_ / slices, grain = kGrain / (rows * element_bytes_);
      kernels::ForRanges(*context.parallel, slices, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        PutRows(offsets, source, to, {begin * rows, end * rows, 0, 1});
      });
    } else {
      const int64_t grain = kGrain / (rows_ * element_bytes_);
      kernels::ForRanges(*context.parallel, row_, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        PutRows(offsets, source, to, {0, rows_, begin, end});
      });
    }
    return absl::OkStatus();
  }

  struct Part {
    int64_t begin, end;                // Rows.
    int64_t first_column, end_column;  // In each of them.
  };
  // Whole rows that go to places next to each other go at once.
  void PutRows(const int64_t* offsets, const char* source, char* to, const Part& part) const {
    const int64_t columns = part.end_column - part.first_column;
    for (int64_t i = part.begin, next; i < part.end; i = next) {
      next = i + 1;
      while (columns == row_ && next < part.end && offsets[next] == offsets[next - 1] + row_) ++next;
      const int64_t target = offsets[i] + part.first_column, own = i * row_ + part.first_column;
      reducer_(to + target * element_bytes_, source + own * element_bytes_, (next - i) * columns);
    }
  }

  // Of each row's place, in elements. An error: the first position that is beyond its axis.
  absl::Status FindOffsets(Positions positions, int64_t* offsets) const {
    return axis_ < 0 ? OffsetsOfTuples(positions, offsets) : OffsetsAlongAxis(positions, offsets);
  }

  absl::Status OffsetsOfTuples(Positions positions, int64_t* offsets) const {
    const size_t depth = dims_.size();
    for (int64_t i = 0, next = 0; i < rows_; ++i) {
      int64_t offset = 0;
      for (size_t k = 0; k < depth; ++k, ++next) {
        const int64_t place = OnAxis(positions[next], dims_[k]);
        if (place < 0) return BeyondAxis(positions[next], dims_[k]);
        offset += place * strides_[k];
      }
      offsets[i] = offset;
    }
    return absl::OkStatus();
  }

  // Lines of the positions' last axis share what the axes before it add.
  absl::Status OffsetsAlongAxis(Positions positions, int64_t* offsets) const {
    const int last = static_cast<int>(shape_.size()) - 1;
    const int64_t dim = dims_[axis_], stride = strides_[axis_], step = axis_ == last ? 0 : strides_[last];
    for (int64_t first = 0; first < rows_; first += shape_[last]) {
      int64_t offset = 0, line = first / shape_[last];
      for (int axis = last - 1; axis >= 0; line /= shape_[axis--]) {
        if (axis != axis_) offset += line % shape_[axis] * strides_[axis];
      }
      for (int64_t i = first; i < first + shape_[last]; ++i, offset += step) {
        const int64_t place = OnAxis(positions[i], dim);
        if (place < 0) return BeyondAxis(positions[i], dim);
        offsets[i] = offset + place * stride;
      }
    }
    return absl::OkStatus();
  }

  const Reducer reducer_;
  const int64_t element_bytes_;
  const bool wide_;
  const int axis_;
  const Shape shape_;  // The positions'.
  Shape dims_;         // The sizes of the axes that they are on.
  const std::vector<int64_t> strides_;
  int64_t rows_, row_ = 1;
  std::vector<int64_t> known_;  // The offsets, where no run changes the positions.
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
