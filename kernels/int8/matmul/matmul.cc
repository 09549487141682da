#include "kernels/int8/matmul/matmul.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/check.h"
#include "kernels/core/matmul_shape.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::matmul {
namespace {

using kernels::Epilogue;
using kernels::KernelDesc;
using kernels::MatmulShape;

// Codes less their zero points are at most 255.
constexpr int64_t kMostDepth = ((int64_t{1} << 31) - 1) / (255 * 255);

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// A matrix of b, whose codes become u8 codes where `flip` is their type's (UnsignedForm).
struct Right {
  const uint8_t* codes = nullptr;
  int64_t rows = 0, columns = 0;
  uint8_t flip = 0;
};

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

using PackPanelFunction = void(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums);

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
  constexpr int64_t kParts = 16, kBlock = 64;
  int32_t sum = 0;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    uint16_t parts[kParts] = {};
    for (int64_t j = i; j < i + kBlock; j += kParts) {
      for (int64_t part = 0; part < kParts; ++part) {
        parts[part] = static_cast<uint16_t>(parts[part] + (codes[j + part] ^ flip));
      }
    }
    for (int64_t part = 0; part < kParts; ++part) sum += parts[part];
  }
  for (; i < n; ++i) sum += codes[i] ^ flip;
  return sum;
}

