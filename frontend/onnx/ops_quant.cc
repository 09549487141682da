#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/quant.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

absl::Status DeclineBlocks(const Call& call) {
  if (call.Int("block_size", 0) == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("attribute 'block_size': found ", call.Int("block_size", 0), ", wanted 0"));
}

}  // namespace

absl::Status ConvertQuantizeLinear(Call& call) {
  RETURN_IF_ERROR(DeclineBlocks(call));
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
  RETURN_IF_ERROR(DeclineBlocks(call));
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

}  // namespace fuselage::onnx
