// NumPy broadcasting: the elements of an operand in the order of the result's memory.
#ifndef FUSELAGE_KERNELS_CORE_BROADCAST_H_
#define FUSELAGE_KERNELS_CORE_BROADCAST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/base/tensor.h"
#include "kernels/core/strides.h"

namespace fuselage::kernels {

constexpr int kMostBroadcastAxes = 8;

// An operand that is smaller than the result. Strides are in elements, 0 along stretched axes.
class Broadcast {
 public:
  // `from` must broadcast to `to`, of rank 1 to kMostBroadcastAxes; both in one layout where they are of rank 4.
  Broadcast(const TensorType& from, const TensorType& to) {
    const std::vector<int64_t> own = StridesOf(from);
    std::vector<int64_t> aligned(to.shape.size(), 0);  // By the result's axes, as numpy aligns them.
    const size_t lead = to.shape.size() - from.shape.size();
    for (size_t axis = 0; axis < own.size(); ++axis) aligned[lead + axis] = from.shape[axis] == 1 ? 0 : own[axis];
    const Shape shape = InMemoryOrder(to.shape, to.layout), strides = InMemoryOrder(aligned, to.layout);
    // Axes that go on where the next ones end are one.
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      if (!shape_.empty() && strides_.back() == strides[axis] * shape[axis]) {
        shape_.back() *= shape[axis];
        strides_.back() = strides[axis];
      } else {
        shape_.push_back(shape[axis]);
        strides_.push_back(strides[axis]);
      }
    }
    if (shape_.empty()) shape_ = {1}, strides_ = {0};
  }

  // The result's axes in the order of its memory, as few as there can be, and the operand's strides along them.
  const Shape& shape() const { return shape_; }
  const std::vector<int64_t>& strides() const { return strides_; }

  // From any multiple of `span` on, and up to the next, the operand's elements are the same `run` of them again and
  // again.
  struct Repetition {
    int64_t run = 1, span = 1;
  };
  Repetition repetition() const {
    Repetition found;
    size_t axis = shape_.size();
    for (; axis > 0 && (strides_[axis - 1] == found.run || shape_[axis - 1] == 1); --axis) {
      found.run *= shape_[axis - 1];
    }
    found.span = found.run;
    for (; axis > 0 && (strides_[axis - 1] == 0 || shape_[axis - 1] == 1); --axis) found.span *= shape_[axis - 1];
    return found;
  }

  // The n elements of the operand that meet those of the result from `begin` on, in rectangles of the two innermost
  // axes: each(offset, row_stride, rows, stride, run).
  template <typename Each>
  void ForEachRectangle(int64_t begin, int64_t n, Each each) const {
    const size_t last = shape_.size() - 1;
    int64_t index[kMostBroadcastAxes] = {}, offset = 0, rest = begin;
    for (size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis]) {
      index[axis] = rest % shape_[axis];
      offset += index[axis] * strides_[axis];
    }
    const int64_t row_stride = last > 0 ? strides_[last - 1] : 0;
    while (n > 0) {
      const int64_t run = std::min(n, shape_[last] - index[last]);
      const int64_t left = last > 0 ? shape_[last - 1] - index[last - 1] : 1;
      const int64_t rows = run < shape_[last] ? 1 : std::min(n / run, left);
      each(offset, row_stride, rows, strides_[last], run);
      n -= rows * run;
      offset -= index[last] * strides_[last];
      index[last] = 0;
      int64_t steps = rows;
      for (size_t axis = last; axis-- > 0; steps = 1) {
        offset += steps * strides_[axis];
        if ((index[axis] += steps) < shape_[axis]) break;
        offset -= strides_[axis] * shape_[axis];
        index[axis] = 0;
      }
    }
  }

  // The same in runs along the innermost axis: each(offset, stride, count).
  template <typename Each>
  void ForEachRun(int64_t begin, int64_t n, Each each) const {
    ForEachRectangle(begin, n, [&](int64_t offset, int64_t row_stride, int64_t rows, int64_t stride, int64_t run) {
      for (int64_t row = 0; row < rows; ++row) each(offset + row * row_stride, stride, run);
    });
  }

  // Copies them.
  template <typename T>
  void Gather(const T* x, int64_t begin, int64_t n, T* y) const {
    ForEachRectangle(begin, n, [&](int64_t offset, int64_t row_stride, int64_t rows, int64_t stride, int64_t run) {
      const T* from = x + offset;
      constexpr int64_t kShort = 8;
      if (run < std::min(kShort, rows)) {  // The longer side is the inner loop.
        for (int64_t i = 0; i < run; ++i) {
          for (int64_t row = 0; row < rows; ++row) y[row * run + i] = from[row * row_stride + i * stride];
        }
      } else {
        for (int64_t row = 0; row < rows; ++row) CopyRun(from + row * row_stride, stride, run, y + row * run);
      }
      y += rows * run;
    });
  }

 private:
  template <typename T>
  static void CopyRun(const T* x, int64_t stride, int64_t n, T* y) {
    if (stride == 1) {
      std::copy_n(x, n, y);
    } else if (stride == 0) {
      constexpr int64_t kBlock = 16;  // A loop of constant length becomes vectors, whatever the compiler's options.
      int64_t i = 0;
      for (; i + kBlock <= n; i += kBlock) std::fill_n(y + i, kBlock, *x);
      std::fill_n(y + i, n - i, *x);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
    }
  }

  static Shape InMemoryOrder(const Shape& shape, Layout layout) {
    if (shape.size() != 4 || layout != Layout::kNhwc) return shape;
    return {shape[0], shape[2], shape[3], shape[1]};
  }

  Shape shape_;
  std::vector<int64_t> strides_;
};

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_BROADCAST_H_
