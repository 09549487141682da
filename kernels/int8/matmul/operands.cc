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

struct PanelRow {
  int block, group;
  PackPanelFunction* pack;
};
constexpr PanelRow kPanels[] = {
    {1, 1, PackPanel<1, 1>}, {8, 2, PackPanel<8, 2>}, {8, 4, PackPanel<8, 4>}, {16, 4, PackPanel<16, 4>}};

PackPanelFunction* PackPanelFor(const linear::Packing& packing) {
  const auto* row = std::find_if(std::begin(kPanels), std::end(kPanels), [&](const PanelRow& panel) {
    return panel.block == packing.block && panel.group == packing.group;
  });
  FUSELAGE_CHECK(row != std::end(kPanels));
  return row->pack;
}

// Of the codes with these bits flipped. Parts of constant size become vectors.
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
  const Group move = static_cast<Group>(0x01010101u * (flip ^ 0x80u));
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

}  // namespace

Operands::Operands(const linear::Packing& packing, const TensorType& a, const TensorType& b, int64_t depth)
    : packing_(packing),
      a_type_(a.dtype),
      depth_(depth),
      packed_depth_(RoundUp(depth, packing.step)),
      pack_panel_(PackPanelFor(packing)) {
  const kernels::UnsignedForm a_form = kernels::UnsignedFormOf(a), b_form = kernels::UnsignedFormOf(b);
  moves_a_ = a_type_ == DType::kI8 && packing.x_bytes == 1;
  a_zero_point_ = moves_a_ ? a_form.zero_point : a.quant->zero_point();
  b_flip_ = b_form.flip;
  b_zero_point_ = b_form.zero_point - 128;
}

void Operands::PackLeft(const uint8_t* a, int64_t rows, uint8_t* packed, int32_t* addends) const {
  linear::PackRows(packing_, a_type_, depth_, a, packed, 0, rows);
  if (b_zero_point_ == 0) {
    std::fill_n(addends, rows, 0);
    return;
  }
  const uint8_t flip = a_type_ == DType::kI8 ? 0x80 : 0;
  const uint32_t unmoved = a_type_ == DType::kI8 && !moves_a_ ? 128u * static_cast<uint32_t>(depth_) : 0;
  for (int64_t row = 0; row < rows; ++row, a += depth_) {
    addends[row] = RowAddend(static_cast<int32_t>(static_cast<uint32_t>(SumOf(a, flip, depth_)) - unmoved));
  }
}

void Operands::PackRight(const uint8_t* b, int64_t columns, int64_t first, int8_t* packed, int32_t* addends) const {
  pack_panel_({b, depth_, columns, b_flip_}, first, packed_depth_, packed, reinterpret_cast<uint32_t*>(addends));
  FinishAddends(addends);
}

void Operands::PackTransposed(const uint8_t* b, int64_t columns, int64_t first, int8_t* packed,
                              int32_t* addends) const {
  const int64_t block = packing_.block, own = std::min(block, columns - first);
  const auto pack = packing_.group == 4   ? PackColumn<uint32_t>
                    : packing_.group == 2 ? PackColumn<uint16_t>
                                          : PackColumn<uint8_t>;
  for (int64_t n = 0; n < block; ++n) {
    const uint8_t* row = b + (first + n) * depth_;
    const int64_t features = n < own ? depth_ : 0;
    pack(row, b_flip_, features, packed_depth_, block, packed + n * packing_.group);
    addends[n] = static_cast<int32_t>(SumOf(row, b_flip_, features) + 128 * (packed_depth_ - features));
  }
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
