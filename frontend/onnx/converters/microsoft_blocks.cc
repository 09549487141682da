// com.microsoft's weights in blocks: rows of codes of a few bits, with a scale for each block. They become floats,
// whose four bits `quantize` finds again (passes/quantize/weight_grid.h).
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::microsoft_blocks {
namespace {

constexpr int64_t kMost = 1 << 30;  // Products of two, times 4 bytes, stay in 64 bits.

// Codes of 2, 4 or 8 bits, the low bits of a byte first.
int Code(const uint8_t* packed, int bits, int64_t i) {
  return packed[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}
int64_t Bytes(int64_t codes, int bits) { return (codes * bits + 7) / 8; }

absl::StatusOr<int> BitsOf(const Call& call) {
  const int64_t bits = call.Int("bits", 4);
  if (bits == 2 || bits == 4 || bits == 8) return static_cast<int>(bits);
  return absl::UnimplementedError(absl::StrCat("attribute 'bits': found ", bits, ", wanted 2, 4 or 8"));
}

// A linear layer's weight [N, K].
struct Blocks {
  int64_t rows, columns, size;

  int64_t count() const { return (columns + size - 1) / size; }  // In a row.
};

absl::StatusOr<Blocks> ReadBlocks(const Call& call) {
  const Blocks blocks{call.Int("N", 0), call.Int("K", 0), call.Int("block_size", 0)};
  for (const int64_t value : {blocks.rows, blocks.columns, blocks.size}) {
    if (value < 1 || value > kMost) {
      return absl::InvalidArgumentError(absl::StrCat("found N ", blocks.rows, ", K ", blocks.columns, ", block_size ",
                                                     blocks.size, ", wanted values in [1, ", kMost, "]"));
    }
  }
  return blocks;
}

// Operand i, of `wanted` elements.
absl::StatusOr<const Tensor*> ConstantOf(const Call& call, int i, int64_t wanted) {
  ASSIGN_OR_RETURN(const Tensor* tensor, call.Constant(i));
  if (tensor->num_elements() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, ": found ", ToString(tensor->type()), ", wanted ", wanted, " elements"));
  }
  return tensor;
}

absl::StatusOr<const Tensor*> BytesOf(const Call& call, int i, int64_t wanted) {
  ASSIGN_OR_RETURN(const Tensor* tensor, ConstantOf(call, i, wanted));
  if (tensor->dtype() == DType::kU8) return tensor;
  return absl::InvalidArgumentError(absl::StrCat("input ", i, ": found ", ToString(tensor->type()), ", wanted u8"));
}

absl::StatusOr<Tensor> Floats(Call& call, Shape shape) {
  const TensorType type{DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor};
  RETURN_IF_ERROR(call.builder().budget().Charge(type.byte_size(), "its weight"));
  return Tensor(type);
}

// The node's result: operand 0 times `weight`, and operand `bias`. A code times a scale of f16 is no f16, so where the
// input is one, the product is computed in f32.
absl::Status ResultLinear(Call& call, Tensor weight, int bias) {
  const DType dtype = call.type(0).dtype;
  std::vector<Value> operands = {call.operand(0), Builder::Constant(call.operand(1).name, std::move(weight)),
                                 call.operand(bias)};
  if (dtype == DType::kF32) return call.Result("linear", operands);
  ASSIGN_OR_RETURN(operands[0], call.EmitHelper("input_f32", "to", {operands[0]}, {{"dtype", DType::kF32}}));
  if (operands[2].present()) {
    ASSIGN_OR_RETURN(operands[2], call.EmitHelper("bias_f32", "to", {operands[2]}, {{"dtype", DType::kF32}}));
  }
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper("product", "linear", operands));
  return call.Result("to", {y}, {{"dtype", dtype}});
}

