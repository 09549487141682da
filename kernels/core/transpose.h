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

// A matrix and its transpose by the longer side and the shorter one. Of the longer one as much at a time as fills lines
// of the cache: so it is walked once, and lines are read and written whole.
template <typename T>
struct Sides {
  static constexpr int64_t kLine = 64 / sizeof(T);

  Sides(int64_t rows, int64_t columns, int64_t from_step, int64_t to_step)
      : longer(std::max(rows, columns)), shorter(std::min(rows, columns)) {
    const bool tall = rows > columns;
    from_long = tall ? from_step : 1, from_short = tall ? 1 : from_step;
    to_long = tall ? 1 : to_step, to_short = tall ? to_step : 1;
  }

  int64_t longer, shorter, from_long, from_short, to_long, to_short;
};

// By blocks, of which the last ones may begin within those before. False: the matrix is smaller than a block.
template <typename T, size_t kBytes>
bool TransposeBlocks(int64_t rows, int64_t columns, const T* from, int64_t from_step, T* to, int64_t to_step) {
  constexpr int64_t kCount = Lanes<T, kBytes>::kCount;
  if (rows < kCount || columns < kCount) return false;
  const Sides<T> sides(rows, columns, from_step, to_step);
  for (int64_t first = 0; first < sides.longer; first += sides.kLine) {
    const int64_t end = std::min(sides.longer, first + sides.kLine);
    for (int64_t j = 0; j < sides.shorter; j += kCount) {
      const int64_t s = std::min(j, sides.shorter - kCount);
      for (int64_t i = first; i < end; i += kCount) {
        const int64_t l = std::min(i, sides.longer - kCount);
        TransposeBlock<T, kBytes>(from + l * sides.from_long + s * sides.from_short, from_step,
                                  to + l * sides.to_long + s * sides.to_short, to_step);
      }
    }
  }
  return true;
}

// to[c * to_step + r] = from[r * from_step + c]. No overlap.
template <typename T>
void Transpose(int64_t rows, int64_t columns, const T* from, int64_t from_step, T* to, int64_t to_step) {
  if constexpr (sizeof(T) == 1 || sizeof(T) == 4) {  // Codes and floats; others are rare, and not worth the code.
    if (TransposeBlocks<T, 16>(rows, columns, from, from_step, to, to_step)) return;
  }
  if constexpr (sizeof(T) == 1) {
    if (TransposeBlocks<T, 8>(rows, columns, from, from_step, to, to_step)) return;
  }
  const Sides<T> sides(rows, columns, from_step, to_step);
  constexpr int64_t kSome = 4 * Sides<T>::kLine;  // The inner loop is not too short for its overhead.
  for (int64_t first = 0; first < sides.longer; first += kSome) {
    const int64_t end = std::min(sides.longer, first + kSome);
    for (int64_t s = 0; s < sides.shorter; ++s) {
      for (int64_t l = first; l < end; ++l) {
        to[l * sides.to_long + s * sides.to_short] = from[l * sides.from_long + s * sides.from_short];
      }
    }
  }
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_TRANSPOSE_H_