// Bytes of scratch memory, one after the other.
class Areas {
 public:
  int64_t Add(int64_t bytes) {
    const int64_t begin = bytes_;
    bytes_ = RoundUp(bytes_ + bytes, 64);
    return begin;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

class Matmul : public kernels::BinaryKernel {
 public:
  Matmul(const KernelDesc& desc, MatmulShape shape, const Epilogue& epilogue, const linear::Variant& variant)
      : BinaryKernel(desc),
        shape_(std::move(shape)),
        variant_(variant),
        a_type_(desc.input(0).dtype),
        pack_panel_(PackPanelFor(variant.packing)) {
    const TensorType &a = desc.input(0), &b = desc.input(1), &y = desc.output();
    const linear::Packing& packing = variant.packing;
    const kernels::UnsignedForm a_form = kernels::UnsignedFormOf(a), b_form = kernels::UnsignedFormOf(b);
    moves_a_ = a_type_ == DType::kI8 && packing.x_bytes == 1;
    a_zero_point_ = moves_a_ ? a_form.zero_point : a.quant->zero_point();
    b_flip_ = b_form.flip;
    b_zero_point_ = b_form.zero_point - 128;
    params_.rows = shape_.rows;
    params_.channels = shape_.columns;
    params_.depth = RoundUp(shape_.depth, packing.step);
    columns_ = RoundUp(shape_.columns, packing.block);
    linear::SetOutput(y, Activation(), &params_);
    row_bytes_ = shape_.columns * ByteSize(y.dtype);
    multiplier_.assign(columns_, params_.float_output ? epilogue.float_scale[0] : epilogue.multiplier[0]);
    float_bias_.assign(columns_, 0);
    tile_offsets_ = linear::TileOffsets(packing, params_.depth);
    params_.multiplier = multiplier_.data();
    params_.float_bias = float_bias_.data();
    params_.tile_offsets = tile_offsets_.data();
    const int64_t rows = std::min(shape_.rows, variant.task_rows);
    Areas shared, own;
    b_ = shared.Add(shape_.b_matrices * columns_ * params_.depth);
    addends_ = shared.Add(shape_.b_matrices * columns_ * int64_t{sizeof(int32_t)});
    own_ = shared.bytes();
    own.Add(linear::PackedRowsBytes(packing, rows, shape_.depth));
    row_addends_ = own.Add(rows * int64_t{sizeof(int32_t)});
    own_bytes_ = own.bytes();
    set_scratch_bytes(own_ + own_bytes_ * std::max(1, desc.threads));
    set_weight_bytes(columns_ * int64_t{2 * sizeof(float)});
    set_variant(variant.name);
  }

 private:
  void ComputeBinary(const void* a, const void* b, void* y, const kernels::RunContext& context) const override {
    uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data);
    const int64_t block = variant_.packing.block, panels = columns_ / block;
    kernels::ForRanges(*context.parallel, shape_.b_matrices * panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        PackRight(static_cast<const uint8_t*>(b), panel / panels, panel % panels, scratch);
      }
    });
    const int64_t row_parts = (shape_.rows + variant_.task_rows - 1) / variant_.task_rows;
    const int64_t tasks = static_cast<int64_t>(shape_.a.size()) * row_parts;
    if (tasks == 0) return;
    // Where there are few rows, the threads share the columns.
    const int64_t column_parts = std::min<int64_t>(panels, (context.parallel->threads() + tasks - 1) / tasks);
    context.parallel->For(static_cast<int>(tasks * column_parts), [&](int task, int thread) {
      const int64_t part = task % column_parts, product = task / column_parts / row_parts;
      const int64_t row = task / column_parts % row_parts * variant_.task_rows;
      const int64_t rows = std::min(shape_.rows - row, variant_.task_rows), right = shape_.b[product];
      uint8_t* own = scratch + own_ + thread * own_bytes_;
      int32_t* row_addends = reinterpret_cast<int32_t*>(own + row_addends_);
      PackLeft(static_cast<const uint8_t*>(a) + (shape_.a[product] * shape_.rows + row) * shape_.depth, rows, own,
               row_addends);
      linear::Params params = params_;
      params.rows = rows;
      params.weight = reinterpret_cast<const int8_t*>(scratch + b_) + right * columns_ * params_.depth;
      params.addend = reinterpret_cast<const int32_t*>(scratch + addends_) + right * columns_;
      if (b_zero_point_ != 0) params.row_addend = row_addends;
      uint8_t* result = static_cast<uint8_t*>(y) + (product * shape_.rows + row) * row_bytes_;
      variant_.run(params, own, result,
                   {0, rows, panels * part / column_parts * block,
                    std::min(shape_.columns, panels * (part + 1) / column_parts * block)});
    });
  }

  void PackLeft(const uint8_t* a, int64_t rows, uint8_t* packed, int32_t* addends) const {
    linear::PackRows(variant_.packing, a_type_, shape_.depth, a, packed, 0, rows);
    if (b_zero_point_ == 0) return;
    const uint8_t flip = a_type_ == DType::kI8 ? 0x80 : 0;
    const uint32_t unmoved = a_type_ == DType::kI8 && !moves_a_ ? 128u * static_cast<uint32_t>(shape_.depth) : 0;
    for (int64_t row = 0; row < rows; ++row, a += shape_.depth) {
      const uint32_t sum = static_cast<uint32_t>(SumOf(a, flip, shape_.depth)) - unmoved;
      addends[row] = static_cast<int32_t>(0u - static_cast<uint32_t>(b_zero_point_) * sum);
    }
  }

  void PackRight(const uint8_t* b, int64_t matrix, int64_t panel, uint8_t* scratch) const {
    const int64_t first = panel * variant_.packing.block;
    const Right right = {b + matrix * shape_.depth * shape_.columns, shape_.depth, shape_.columns, b_flip_};
    uint32_t* addends = reinterpret_cast<uint32_t*>(scratch + addends_) + matrix * columns_ + first;
    pack_panel_(right, first, params_.depth,
                reinterpret_cast<int8_t*>(scratch + b_) + (matrix * columns_ + first) * params_.depth, addends);
    // sum (b - z_b), without what fills the last step.
    const int64_t less = (b_zero_point_ + 128) * shape_.depth + 128 * (params_.depth - shape_.depth);
    for (int64_t n = 0; n < variant_.packing.block; ++n) {
      addends[n] = static_cast<uint32_t>(a_zero_point_) * (static_cast<uint32_t>(less) - addends[n]);
    }
  }

  const MatmulShape shape_;
  const linear::Variant variant_;
  const DType a_type_;
  PackPanelFunction* const pack_panel_;
  bool moves_a_ = false;                         // a is packed as code + 128.
  uint8_t b_flip_ = 0;                           // To u8 codes.
  int32_t a_zero_point_ = 0, b_zero_point_ = 0;  // Of what is packed.
  linear::Params params_;
  int64_t columns_ = 0;    // With those that fill the last block.
  int64_t row_bytes_ = 0;  // Of the result.
  // Scratch memory: b packed, and addends for its columns; then for each thread rows of a, and addends for them.
  int64_t b_ = 0, addends_ = 0, own_ = 0, row_addends_ = 0, own_bytes_ = 0;
  std::vector<float> multiplier_, float_bias_;
  std::vector<int64_t> tile_offsets_;
};

// As a layer of one channel that adds nothing up: its scales are those of all sums.
absl::StatusOr<Epilogue> CheckedEpilogue(const KernelDesc& desc) {
  const Tensor weight({DType::kI8, {1, 0}, PerTensor(desc.input(1).quant->scale()), Layout::kRowMajor});
  kernels::EpilogueParams params;
  params.input = &desc.input(0);
  params.weight = &weight;
  params.output = &desc.output();
  return kernels::MakeEpilogue(params);
}

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const linear::Variant& variant) {
  ASSIGN_OR_RETURN(MatmulShape shape, kernels::MatmulShapeOf(desc));
  if (shape.depth > kMostDepth) {
    return absl::FailedPreconditionError(
        absl::StrCat("matmul: sums of ", shape.depth, " products may overflow 32 bits, wanted at most ", kMostDepth));
  }
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(1), "other"));
  ASSIGN_OR_RETURN(const Epilogue epilogue, CheckedEpilogue(desc));
  return std::make_unique<Matmul>(desc, std::move(shape), epilogue, variant);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const MatmulShape shape, kernels::MatmulShapeOf(desc));
  return matmul::CreateVariant(desc, linear::VariantFor(desc.isa, shape.rows));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.matmul", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::matmul
