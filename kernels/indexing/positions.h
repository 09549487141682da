// How the kernels of this folder read positions and copy rows.
#ifndef FUSELAGE_KERNELS_INDEXING_POSITIONS_H_
#define FUSELAGE_KERNELS_INDEXING_POSITIONS_H_

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "ir/base/tensor.h"

namespace fuselage::indexing {

inline constexpr int64_t kGrain = 1 << 14;  // Bytes that are worth a thread's while.

// A list of i32 or i64.
struct Positions {
  const void* data;
  bool wide;

  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// On an axis of `dim` elements, counted from the front; -1 where it is beyond.
inline int64_t OnAxis(int64_t position, int64_t dim) {
  if (position < -dim || position >= dim) return -1;
  return position < 0 ? position + dim : position;
}

absl::Status BeyondAxis(int64_t position, int64_t dim);

// The product of shape[begin, end).
int64_t SizeOf(const Shape& shape, int begin, int end);
int NormalizedAxis(int64_t axis, int rank);

// Calls f(copy), where copy(to, from) copies `bytes` bytes: those of one element without a call of memcpy.
template <typename F>
void WithCopy(int64_t bytes, F f) {
  switch (bytes) {
    case 1: return f([](char* to, const char* from) { *to = *from; });
    case 4: return f([](char* to, const char* from) { std::memcpy(to, from, 4); });
    case 8: return f([](char* to, const char* from) { std::memcpy(to, from, 8); });
    default: return f([bytes](char* to, const char* from) { std::memcpy(to, from, bytes); });
  }
}

}  // namespace fuselage::indexing

#endif  // FUSELAGE_KERNELS_INDEXING_POSITIONS_H_
