#include "ir/ops/matmul/matmul.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/core/zero_points.h"

namespace fuselage::ops::matmul {
namespace {

// y [m,n] += a [m,k] * b [k,n], row-major: the innermost loop runs along rows of b and y.
template <typename T>
void MultiplyAccumulate(const T* a, const T* b, int64_t m, int64_t k, int64_t n, T* __restrict y) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const T factor = a[i * k + j];
      for (int64_t p = 0; p < n; ++p) y[i * n + p] += factor * b[j * n + p];
    }
  }
}

// Shapes of a matmul with vectors made matrices.
struct Product {
  Shape a_batch, b_batch, batch;
  int64_t m = 1, k = 1, n = 1;
  Shape result;
};

absl::StatusOr<Product> ProductOf(Shape a, Shape b) {
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  Product product;
  product.m = a[a.size() - 2];
  product.k = a.back();
  product.n = b.back();
  if (b[b.size() - 2] != product.k) {
    return absl::InvalidArgumentError(
        absl::StrCat("inner dimensions ", product.k, " and ", b[b.size() - 2], " differ"));
  }
  product.a_batch.assign(a.begin(), a.end() - 2);
  product.b_batch.assign(b.begin(), b.end() - 2);
  ASSIGN_OR_RETURN(product.batch, BroadcastShapes(product.a_batch, product.b_batch));
  product.result = product.batch;
  if (!row) product.result.push_back(product.m);
  if (!column) product.result.push_back(product.n);
  return product;
}

absl::StatusOr<ir::Type> InferMatmul(const ir::InferCall& call) {
  const DType dtype = call.tensor(0).dtype;
  for (int i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(CheckMinRank(call, i, 1));
    RETURN_IF_ERROR(CheckNoCodes(call, i));
    RETURN_IF_ERROR(CheckDType(call, i, dtype));
  }
  if (!IsFloat(dtype) && dtype != DType::kI32 && dtype != DType::kI64) {
    return OperandError(call, 0, "wanted f16, f32, f64, i32 or i64");
  }
  ASSIGN_OR_RETURN(Shape shape, CheckMatmul(call));
  return ResultType(dtype, std::move(shape));
}

ir::Cost CostOfMatmul(const ir::InferCall& call, const ir::Type& result) {
  return {ir::NumElements(result) * static_cast<double>(call.tensor(0).shape.back())};
}

template <typename T>
std::vector<T> Multiply(const Product& product, const T* a, const T* b, int64_t size) {
  std::vector<T> y(size, T{0});
  const int64_t a_size = product.m * product.k, b_size = product.k * product.n, y_size = product.m * product.n;
  const std::vector<int64_t> a_strides = BroadcastStrides(product.a_batch, product.batch);
  std::vector<int64_t> b_matrices;
  ForEachOffset(product.batch, BroadcastStrides(product.b_batch, product.batch), 0,
                [&](int64_t, int64_t offset) { b_matrices.push_back(offset); });
  ForEachOffset(product.batch, a_strides, 0, [&](int64_t i, int64_t offset) {
    MultiplyAccumulate(a + offset * a_size, b + b_matrices[i] * b_size, product.m, product.k, product.n,
                       y.data() + i * y_size);
  });
  return y;
}

Tensor MultiplyIntegers(const Product& product, const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                        const TensorType& type) {
  // Unsigned: wraps without undefined behaviour.
  const std::vector<uint64_t> y = Multiply(product, reinterpret_cast<const uint64_t*>(a.data()),
                                           reinterpret_cast<const uint64_t*>(b.data()), type.num_elements());
  return OfIntegers(type, std::vector<int64_t>(y.begin(), y.end()));
}

absl::StatusOr<std::vector<Tensor>> EvaluateMatmul(const ir::EvaluateCall& call) {
  const Tensor& a = call.tensor(0);
  const Tensor& b = call.tensor(1);
  if (IsFloat(a.dtype())) {
    return One(OfReals(call.result(), MultiplyReals(a.shape(), RealValues(a), b.shape(), RealValues(b))));
  }
  ASSIGN_OR_RETURN(const Product product, ProductOf(a.shape(), b.shape()));
  return One(MultiplyIntegers(product, Integers(a), Integers(b), call.result()));
}

// --- matmul_integer.

