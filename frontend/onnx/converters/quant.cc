#include "frontend/onnx/quant.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::quant {
namespace {

// A scale and zero point for each block of `size` values along an axis: [..., blocks * size, ...] as [..., blocks,
// size,
// ...], less the zero points, times the scales.
absl::Status DequantizeBlocks(Call& call, int64_t size) {
  const Shape &shape = call.shape(0), &scales = call.shape(1);
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 1), call.rank(0)));
  Shape wanted = shape;
  if (size < 1 || shape[axis] % size != 0) {
    return absl::UnimplementedError(absl::StrCat("attribute 'block_size': found ", size, ", wanted a divisor of ",
                                                 shape[axis], ", axis ", axis, " of ", ToString(call.type(0))));
  }
  wanted[axis] /= size;
  if (scales != wanted || (call.has(2) && call.shape(2) != wanted)) {
    return absl::InvalidArgumentError(absl::StrCat("found scales ", ToString(call.type(1)),
                                                   call.has(2) ? " and zero points " + ToString(call.type(2)) : "",
                                                   ", wanted shape ", ToString(wanted)));
  }
  const DType dtype = call.type(1).dtype;
  Shape blocks = wanted;
  blocks.insert(blocks.begin() + axis + 1, size);
  const auto real = [&](int i, const char* suffix) {
    return call.EmitHelper(absl::StrCat(suffix, "_real"), "to", {call.operand(i)}, {{"dtype", dtype}});
  };
  const auto along = [&](const char* suffix, const Value& value) {
    return call.EmitHelper(suffix, "unsqueeze", {value}, {{"dims", std::vector<int64_t>{axis + 1}}});
  };
  ASSIGN_OR_RETURN(const Value x, real(0, "x"));
  ASSIGN_OR_RETURN(Value y, call.EmitHelper("blocks", "reshape", {x}, {{"shape", blocks}, {"allow_zero", true}}));
  if (call.has(2)) {
    ASSIGN_OR_RETURN(const Value zero_point, real(2, "zero_point"));
    ASSIGN_OR_RETURN(const Value each, along("zero_points", zero_point));
    ASSIGN_OR_RETURN(y, call.EmitHelper("centred", "sub", {y, each}));
  }
  ASSIGN_OR_RETURN(const Value each, along("scales", call.operand(1)));
  ASSIGN_OR_RETURN(y, call.EmitHelper("scaled", "mul", {y, each}));
  return call.Result("reshape", {y}, {{"shape", shape}, {"allow_zero", true}});
}

absl::Status ConvertQuantizeLinear(Call& call) {
  if (const int64_t size = call.Int("block_size", 0); size != 0) {
    return absl::UnimplementedError(absl::StrCat("attribute 'block_size': found ", size, ", wanted 0"));
  }
  if (call.operand(2).widened) {
    return absl::UnimplementedError(absl::StrCat("input 2 ", Quote(call.operand(2).name),
                                                 ": found a zero point of a type that is read as ",
                                                 ToString(call.type(2)), ", wanted UINT8, INT8 or INT16"));
  }
  DType dtype = DType::kU8;
  if (call.has(2)) {
    dtype = call.type(2).dtype;
  } else if (call.Int("output_dtype", 0) != 0) {
    const int64_t stated = call.Int("output_dtype", 0);
    ASSIGN_OR_RETURN(dtype, ToDType(stated < 0 || stated > 255 ? -1 : static_cast<int>(stated)));
  }
  ASSIGN_OR_RETURN(Value codes, Quantize(call, call.operand(0), {1, 2}, dtype, call.Int("axis", 1)));
  call.Set(0, std::move(codes));
  return absl::OkStatus();
}

absl::Status ConvertDequantizeLinear(Call& call) {
  if (const int64_t size = call.Int("block_size", 0); size != 0) return DequantizeBlocks(call, size);
  ASSIGN_OR_RETURN(Value real, Dequantize(call, "", call.operand(0), {1, 2}, call.Int("axis", 1)));
  call.Set(0, std::move(real));
  return absl::OkStatus();
}

absl::Status ConvertDynamicQuantizeLinear(Call& call) {
  ASSIGN_OR_RETURN(std::vector<Value> values, call.builder().EmitTuple(call.name(), "dynamic_quantize_linear",
                                                                       call.operands(), {}, call.wanted()));
  for (int i = 0; i < call.num_outputs(); ++i) call.Set(i, std::move(values[i]));
  return absl::OkStatus();
}

// quantize(matmul(dequantize(a), dequantize(b))); scales of a by row, of b by column.
absl::Status ConvertQLinearMatMul(Call& call) {
  if (call.rank(0) < 1 || call.rank(3) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", ToString(call.type(0)), " and ", ToString(call.type(3)), ", wanted matrices"));
  }
  ASSIGN_OR_RETURN(const Value a, Dequantize(call, "a_dequantize", call.operand(0), {1, 2}, call.rank(0) - 2));
  ASSIGN_OR_RETURN(const Value b, Dequantize(call, "b_dequantize", call.operand(3), {4, 5}, call.rank(3) - 1));
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper("matmul", "matmul", {a, b}));
  ASSIGN_OR_RETURN(Value codes, Quantize(call, y, {6, 7}, call.type(7).dtype, y.type().rank() - 1));
  call.Set(0, std::move(codes));
  return absl::OkStatus();
}

absl::Status ConvertMatMulInteger(Call& call) {
  ASSIGN_OR_RETURN(const Value a, ZeroPointOf(call, "a_zero_point", 0, 2, call.rank(0) - 2));
  ASSIGN_OR_RETURN(const Value b, ZeroPointOf(call, "b_zero_point", 1, 3, call.rank(1) - 1));
  return call.Result("matmul_integer", {call.operand(0), call.operand(1), a, b});
}

constexpr char kQuantize[] = "axis=INT block_size=INT output_dtype=INT precision=INT saturate=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"DequantizeLinear", 10, {2, 3}, {1, 1}, "axis=INT block_size=INT output_dtype=INT", ConvertDequantizeLinear},
      {"DynamicQuantizeLinear", 11, {1, 1}, {3, 3}, "", ConvertDynamicQuantizeLinear},
      {"MatMulInteger", 10, {2, 4}, {1, 1}, "", ConvertMatMulInteger},
      {"QLinearMatMul", 10, {8, 8}, {1, 1}, "", ConvertQLinearMatMul},
      {"QuantizeLinear", 10, {2, 3}, {1, 1}, kQuantize, ConvertQuantizeLinear},
  });
  converters.Add(kMicrosoft,
                 {
                     {"DequantizeLinear", 0, {2, 3}, {1, 1}, "axis=INT block_size=INT", ConvertDequantizeLinear},
                     {"QuantizeLinear", 0, {2, 3}, {1, 1}, "axis=INT block_size=INT", ConvertQuantizeLinear},
                 });
}

}  // namespace fuselage::onnx::converters::quant