absl::Status ConvertMatMulNBits(Call& call) {
  constexpr int kZeroPoints = 3, kGroupOfColumn = 4, kBias = 5;
  ASSIGN_OR_RETURN(const int bits, BitsOf(call));
  ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(call));
  const int64_t count = blocks.count(), block_bytes = Bytes(blocks.size, bits), zero_point_bytes = Bytes(count, bits);
  ASSIGN_OR_RETURN(const Tensor* packed, BytesOf(call, 1, blocks.rows * count * block_bytes));
  ASSIGN_OR_RETURN(const Tensor* scales, ConstantOf(call, 2, blocks.rows * count));
  const Tensor* zero_points = nullptr;
  const bool packed_zero_points = call.has(kZeroPoints) && call.type(kZeroPoints).dtype == DType::kU8;
  if (packed_zero_points) {
    ASSIGN_OR_RETURN(zero_points, BytesOf(call, kZeroPoints, blocks.rows * zero_point_bytes));
  } else if (call.has(kZeroPoints)) {
    ASSIGN_OR_RETURN(zero_points, ConstantOf(call, kZeroPoints, blocks.rows * count));
  }
  // Which block's scale a column has, where they are not in their order.
  std::vector<int64_t> group(blocks.columns);
  for (int64_t k = 0; k < blocks.columns; ++k) group[k] = k / blocks.size;
  if (call.has(kGroupOfColumn)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> given, call.ConstantInts(kGroupOfColumn));
    if (static_cast<int64_t>(given.size()) < blocks.columns) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 4 (g_idx): found ", given.size(), " elements, wanted ", blocks.columns));
    }
    for (int64_t k = 0; k < blocks.columns; ++k) {
      if (given[k] >= 0 && given[k] < count) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("input 4 (g_idx): found ", given[k], " of column ", k, ", wanted a block in [0, ", count, ")"));
    }
    std::copy_n(given.begin(), blocks.columns, group.begin());
  }
  ASSIGN_OR_RETURN(Tensor weight, Floats(call, {blocks.rows, blocks.columns}));
  for (int64_t i = 0; i < weight.num_elements(); ++i) {
    const int64_t row = i / blocks.columns, column = i % blocks.columns;
    const int64_t index = row * count + group[column], block = row * count + column / blocks.size;
    double zero_point = 1 << (bits - 1);
    if (packed_zero_points) {
      zero_point = Code(zero_points->data<uint8_t>() + row * zero_point_bytes, bits, group[column]);
    } else if (zero_points != nullptr) {
      zero_point = zero_points->At(index);
    }
    const int code = Code(packed->data<uint8_t>() + block * block_bytes, bits, column % blocks.size);
    weight.data<float>()[i] = static_cast<float>((code - zero_point) * scales->At(index));
  }
  return ResultLinear(call, std::move(weight), kBias);
}

// Numbers of bitsandbytes' formats, by code: FP4 (a sign, two bits of exponent, one of mantissa; the largest is 1) and
// NF4 (quantiles of a normal distribution: Dettmers et al., QLoRA, 2023, appendix E).
constexpr float kBnb4[2][16] = {
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f, -5.208333333e-03f,
     -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
     -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
     0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f}};

// Blocks go on from row to row, and the high bits of a byte come first.
absl::Status ConvertMatMulBnb4(Call& call) {
  ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(call));
  const int64_t format = call.Int("quant_type", -1), elements = blocks.rows * blocks.columns;
  if (format != 0 && format != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'quant_type': found ", format, ", wanted 0 (FP4) or 1 (NF4)"));
  }
  if (call.Int("transB", 1) != 1) return absl::UnimplementedError("attribute 'transB': found 0, wanted 1");
  ASSIGN_OR_RETURN(const Tensor* packed, BytesOf(call, 1, Bytes(elements, 4)));
  ASSIGN_OR_RETURN(const Tensor* largest, ConstantOf(call, 2, (elements + blocks.size - 1) / blocks.size));
  ASSIGN_OR_RETURN(Tensor weight, Floats(call, {blocks.rows, blocks.columns}));
  for (int64_t i = 0; i < elements; ++i) {
    const int code = Code(packed->data<uint8_t>(), 4, i ^ 1);
    weight.data<float>()[i] = kBnb4[format][code] * static_cast<float>(largest->At(i / blocks.size));
  }
  return ResultLinear(call, std::move(weight), 3);
}