enum MatmulInteger { kA, kB, kAZeroPoint, kBZeroPoint };

absl::StatusOr<ir::Type> InferMatmulInteger(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckMinRank(call, kA, 1));
  RETURN_IF_ERROR(CheckMinRank(call, kB, 1));
  RETURN_IF_ERROR(CheckZeroPoint(call, kA, kAZeroPoint));
  RETURN_IF_ERROR(CheckZeroPoint(call, kB, kBZeroPoint));
  ASSIGN_OR_RETURN(Shape shape, CheckMatmul(call));
  return ResultType(DType::kI32, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateMatmulInteger(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const Product product, ProductOf(call.tensor(kA).shape(), call.tensor(kB).shape()));
  return One(MultiplyIntegers(product, LessZeroPoint(call, kA, kAZeroPoint), LessZeroPoint(call, kB, kBZeroPoint),
                              call.result()));
}

// --- gemm.

Shape Transposed(Shape shape, bool transpose) {
  if (transpose) std::swap(shape[0], shape[1]);
  return shape;
}

// alpha * a' * b' + beta * c, for gemm and addmm: which operands these are, and what becomes of them.
struct Gemm {
  int a, b, c;
  bool trans_a = false, trans_b = false;
  Activation activation;
};

Gemm GemmOf(const ir::OpCall& call) {
  return {
      0, 1, 2, call.GetBool("trans_a"), call.GetBool("trans_b"), ParseActivation(call.GetString("activation")).value()};
}
Gemm AddmmOf(const ir::OpCall&) { return {1, 2, 0, false, false, Activation()}; }

absl::StatusOr<ir::Type> InferGemm(const ir::InferCall& call, const Gemm& gemm) {
  RETURN_IF_ERROR(CheckFloat(call, gemm.a));
  const DType dtype = call.tensor(gemm.a).dtype;
  RETURN_IF_ERROR(CheckRank(call, gemm.a, 2));
  RETURN_IF_ERROR(CheckRank(call, gemm.b, 2));
  RETURN_IF_ERROR(CheckDType(call, gemm.b, dtype));
  const Shape a = Transposed(call.tensor(gemm.a).shape, gemm.trans_a);
  const Shape b = Transposed(call.tensor(gemm.b).shape, gemm.trans_b);
  if (a[1] != b[0]) {
    return OperandError(call, gemm.a,
                        absl::StrCat("times ", ToString(call.tensor(gemm.b)),
                                     gemm.trans_a || gemm.trans_b ? ", transposed as asked" : "", ": inner dimensions ",
                                     a[1], " and ", b[0], " differ"));
  }
  const Shape shape = {a[0], b[1]};
  if (call.has(gemm.c)) {
    RETURN_IF_ERROR(CheckDType(call, gemm.c, dtype));
    absl::StatusOr<Shape> broadcast = BroadcastShapes(call.tensor(gemm.c).shape, shape);
    if (!broadcast.ok() || *broadcast != shape) {
      return OperandError(call, gemm.c, absl::StrCat("wanted what broadcasts to ", ToString(shape)));
    }
  }
  return ResultType(dtype, shape);
}

ir::Cost CostOfGemm(const ir::InferCall& call, const ir::Type& result, const Gemm& gemm) {
  return {ir::NumElements(result) * static_cast<double>(call.tensor(gemm.a).shape[gemm.trans_a ? 0 : 1])};
}

std::vector<double> Matrix(const Tensor& tensor, bool transpose) {
  if (!transpose) return RealValues(tensor);
  const TensorType type{tensor.dtype(), Transposed(tensor.shape(), true), std::nullopt, Layout::kRowMajor};
  return RealValues(Gather(tensor, type, {1, tensor.dim(1)}));
}

