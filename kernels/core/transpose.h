// Matrices whose rows become columns, a block at a time through registers.
#ifndef FUSELAGE_KERNELS_CORE_TRANSPOSE_H_
#define FUSELAGE_KERNELS_CORE_TRANSPOSE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace fuselage::kernels {

// Vectors of 8 or 16 bytes, which GCC and Clang have on every machine.
template <typename T, size_t kBytes>
struct Lanes {
  static constexpr size_t kCount = kBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kBytes)));

  // kFirst: 0 or half of the lanes. Half of the elements of a and of b from there on, by turns.
  template <size_t kFirst>
  static Vector Zip(Vector a, Vector b) {
    return Zip<kFirst>(a, b, std::make_index_sequence<kCount>());
  }

 private:
  template <size_t kFirst, size_t... i>
  static Vector Zip(Vector a, Vector b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, (kFirst + i / 2 + i % 2 * kCount)...);
  }
};

// As many rows and columns as a vector has lanes. Each time that the first half of the rows is zipped with the second,
// what a row and a column have in common moves on by one bit, and with the last one they have changed places.
template <typename T, size_t kBytes>
void TransposeBlock(const T* from, int64_t from_step, T* to, int64_t to_step) {
  using Block = Lanes<T, kBytes>;
  constexpr size_t kCount = Block::kCount;
  typename Block::Vector rows[kCount], zipped[kCount];
#pragma GCC unroll 16
  for (size_t k = 0; k < kCount; ++k) std::memcpy(&rows[k], from + k * from_step, kBytes);
#pragma GCC unroll 4
  for (size_t done = 1; done < kCount; done *= 2) {
#pragma GCC unroll 8
    for (size_t k = 0; k < kCount / 2; ++k) {
      zipped[2 * k] = Block::template Zip<0>(rows[k], rows[k + kCount / 2]);
      zipped[2 * k + 1] = Block::template Zip<kCount / 2>(rows[k], rows[k + kCount / 2]);
    }
#pragma GCC unroll 16
    for (size_t k = 0; k < kCount; ++k) rows[k] = zipped[k];
  }
#pragma GCC unroll 16
  for (size_t k = 0; k < kCount; ++k) std::memcpy(to + k * to_step, &rows[k], kBytes);
}

// f of the first element of each block from `begin` to `end`; the last one may begin within that before it.
template <int64_t kCount, typename F>
void ForBlocks(int64_t begin, int64_t end, int64_t size, F f) {
  for (int64_t i = begin; i < end; i += kCount) f(std::min(i, size - kCount));
}

// By blocks, as many next to one another along the longer side as fill a line of the cache: so the longer side is
// walked once, and lines are read and written whole. False: the matrix is smaller than a block.
template <typename T, size_t kBytes>
bool TransposeBlocks(int64_t rows, int64_t columns, const T* from, int64_t from_step, T* to, int64_t to_step) {
  constexpr int64_t kCount = Lanes<T, kBytes>::kCount, kLine = 64 / sizeof(T);
  if (rows < kCount || columns < kCount) return false;
  const auto block = [=](int64_t r, int64_t c) {
    TransposeBlock<T, kBytes>(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
  };
  const int64_t longer = std::max(rows, columns);
  for (int64_t first = 0; first < longer; first += kLine) {
    const int64_t end = std::min(longer, first + kLine);
    if (rows > columns) {
      ForBlocks<kCount>(0, columns, columns,
                        [=](int64_t c) { ForBlocks<kCount>(first, end, rows, [=](int64_t r) { block(r, c); }); });
    } else {
      ForBlocks<kCount>(0, rows, rows,
                        [=](int64_t r) { ForBlocks<kCount>(first, end, columns, [=](int64_t c) { block(r, c); }); });
    }
  }
  return true;
}

// to[c * to_step + r] = from[r * from_step + c]. No overlap.
template <typename T>
void Transpose(int64_t rows, int64_t columns, const T* from, int64_t from_step, T* to, int64_t to_step) {
  if (TransposeBlocks<T, 16>(rows, columns, from, from_step, to, to_step)) return;
  if constexpr (sizeof(T) == 1) {
    if (TransposeBlocks<T, 8>(rows, columns, from, from_step, to, to_step)) return;
  }
  // The inner loop walks the longer side, so that three channels of a picture do not make loops of three.
  if (rows >= columns) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) to[c * to_step + r] = from[r * from_step + c];
    }
  }
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TRANSPOSE_H_
