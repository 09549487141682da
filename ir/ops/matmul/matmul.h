// matmul: matrix product with NumPy's rules (numpy.matmul, ONNX MatMul, torch.matmul).
//   input [..., M, K], other [..., K, N] -> [..., M, N]; leading axes broadcast; an operand of rank 1 is a row (input)
//   or a column (other), and that axis is absent from the result.
//   Floats accumulate in double; i32 and i64 are exact modulo 2^bits.
//
// matmul_integer: (a - a_zero_point) times (b - b_zero_point), as matmul, in i32, modulo 2^32 (ONNX MatMulInteger).
//   a and b are u8 or i8 without parameters; a zero point is optional, of the operand's type, and broadcasts to it.
//
// gemm: alpha * a' * b' + beta * c (ONNX Gemm).
//   a' is a [M,K], or its transpose if trans_a; b' [K,N] likewise; c is optional and broadcasts to [M,N]. Floats only.
//
// addmm: beta * input + alpha * mat1 * mat2 (torch.addmm).
//   mat1 [M,K], mat2 [K,N]; input broadcasts to [M,N], and is not looked at where beta is 0. Floats only.
#ifndef FUSELAGE_IR_OPS_MATMUL_MATMUL_H_
#define FUSELAGE_IR_OPS_MATMUL_MATMUL_H_

#include <vector>

#include "ir/op.h"

namespace fuselage::ops::matmul {

// The result's shape, from the shapes of operands 0 and 1, whose ranks are at least 1.
absl::StatusOr<Shape> CheckMatmul(const ir::InferCall& call);

// a times b, row-major, of shapes that CheckMatmul takes; each sum in double in the order of K.
std::vector<double> MultiplyReals(const Shape& a_shape, const std::vector<double>& a, const Shape& b_shape,
                                  const std::vector<double>& b);

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::matmul

#endif  // FUSELAGE_IR_OPS_MATMUL_MATMUL_H_
