#include <algorithm>
#include <atomic>

#include "kernels/core/strides.h"
#include "kernels/indexing/indexing.h"
#include "kernels/indexing/positions.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

// A result of rows, each copied from the place in the input that positions name.
class RowGather : public kernels::Kernel {
 protected:
  // `lookups`: rows that have a place of their own in the second operand; the others repeat them.
  RowGather(const KernelDesc& desc, int64_t rows, int64_t row, int64_t lookups)
      : Kernel(desc),
        element_bytes_(ByteSize(desc.output().dtype)),
        wide_(desc.input(1).dtype == DType::kI64),
        rows_(rows),
        row_(row),
        lookups_(lookups) {
    set_variant("copy");
  }

 private:
  // Where row `i` begins in the input, in elements; -1 where a position is beyond its axis: then `beyond` says so.
  virtual int64_t Offset(Positions positions, int64_t i, absl::Status* beyond) const = 0;

  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const Positions positions{inputs[1].data, wide_};
    if (outputs[0].bytes == 0) return Check(positions);
    const char* from = static_cast<const char*>(inputs[0].data);
    char* to = static_cast<char*>(outputs[0].data);
    const int64_t bytes = row_ * element_bytes_;
    std::atomic<int64_t> first_beyond{rows_};
    kernels::ForRanges(*context.parallel, rows_, std::max<int64_t>(1, kGrain / bytes), [&](int64_t begin, int64_t end) {
      WithCopy(bytes, [&](auto copy) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t offset = Offset(positions, i, nullptr);
          if (offset < 0) {
            int64_t first = first_beyond.load();
            while (i < first && !first_beyond.compare_exchange_weak(first, i)) {
            }
            return;
          }
          copy(to + i * bytes, from + offset * element_bytes_);
        }
      });
    });
    absl::Status status;
    if (first_beyond.load() < rows_) Offset(positions, first_beyond.load(), &status);
    return status;
  }

  absl::Status Check(Positions positions) const {
    absl::Status status;
    for (int64_t i = 0; i < lookups_ && status.ok(); ++i) Offset(positions, i, &status);
    return status;
  }

  const int64_t element_bytes_;
  const bool wide_;
  const int64_t rows_, row_, lookups_;
};

class IndexSelect : public RowGather {
 public:
  IndexSelect(const KernelDesc& desc, int axis)
      : RowGather(desc, SizeOf(desc.input(0).shape, 0, axis) * desc.input(1).num_elements(),
                  SizeOf(desc.input(0).shape, axis + 1, desc.input(0).rank()), desc.input(1).num_elements()),
        count_(desc.input(1).num_elements()),
        dim_(desc.input(0).shape[axis]),
        inner_(SizeOf(desc.input(0).shape, axis + 1, desc.input(0).rank())) {}

 private:
  int64_t Offset(Positions positions, int64_t i, absl::Status* beyond) const override {
    const int64_t position = OnAxis(positions[i % count_], dim_);
    if (position < 0) {
      if (beyond != nullptr) *beyond = BeyondAxis(positions[i % count_], dim_);
      return -1;
    }
    return (i / count_ * dim_ + position) * inner_;
  }

  const int64_t count_, dim_, inner_;
};

class Gather : public RowGather {
 public:
  Gather(const KernelDesc& desc, int axis)
      : RowGather(desc, desc.output().num_elements(), 1, desc.output().num_elements()),
        dim_(desc.input(0).shape[axis]),
        stride_(kernels::StridesOf(desc.input(0))[axis]),
        shape_(desc.output().shape),
        strides_(kernels::StridesOf(desc.input(0))) {
    strides_[axis] = 0;
  }

 private:
  int64_t Offset(Positions positions, int64_t i, absl::Status* beyond) const override {
    const int64_t position = OnAxis(positions[i], dim_);
    if (position < 0) {
      if (beyond != nullptr) *beyond = BeyondAxis(positions[i], dim_);
      return -1;
    }
    int64_t offset = position * stride_;
    for (size_t axis = shape_.size(); axis-- > 0; i /= shape_[axis]) offset += i % shape_[axis] * strides_[axis];
    return offset;
  }

  const int64_t dim_, stride_;
  const Shape shape_;
  std::vector<int64_t> strides_;
};

class GatherNd : public RowGather {
 public:
  GatherNd(const KernelDesc& desc, int batch_dims)
      : RowGather(desc, desc.input(1).num_elements() / desc.input(1).shape.back(),
                  SizeOf(desc.input(0).shape, batch_dims + static_cast<int>(desc.input(1).shape.back()),
                         desc.input(0).rank()),
                  desc.input(1).num_elements() / desc.input(1).shape.back()),
        per_batch_(SizeOf(desc.input(1).shape, batch_dims, desc.input(1).rank() - 1)),
        batch_size_(SizeOf(desc.input(0).shape, batch_dims, desc.input(0).rank())),
        dims_(desc.input(0).shape.begin() + batch_dims, desc.input(0).shape.end()) {
    const std::vector<int64_t> strides = kernels::StridesOf(desc.input(0));
    strides_.assign(strides.begin() + batch_dims, strides.end());
    dims_.resize(desc.input(1).shape.back());
  }

 private:
  int64_t Offset(Positions positions, int64_t i, absl::Status* beyond) const override {
    int64_t offset = i / per_batch_ * batch_size_;
    for (size_t k = 0; k < dims_.size(); ++k) {
      const int64_t stated = positions[i * dims_.size() + k], position = OnAxis(stated, dims_[k]);
      if (position < 0) {
        if (beyond != nullptr) *beyond = BeyondAxis(stated, dims_[k]);
        return -1;
      }
      offset += position * strides_[k];
    }
    return offset;
  }

  const int64_t per_batch_, batch_size_;
  std::vector<int64_t> dims_, strides_;
};

}  // namespace

KernelOr CreateGather(const KernelDesc& desc) {
  if (desc.op == "gather_nd") return std::make_unique<GatherNd>(desc, static_cast<int>(desc.GetInt("batch_dims")));
  const int axis = NormalizedAxis(desc.GetInt("dim"), desc.input(0).rank());
  if (desc.op == "gather") return std::make_unique<Gather>(desc, axis);
  return std::make_unique<IndexSelect>(desc, axis);
}

}  // namespace fuselage::indexing
