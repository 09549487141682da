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
        row_bytes_(row * ByteSize(desc.output().dtype)),
        wide_(desc.input(1).dtype == DType::kI64),
        rows_(rows),
        lookups_(lookups) {
    set_variant("copy");
  }

  int64_t row_bytes() const { return row_bytes_; }

 private:
  // Copies rows [begin, end) to `to`, where the first row of all lies, up to the first whose position is beyond its
  // axis, and returns that, or end.
  virtual int64_t CopyRows(Positions positions, const char* from, char* to, int64_t begin, int64_t end) const = 0;
  virtual absl::Status CheckRow(Positions positions, int64_t i) const = 0;

  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const Positions positions{inputs[1].data, wide_};
    if (outputs[0].bytes == 0) return CheckAll(positions);
    const char* from = static_cast<const char*>(inputs[0].data);
    char* to = static_cast<char*>(outputs[0].data);
    std::atomic<int64_t> first_beyond{rows_};
    const int64_t grain = std::max<int64_t>(1, kGrain / row_bytes_);
    kernels::ForRanges(*context.parallel, rows_, grain, [&](int64_t begin, int64_t end) {
      const int64_t beyond = CopyRows(positions, from, to, begin, end);
      if (beyond == end) return;
      int64_t first = first_beyond.load();
      while (beyond < first && !first_beyond.compare_exchange_weak(first, beyond)) {
      }
    });
    return first_beyond.load() < rows_ ? CheckRow(positions, first_beyond.load()) : absl::OkStatus();
  }

  absl::Status CheckAll(Positions positions) const {
    absl::Status status;
    for (int64_t i = 0; i < lookups_ && status.ok(); ++i) status = CheckRow(positions, i);
    return status;
  }

  const int64_t row_bytes_;
  const bool wide_;
  const int64_t rows_, lookups_;
};

// Rows in lines, one position for each. Row j of a line is at base + j * step + position * stride, in elements.
class LineGather : public RowGather {
 protected:
  struct Line {
    int64_t base, first_position;
  };
  LineGather(const KernelDesc& desc, int axis, int64_t rows, int64_t row, int64_t lookups, int64_t line, int64_t step)
      : RowGather(desc, rows, row, lookups),
        element_bytes_(ByteSize(desc.output().dtype)),
        dim_(desc.input(0).shape[axis]),
        stride_(kernels::StridesOf(desc.input(0))[axis]),
        line_(line),
        step_(step) {}

 private:
  virtual Line LineAt(int64_t i) const = 0;

  int64_t CopyRows(Positions positions, const char* from, char* to, int64_t begin, int64_t end) const override {
    const int64_t step = step_ * element_bytes_, stride = stride_ * element_bytes_;
    int64_t i = begin;
    WithCopy(row_bytes(), [&](auto copy) {
      while (i < end) {
        const Line line = LineAt(i / line_);
        const char* base = from + line.base * element_bytes_;
        for (int64_t j = i % line_; j < line_ && i < end; ++j, ++i) {
          const int64_t position = OnAxis(positions[line.first_position + j], dim_);
          if (position < 0) return;
          copy(to + i * row_bytes(), base + j * step + position * stride);
        }
      }
    });
    return i;
  }

  absl::Status CheckRow(Positions positions, int64_t i) const override {
    const int64_t position = positions[LineAt(i / line_).first_position + i % line_];
    return OnAxis(position, dim_) < 0 ? BeyondAxis(position, dim_) : absl::OkStatus();
  }

  const int64_t element_bytes_, dim_, stride_, line_, step_;
};

class IndexSelect : public LineGather {
 public:
  IndexSelect(const KernelDesc& desc, int axis)
      : LineGather(desc, axis, SizeOf(desc.input(0).shape, 0, axis) * desc.input(1).num_elements(),
                   SizeOf(desc.input(0).shape, axis + 1, desc.input(0).rank()), desc.input(1).num_elements(),
                   desc.input(1).num_elements(), /*step=*/0),
        block_(SizeOf(desc.input(0).shape, axis, desc.input(0).rank())) {}

 private:
  Line LineAt(int64_t i) const override { return {i * block_, 0}; }

  const int64_t block_;
};

// A line is one of the result's last axis.
class Gather : public LineGather {
 public:
  Gather(const KernelDesc& desc, int axis)
      : LineGather(desc, axis, desc.output().num_elements(), 1, desc.output().num_elements(),
                   desc.output().shape.back(), axis + 1 < desc.output().rank() ? 1 : 0),
        shape_(desc.output().shape),
        strides_(kernels::StridesOf(desc.input(0))) {
    strides_[axis] = 0;
  }

 private:
  Line LineAt(int64_t i) const override {
    Line line = {0, i * shape_.back()};
    for (size_t axis = shape_.size() - 1; axis-- > 0; i /= shape_[axis]) line.base += i % shape_[axis] * strides_[axis];
    return line;
  }

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
        element_bytes_(ByteSize(desc.output().dtype)),
        dims_(desc.input(0).shape.begin() + batch_dims, desc.input(0).shape.end()) {
    const std::vector<int64_t> strides = kernels::StridesOf(desc.input(0));
    strides_.assign(strides.begin() + batch_dims, strides.end());
    dims_.resize(desc.input(1).shape.back());
  }

 private:
  int64_t CopyRows(Positions positions, const char* from, char* to, int64_t begin, int64_t end) const override {
    int64_t i = begin;
    WithCopy(row_bytes(), [&](auto copy) {
      for (; i < end; ++i) {
        const int64_t offset = Offset(positions, i, nullptr);
        if (offset < 0) return;
        copy(to + i * row_bytes(), from + offset * element_bytes_);
      }
    });
    return i;
  }

  absl::Status CheckRow(Positions positions, int64_t i) const override {
    absl::Status status;
    Offset(positions, i, &status);
    return status;
  }

  // In elements; -1 where a position is beyond its axis: then `beyond` says so.
  int64_t Offset(Positions positions, int64_t i, absl::Status* beyond) const {
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

  const int64_t per_batch_, batch_size_, element_bytes_;
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
