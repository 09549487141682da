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
  // Threads share the matrices' longer sides, by whole lines of the cache.
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t longer = std::max(rows, columns), lines = (longer + kLine - 1) / kLine;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t count; begin < end; begin += count) {
      const int64_t matrix = begin / lines, line = begin % lines, first = line * kLine;
      count = std::min(end - begin, lines - line);
      const int64_t size = std::min(longer - first, count * kLine);
      const T* x = from + matrix * rows * columns;
      T* y = to + matrix * rows * columns;
      if (rows > columns) {
        kernels::Transpose(size, columns, x + first * columns, columns, y + first, rows);
      } else {
        kernels::Transpose(rows, size, x + first, columns, y + first * rows, rows);
      }
    }
  };
  if (batch * rows * columns * static_cast<int64_t>(sizeof(T)) <= kSerialBytes) return run(0, batch * lines);
  const int threads = parallel.threads();
  parallel.For(threads,
               [&](int part, int) { run(batch * lines * part / threads, batch * lines * (part + 1) / threads); });
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
