#include "kernels/int8/matmul/operands.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "ir/base/check.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::matmul {
namespace {

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Vectors of 16 bytes, which GCC and Clang have on every machine.
typedef uint8_t Bytes __attribute__((vector_size(16)));
typedef uint16_t Words __attribute__((vector_size(16)));
typedef uint32_t Dwords __attribute__((vector_size(16)));

// The first or last eight bytes of a and b by turns.
inline Bytes ZipLow(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Bytes ZipHigh(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// [kGroup][kBlock] codes, of which a vector holds a row, as [kBlock][kGroup].
template <int kBlock, int kGroup>
inline void Interleave(const Bytes* rows, int8_t* to) {
  Bytes out[4];
  if (kGroup == 2) {
    out[0] = ZipLow(rows[0], rows[1]);
  } else {
    const Bytes even = ZipLow(rows[0], rows[2]), odd = ZipLow(rows[1], rows[3]);
    out[0] = ZipLow(even, odd);
    out[1] = ZipHigh(even, odd);
    if (kBlock == 16) {
      const Bytes even_high = ZipHigh(rows[0], rows[2]), odd_high = ZipHigh(rows[1], rows[3]);
      out[2] = ZipLow(even_high, odd_high);
      out[3] = ZipHigh(even_high, odd_high);
    }
  }
  std::memcpy(to, out, kBlock * kGroup);
}

// Columns [first, first + kBlock) of b as i8 codes, [depth / kGroup][kBlock][kGroup], zeros beyond its edges; and the
// sums of their u8 codes, in which those zeros are 128.
template <int kBlock, int kGroup>
void PackPanel(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums) {
  constexpr int64_t kMostInWord = 256;  // So many u8 codes fit 16 bits.
  const int64_t columns = std::min<int64_t>(kBlock, b.columns - first);
  const Bytes flip = Bytes{} + b.flip, middle = Bytes{} + uint8_t{128};
  std::fill_n(sums, kBlock, 0);
  for (int64_t begin = 0; begin < depth; begin += kMostInWord) {
    Words parts[2] = {};
    for (int64_t k = begin; k < std::min(depth, begin + kMostInWord); k += kGroup, to += kBlock * kGroup) {
      const uint8_t* from = b.codes + k * b.columns + first;
      int64_t stride = b.columns;
      uint8_t edge[kGroup * kBlock];
      if (columns < kBlock || k + kGroup > b.rows) {
        std::memset(edge, 0x80 ^ b.flip, sizeof(edge));
        for (int64_t g = 0; g < std::min<int64_t>(kGroup, b.rows - k); ++g) {
          std::memcpy(edge + g * kBlock, from + g * stride, columns);
        }
        from = edge;
        stride = kBlock;
      }
      Bytes rows[kGroup] = {};
#pragma GCC unroll 4
      for (int64_t g = 0; g < kGroup; ++g) {
        std::memcpy(&rows[g], from + g * stride, kBlock);
        rows[g] ^= flip;
        parts[0] += reinterpret_cast<Words>(ZipLow(rows[g], Bytes{}));
        parts[1] += reinterpret_cast<Words>(ZipHigh(rows[g], Bytes{}));
        rows[g] ^= middle;
      }
      Interleave<kBlock, kGroup>(rows, to);
    }
    for (int n = 0; n < kBlock; ++n) sums[n] += parts[n / 8][n % 8];
  }
}

// The scalar variant's, a column at a time.
template <>
void PackPanel<1, 1>(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums) {
  *sums = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const uint8_t code = b.codes[k * b.columns + first] ^ b.flip;
    *sums += code;
    to[k] = static_cast<int8_t>(code ^ 0x80);
  }
}

// The sum of the codes with these bits flipped. Parts of constant size become vectors.
int32_t SumOf(const uint8_t* codes, uint8_t flip, int64_t n) {
  constexpr int64_t kParts = 16, kMost = 256 * kParts;  // So many u8 codes fit 16 bits.
  int32_t sum = 0;
  int64_t i = 0;
  while (i + kParts <= n) {
    uint16_t parts[kParts] = {};
    for (const int64_t end = std::min(n, i + kMost); i + kParts <= end; i += kParts) {
      for (int64_t part = 0; part < kParts; ++part) {
        parts[part] = static_cast<uint16_t>(parts[part] + (codes[i + part] ^ flip));
      }
    }
    for (int64_t part = 0; part < kParts; ++part) sum += parts[part];
  }
  for (; i < n; ++i) sum += codes[i] ^ flip;
  return sum;
}

// A row of b's transpose as a column of a panel: groups of features `block` groups apart, zeros behind them.
template <typename Group>
void PackColumn(const uint8_t* from, uint8_t flip, int64_t features, int64_t depth, int64_t block, int8_t* to) {
  constexpr int64_t kGroup = sizeof(Group);
  const Group move = static_cast<Group>(0x0101u * (flip ^ 0x80u));
  int64_t k = 0;
  for (; k + kGroup <= features; k += kGroup, to += block * kGroup) {
    Group group;
    std::memcpy(&group, from + k, kGroup);
    group ^= move;
    std::memcpy(to, &group, kGroup);
  }
  for (; k < depth; k += kGroup, to += block * kGroup) {
    for (int64_t g = 0; g < kGroup; ++g) {
      to[g] = k + g < features ? static_cast<int8_t>(from[k + g] ^ flip ^ 0x80) : int8_t{0};
    }
  }
}

// PackPanel of b's transpose, a column after the other.
template <int kBlock, typename Group>
void PackColumns(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums) {
  for (int64_t n = 0; n < kBlock; ++n) {
    const uint8_t* row = b.codes + (first + n) * b.rows;
    const int64_t features = first + n < b.columns ? b.rows : 0;
    PackColumn<Group>(row, b.flip, features, depth, kBlock, to + n * sizeof(Group));
    sums[n] = static_cast<uint32_t>(SumOf(row, b.flip, features) + 128 * (depth - features));
  }
}

// Four vectors of four dwords, transposed.
inline void Transpose(Dwords* v) {
  const Dwords a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const Dwords c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// PackPanel of b's transpose in groups of four: four columns by 16 features at a time.
template <int kBlock>
void PackTransposedPanel(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums) {
  constexpr int64_t kBytes = sizeof(Bytes), kMostInWord = 512;  // So many u8 codes, two by two, fit 16 bits.
  const Bytes flip = Bytes{} + b.flip, middle = Bytes{} + uint8_t{128};
  std::fill_n(sums, kBlock, 0);
  for (int64_t n = 0; n < kBlock; n += 4) {
    for (int64_t begin = 0; begin < depth; begin += kMostInWord) {
      Words parts = {};
      for (int64_t k = begin; k < std::min(depth, begin + kMostInWord); k += kBytes) {
        Bytes rows[4];
#pragma GCC unroll 4
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t column = first + n + i, features = column < b.columns ? b.rows - k : 0;
          rows[i] = middle ^ flip;
          const uint8_t* from = b.codes + column * b.rows + k;
          if (features >= kBytes) {
            std::memcpy(&rows[i], from, kBytes);
          } else if (features > 0) {
            std::memcpy(&rows[i], from, features);
          }
        }
        Dwords groups[4];
        std::memcpy(groups, rows, sizeof(groups));
        Transpose(groups);
        for (int64_t i = 0; i < std::min<int64_t>(4, (depth - k) / 4); ++i) {
          const Bytes codes = reinterpret_cast<Bytes>(groups[i]) ^ flip;
          const Words pairs = reinterpret_cast<Words>(codes);
          parts += (pairs & 0xFF) + (pairs >> 8);
          const Bytes moved = codes ^ middle;
          std::memcpy(to + (k / 4 + i) * kBlock * 4 + n * 4, &moved, kBytes);
        }
      }
      for (int i = 0; i < 4; ++i) sums[n + i] += static_cast<uint32_t>(parts[2 * i]) + parts[2 * i + 1];
    }
  }
}

constexpr kernels::Isa kAny = kernels::Isa::kScalar;
constexpr PanelFunctions kPanels[] = {
    {kAny, 1, 1, PackPanel<1, 1>, PackColumns<1, uint8_t>},
    {kAny, 8, 2, PackPanel<8, 2>, PackColumns<8, uint16_t>},
    {kAny, 8, 4, PackPanel<8, 4>, PackTransposedPanel<8>},
    {kAny, 16, 4, PackPanel<16, 4>, PackTransposedPanel<16>},
    {kernels::Isa::kAvx512Vnni, 16, 4, avx512_vnni::PackPanel, avx512_vnni::PackTransposedPanel},
};

// No packing is of an instruction set but by what its products want: any that this machine has may pack for them.
const PanelFunctions& PanelsFor(const linear::Packing& packing) {
  const PanelFunctions* row = kernels::LastVariantOrNull(
      absl::MakeConstSpan(kPanels), kernels::BestIsa(),
      [&](const PanelFunctions& panels) { return panels.block == packing.block && panels.group == packing.group; });
  FUSELAGE_CHECK(row != nullptr);
  return *row;
}

}  // namespace

absl::Span<const PanelFunctions> Panels() { return kPanels; }

Operands::Operands(const linear::Packing& packing, const TensorType& a, const TensorType& b, int64_t depth)
    : packing_(packing),
      a_type_(a.dtype),
      depth_(depth),
      packed_depth_(RoundUp(depth, packing.step)),
      panels_(PanelsFor(packing)) {
  const kernels::UnsignedForm a_form = kernels::UnsignedFormOf(a), b_form = kernels::UnsignedFormOf(b);
  moves_a_ = a_type_ == DType::kI8 && packing.x_bytes == 1 && !packing.in_place;
  a_zero_point_ = moves_a_ ? a_form.zero_point : a.quant->zero_point();
  b_flip_ = b_form.flip;
  b_zero_point_ = b_form.zero_point - 128;
}

const uint8_t* Operands::PackLeft(const uint8_t* a, int64_t rows, uint8_t* packed, int32_t* addends) const {
  const bool is_packed = linear::IsPacked(packing_, a_type_, depth_);
  if (!is_packed) linear::PackRows(packing_, a_type_, depth_, a, packed, 0, rows);
  const uint8_t* const left = is_packed ? a : packed;
  if (b_zero_point_ == 0) {
    std::fill_n(addends, rows, 0);
    return left;
  }
  const uint8_t flip = a_type_ == DType::kI8 ? 0x80 : 0;
  const uint32_t unmoved = a_type_ == DType::kI8 && !moves_a_ ? 128u * static_cast<uint32_t>(depth_) : 0;
  for (int64_t row = 0; row < rows; ++row, a += depth_) {
    addends[row] = RowAddend(static_cast<int32_t>(static_cast<uint32_t>(SumOf(a, flip, depth_)) - unmoved));
  }
  return left;
}

void Operands::PackRight(const uint8_t* b, int64_t columns, int64_t first, int8_t* packed, int32_t* addends) const {
  panels_.pack({b, depth_, columns, b_flip_}, first, packed_depth_, packed, reinterpret_cast<uint32_t*>(addends));
  FinishAddends(addends);
}

void Operands::PackTransposed(const uint8_t* b, int64_t columns, int64_t first, int8_t* packed,
                              int32_t* addends) const {
  panels_.pack_transposed({b, depth_, columns, b_flip_}, first, packed_depth_, packed,
                          reinterpret_cast<uint32_t*>(addends));
  FinishAddends(addends);
}

// Sums of u8 codes, 128 for each that fills the last step, become -z_a * sum (b - z_b).
void Operands::FinishAddends(int32_t* addends) const {
  const int64_t less = (b_zero_point_ + 128) * depth_ + 128 * (packed_depth_ - depth_);
  for (int64_t n = 0; n < packing_.block; ++n) {
    addends[n] = static_cast<int32_t>(static_cast<uint32_t>(a_zero_point_) *
                                      (static_cast<uint32_t>(less) - static_cast<uint32_t>(addends[n])));
  }
}

}  // namespace fuselage::int8::matmul
