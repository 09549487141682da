#include "runtime/reorder.h"

#include <algorithm>

#include "kernels/core/transpose.h"

namespace fuselage::runtime {
namespace {

// A block of both matrices stays in the first-level cache: 64 x 64 elements of at most 8 bytes, twice.
constexpr int64_t kBlock = 64;
// Below this, waking threads costs more than it gives.
constexpr int64_t kSerialBytes = 32 << 10;

template <typename T>
void TransposeAs(int64_t batch, int64_t rows, int64_t columns, const void* from_bytes, void* to_bytes,
                 kernels::Parallel& parallel) {
  const T* from = static_cast<const T*>(from_bytes);
  T* to = static_cast<T*>(to_bytes);
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock, column_blocks = (columns + kBlock - 1) / kBlock;
  const auto body = [&](int64_t task) {
    const int64_t matrix = task / (row_blocks * column_blocks), block = task % (row_blocks * column_blocks);
    const int64_t row = block / column_blocks * kBlock, column = block % column_blocks * kBlock;
    kernels::Transpose(std::min(kBlock, rows - row), std::min(kBlock, columns - column),
                       from + (matrix * rows + row) * columns + column, columns,
                       to + (matrix * columns + column) * rows + row, rows);
  };
  const int64_t blocks = batch * row_blocks * column_blocks;
  if (batch * rows * columns * static_cast<int64_t>(sizeof(T)) <= kSerialBytes) {
    for (int64_t task = 0; task < blocks; ++task) body(task);
    return;
  }
  // One task a thread: each walks its consecutive blocks.
  const int threads = parallel.threads();
  parallel.For(threads, [&](int part, int) {
    for (int64_t task = blocks * part / threads; task < blocks * (part + 1) / threads; ++task) body(task);
  });
}

}  // namespace

bool SameInBothLayouts(const Shape& shape) { return shape.size() != 4 || shape[1] == 1 || shape[2] * shape[3] == 1; }

void Transpose(int64_t batch, int64_t rows, int64_t columns, int64_t element_bytes, const void* from, void* to,
               kernels::Parallel& parallel) {
  switch (element_bytes) {
    case 1: return TransposeAs<uint8_t>(batch, rows, columns, from, to, parallel);
    case 2: return TransposeAs<uint16_t>(batch, rows, columns, from, to, parallel);
    case 4: return TransposeAs<uint32_t>(batch, rows, columns, from, to, parallel);
    case 8: return TransposeAs<uint64_t>(batch, rows, columns, from, to, parallel);
  }
  FUSELAGE_CHECK(false && "element size");
}

void Reorder(const TensorType& type, const void* from, void* to, kernels::Parallel& parallel) {
  FUSELAGE_CHECK(type.rank() == 4);
  const int64_t batch = type.shape[0], channels = type.shape[1], pixels = type.shape[2] * type.shape[3];
  const bool to_nhwc = type.layout == Layout::kRowMajor;
  Transpose(batch, to_nhwc ? channels : pixels, to_nhwc ? pixels : channels, ByteSize(type.dtype), from, to, parallel);
}

}  // namespace fuselage::runtime