// Codes of u8 lie two or four in a byte along the last dimension; of int4 and uint4 each is an element.
absl::Status ConvertGatherBlockQuantized(Call& call) {
  constexpr int kScales = 2, kZeroPoints = 3;
  ASSIGN_OR_RETURN(const int bits, BitsOf(call));
  ASSIGN_OR_RETURN(const Tensor* codes, call.Constant(0));
  ASSIGN_OR_RETURN(const Tensor* scales, call.Constant(kScales));
  const bool packed = !call.operand(0).widened;
  const int64_t size = call.Int("block_size", 128), per_byte = packed ? 8 / bits : 1;
  ASSIGN_OR_RETURN(const int gather_axis, NormalizeAxis(call.Int("gather_axis", 0), call.rank(0)));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("quantize_axis", 1), call.rank(0)));
  const int last = call.rank(0) - 1;
  if (size < 1 || size > kMost || (packed && (codes->dtype() != DType::kU8 || axis != last))) {
    return absl::UnimplementedError(absl::StrCat("found ", ToString(codes->type()), " in blocks of ", size,
                                                 " along dimension ", axis,
                                                 ", wanted int4, uint4, or u8 along the last"));
  }
  Shape shape = codes->shape();
  shape[last] *= per_byte;
  Shape blocks = shape;
  blocks[axis] = (shape[axis] + size - 1) / size;
  Shape packed_blocks = blocks;
  packed_blocks[last] = (blocks[last] + per_byte - 1) / per_byte;
  const Tensor* zero_points = nullptr;
  if (call.has(kZeroPoints)) {
    ASSIGN_OR_RETURN(zero_points, call.Constant(kZeroPoints));
  }
  if (scales->shape() != blocks ||
      (zero_points != nullptr && (zero_points->shape() != packed_blocks || zero_points->dtype() != codes->dtype()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "found scales ", ToString(scales->type()),
        zero_points == nullptr ? "" : absl::StrCat(", zero points ", ToString(zero_points->type())), ", wanted ",
        ToString(TensorType{scales->dtype(), blocks, std::nullopt, Layout::kRowMajor}),
        zero_points == nullptr ? ""
                               : absl::StrCat(", ", ToString(TensorType{codes->dtype(), packed_blocks, std::nullopt,
                                                                        Layout::kRowMajor}))));
  }
  // Code i of a tensor whose rows have `columns` codes.
  const auto code_of = [&](const Tensor& tensor, int64_t i, int64_t columns) -> double {
    if (!packed) return tensor.At(i);
    const int64_t row_bytes = tensor.shape().back();
    return Code(tensor.data<uint8_t>() + i / columns * row_bytes, bits, i % columns);
  };
  int64_t inner = 1;
  for (int i = axis + 1; i <= last; ++i) inner *= shape[i];
  ASSIGN_OR_RETURN(Tensor table, Floats(call, shape));
  for (int64_t i = 0; i < table.num_elements(); ++i) {
    const int64_t outer = i / inner / shape[axis], block = i / inner % shape[axis] / size;
    const int64_t index = (outer * blocks[axis] + block) * inner + i % inner;
    const double zero_point = zero_points != nullptr ? code_of(*zero_points, index, blocks[last])
                              : packed               ? 1 << (bits - 1)
                                                     : 0;
    table.data<float>()[i] = static_cast<float>((code_of(*codes, i, shape[last]) - zero_point) * scales->At(index));
  }
  const Value values = Builder::Constant(call.operand(0).name, std::move(table));
  const AttributeMap attributes = {{"dim", gather_axis}};
  if (scales->dtype() == DType::kF32) return call.Result("index_select", {values, call.operand(1)}, attributes);
  ASSIGN_OR_RETURN(const Value rows, call.EmitHelper("rows", "index_select", {values, call.operand(1)}, attributes));
  return call.Result("to", {rows}, {{"dtype", scales->dtype()}});
}

}  // namespace

void Register(Converters& converters) {
  converters.Add(kMicrosoft, {
                                 {"GatherBlockQuantized",
                                  0,
                                  {3, 4},
                                  {1, 1},
                                  "bits=INT block_size=INT gather_axis=INT quantize_axis=INT",
                                  ConvertGatherBlockQuantized},
                                 {"MatMulBnb4",
                                  0,
                                  {3, 4},
                                  {1, 1},
                                  "K=INT N=INT block_size=INT quant_type=INT training_mode=INT transB=INT",
                                  ConvertMatMulBnb4},
                                 {"MatMulNBits",
                                  0,
                                  {3, 6},
                                  {1, 1},
                                  "K=INT N=INT accuracy_level=INT bits=INT block_size=INT",
                                  ConvertMatMulNBits},
                             });
}

}  // namespace fuselage::onnx::converters::microsoft_blocks