absl::StatusOr<std::vector<Tensor>> EvaluateGemm(const ir::EvaluateCall& call, const Gemm& gemm) {
  const std::vector<double> a = Matrix(call.tensor(gemm.a), gemm.trans_a);
  const std::vector<double> b = Matrix(call.tensor(gemm.b), gemm.trans_b);
  const int64_t m = call.result().shape[0], n = call.result().shape[1];
  const int64_t k = call.tensor(gemm.a).dim(gemm.trans_a ? 0 : 1);
  std::vector<double> y(m * n, 0.0);
  MultiplyAccumulate(a.data(), b.data(), m, k, n, y.data());
  for (double& value : y) value *= call.GetFloat("alpha");
  const double beta = call.GetFloat("beta");
  if (call.has(gemm.c) && beta != 0) {
    const std::vector<double> c = RealValues(call.tensor(gemm.c));
    ForEachOffset(call.result().shape, BroadcastStrides(call.tensor(gemm.c).shape(), call.result().shape), 0,
                  [&](int64_t i, int64_t offset) { y[i] += beta * c[offset]; });
  }
  if (!gemm.activation.is_none()) std::transform(y.begin(), y.end(), y.begin(), gemm.activation);
  return One(OfReals(call.result(), y));
}

}  // namespace

absl::StatusOr<Shape> CheckMatmul(const ir::InferCall& call) {
  absl::StatusOr<Product> product = ProductOf(call.tensor(0).shape, call.tensor(1).shape);
  if (!product.ok())
    return OperandError(call, 0, absl::StrCat("times ", ToString(call.tensor(1)), ": ", product.status().message()));
  return product->result;
}

std::vector<double> MultiplyReals(const Shape& a_shape, const std::vector<double>& a, const Shape& b_shape,
                                  const std::vector<double>& b) {
  const Product product = ProductOf(a_shape, b_shape).value();
  const TensorType result{DType::kF64, product.result, std::nullopt, Layout::kRowMajor};
  return Multiply(product, a.data(), b.data(), result.num_elements());
}

void Register(ir::OpRegistry& registry) {
  ir::OpSchema matmul;
  matmul.name = "matmul";
  matmul.aliases = {"torch.matmul", "operator.matmul", "__matmul__", "torch.mm", "mm", "torch.bmm", "bmm"};
  matmul.operands = {{"input"}, {"other"}};
  matmul.infer = InferMatmul;
  matmul.evaluate = EvaluateMatmul;
  matmul.cost = CostOfMatmul;
  registry.Register(std::move(matmul));

  ir::OpSchema integer;
  integer.name = "matmul_integer";
  integer.operands = {{"a"}, {"b"}, {"a_zero_point", /*optional=*/true}, {"b_zero_point", /*optional=*/true}};
  integer.infer = InferMatmulInteger;
  integer.evaluate = EvaluateMatmulInteger;
  integer.cost = CostOfMatmul;
  registry.Register(std::move(integer));

  ir::OpSchema gemm;
  gemm.name = "gemm";
  gemm.operands = {{"a"}, {"b"}, {"c", /*optional=*/true}};
  gemm.attributes = {{"alpha", AttributeKind::kFloat, 1.0},
                     {"beta", AttributeKind::kFloat, 1.0},
                     {"trans_a", AttributeKind::kBool, false},
                     {"trans_b", AttributeKind::kBool, false},
                     {"activation", AttributeKind::kString, "none"}};
  gemm.fusable_activation = true;
  gemm.infer = [](const ir::InferCall& call) -> absl::StatusOr<ir::Type> {
    RETURN_IF_ERROR(ParseActivation(call.GetString("activation")).status());
    return InferGemm(call, GemmOf(call));
  };
  gemm.evaluate = [](const ir::EvaluateCall& call) { return EvaluateGemm(call, GemmOf(call)); };
  gemm.cost = [](const ir::InferCall& call, const ir::Type& result) { return CostOfGemm(call, result, GemmOf(call)); };
  registry.Register(std::move(gemm));

  ir::OpSchema addmm;
  addmm.name = "addmm";
  addmm.aliases = {"torch.addmm"};
  addmm.operands = {{"input"}, {"mat1"}, {"mat2"}};
  addmm.attributes = {{"beta", AttributeKind::kFloat, 1.0}, {"alpha", AttributeKind::kFloat, 1.0}};
  addmm.infer = [](const ir::InferCall& call) { return InferGemm(call, AddmmOf(call)); };
  addmm.evaluate = [](const ir::EvaluateCall& call) { return EvaluateGemm(call, AddmmOf(call)); };
  addmm.cost = [](const ir::InferCall& call, const ir::Type& result) {
    return CostOfGemm(call, result, AddmmOf(call));
  };
  registry.Register(std::move(addmm));
}

}  // namespace fuselage::ops::matmul
