#include "runtime/reorder.h"

#include <algorithm>

#include "kernels/core/transpose.h"

namespace fuselage::runtime {
namespace {

// Below this, waking threads costs more than it gives.
constexpr int64_t kSerialBytes = 32 << 10;

template <typename T>
void TransposeAs(int64_t batch, int64_t rows, int64_t columns, const void* from_bytes, void* to_bytes,
                 kernels::Parallel& parallel) {
  const T* from = static_cast<const T*>(from_bytes);
  T* to = static_cast<T*>(to_bytes);
  // A thread takes its share of each matrix's longer side, whole lines of the cache of it.
  constexpr int64_t kLine = 64 / sizeof(T);
  const bool serial = batch * rows * columns * static_cast<int64_t>(sizeof(T)) <= kSerialBytes;
  const int64_t parts = serial ? 1 : parallel.threads(), longer = std::max(rows, columns);
  const auto end_of = [&](int64_t part) {
    return std::min(longer, ((longer + kLine - 1) / kLine * part / parts) * kLine);
  };
  const auto body = [&](int64_t part) {
    const int64_t begin = end_of(part), size = end_of(part + 1) - begin;
    for (int64_t matrix = 0; matrix < batch; ++matrix) {
      const T* x = from + matrix * rows * columns;
      T* y = to + matrix * rows * columns;
      if (rows > columns) {
        kernels::Transpose(size, columns, x + begin * columns, columns, y + begin, rows);
      } else {
        kernels::Transpose(rows, size, x + begin, columns, y + begin * rows, rows);
      }
    }
  };
  if (serial) return body(0);
  parallel.For(static_cast<int>(parts), [&](int part, int) { body(part); });
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
