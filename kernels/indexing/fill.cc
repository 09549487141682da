// one_hot, reverse_sequence, tril, triu.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/strides.h"
#include "kernels/indexing/indexing.h"
#include "kernels/indexing/positions.h"

namespace fuselage::indexing {
namespace {

using kernels::KernelDesc;

class OneHot : public kernels::BinaryKernel {
 public:
  OneHot(const KernelDesc& desc, int axis)
      : BinaryKernel(desc),
        element_bytes_(ByteSize(desc.output().dtype)),
        wide_(desc.input(0).dtype == DType::kI64),
        outer_(SizeOf(desc.output().shape, 0, axis)),
        classes_(desc.output().shape[axis]),
        inner_(SizeOf(desc.output().shape, axis + 1, desc.output().rank())) {
    set_variant("scalar");
  }

 private:
  void ComputeBinary(const void* index, const void* values, void* y,
                     const kernels::RunContext& context) const override {
    const Positions positions{index, wide_};
    const char* off = static_cast<const char*>(values);
    const char* on = off + element_bytes_;
    const int64_t block = classes_ * inner_;
    if (block == 0) return;
    const int64_t grain = std::max<int64_t>(1, kGrain / (block * element_bytes_));
    kernels::ForRanges(*context.parallel, outer_, grain, [&](int64_t begin, int64_t end) {
      WithCopy(element_bytes_, [&](auto copy) {
        char* to = static_cast<char*>(y);
        for (int64_t i = begin * block; i < end * block; ++i) copy(to + i * element_bytes_, off);
        for (int64_t i = begin * inner_; i < end * inner_; ++i) {
          const int64_t at = OnAxis(positions[i], classes_);
          if (at >= 0) copy(to + (i / inner_ * block + at * inner_ + i % inner_) * element_bytes_, on);
        }
      });
    });
  }

  const int64_t element_bytes_;
  const bool wide_;
  const int64_t outer_, classes_, inner_;
};

class ReverseSequence : public kernels::Kernel {
 public:
  ReverseSequence(const KernelDesc& desc, int batch, int time)
      : Kernel(desc),
        wide_(desc.input(1).dtype == DType::kI64),
        batches_(desc.input(0).shape[batch]),
        times_(desc.input(0).shape[time]) {
    const Shape& shape = desc.input(0).shape;
    const int last = std::max(batch, time) + 1;
    rows_ = SizeOf(shape, 0, last);
    row_bytes_ = SizeOf(shape, last, desc.input(0).rank()) * ByteSize(desc.output().dtype);
    batch_stride_ = SizeOf(shape, batch + 1, last);
    time_stride_ = SizeOf(shape, time + 1, last);
    set_variant("copy");
  }

 private:
  absl::Status TryCompute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                          const kernels::RunContext& context) const override {
    const Positions lengths{inputs[1].data, wide_};
    for (int64_t b = 0; b < batches_; ++b) {
      if (lengths[b] < 0 || lengths[b] > times_) {
        return absl::InvalidArgumentError(
            absl::StrCat("found length ", lengths[b], ", wanted one in [0, ", times_, "]"));
      }
    }
    if (row_bytes_ == 0) return absl::OkStatus();
    const char* from = static_cast<const char*>(inputs[0].data);
    char* to = static_cast<char*>(outputs[0].data);
    const int64_t grain = std::max<int64_t>(1, kGrain / row_bytes_);
    kernels::ForRanges(*context.parallel, rows_, grain, [&](int64_t begin, int64_t end) {
      WithCopy(row_bytes_, [&](auto copy) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t length = lengths[i / batch_stride_ % batches_], t = i / time_stride_ % times_;
          const int64_t source = t < length ? i + (length - 1 - 2 * t) * time_stride_ : i;
          copy(to + i * row_bytes_, from + source * row_bytes_);
        }
      });
    });
    return absl::OkStatus();
  }

  const bool wide_;
  const int64_t batches_, times_;
  int64_t rows_, row_bytes_, batch_stride_, time_stride_;  // Strides in rows.
};

class Triangle : public kernels::UnaryKernel {
 public:
  explicit Triangle(const KernelDesc& desc)
      : UnaryKernel(desc),
        element_bytes_(ByteSize(desc.output().dtype)),
        rows_(desc.output().shape[desc.output().rank() - 2]),
        columns_(desc.output().shape.back()),
        // Beyond these every row is whole, or none is.
        diagonal_(std::clamp(desc.GetInt("diagonal"), -rows_ - 1, columns_ + 1)),
        upper_(desc.op == "triu") {
    set_variant("copy");
  }

 private:
  void ComputeUnary(const void* x, void* y, const kernels::RunContext& context) const override {
    if (columns_ == 0) return;
    const int64_t bytes = columns_ * element_bytes_;
    const int64_t all = outputs()[0].num_elements() / columns_, grain = std::max<int64_t>(1, kGrain / bytes);
    kernels::ForRanges(*context.parallel, all, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // The first column above the diagonal, or in `upper_` the first one kept.
        const int64_t edge = std::clamp<int64_t>(i % rows_ + diagonal_ + !upper_, 0, columns_) * element_bytes_;
        const char* from = static_cast<const char*>(x) + i * bytes;
        char* to = static_cast<char*>(y) + i * bytes;
        std::memcpy(upper_ ? to + edge : to, upper_ ? from + edge : from, upper_ ? bytes - edge : edge);
        std::memset(upper_ ? to : to + edge, 0, upper_ ? edge : bytes - edge);
      }
    });
  }

  const int64_t element_bytes_, rows_, columns_, diagonal_;
  const bool upper_;
};

}  // namespace

KernelOr CreateOneHot(const KernelDesc& desc) {
  return std::make_unique<OneHot>(desc, NormalizedAxis(desc.GetInt("dim"), desc.output().rank()));
}

KernelOr CreateReverseSequence(const KernelDesc& desc) {
  const int rank = desc.input(0).rank();
  return std::make_unique<ReverseSequence>(desc, NormalizedAxis(desc.GetInt("batch_dim"), rank),
                                           NormalizedAxis(desc.GetInt("time_dim"), rank));
}

KernelOr CreateTriangle(const KernelDesc& desc) { return std::make_unique<Triangle>(desc); }

}  // namespace fuselage::indexing
