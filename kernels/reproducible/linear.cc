// linear, matmul and gemm.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/elementwise_math.h"
#include "kernels/core/matmul_shape.h"
#include "kernels/core/variant.h"
#include "kernels/reproducible/families.h"
#include "kernels/reproducible/operands.h"
#include "kernels/reproducible/product.h"

namespace fuselage::reproducible {
namespace {

using kernels::Kernel;
using kernels::KernelDesc;

// A matrix in memory: element (i, j) at offset + i * row + j * column.
struct Matrix {
  int64_t row = 0, column = 0;

  // Elements [begin, end) of `rows` rows, to rows kRowStride apart.
  void Copy(const float* data, int64_t rows, int64_t begin, int64_t end, float* to) const {
    for (int64_t i = 0; i < rows; ++i, data += row, to += kRowStride) {
      if (column == 1) {
        std::memcpy(to, data + begin, (end - begin) * sizeof(float));
      } else {
        for (int64_t j = begin; j < end; ++j) to[j - begin] = data[j * column];
      }
    }
  }
};

// [..., in] times [out, in] transposed: all leading dimensions are rows.
class Linear final : public ProductKernel {
 public:
  Linear(const KernelDesc& desc, const Primitives& primitives, int64_t in, int64_t out,
         const std::vector<float>& weight, std::vector<float> bias, const Activation& activation)
      : ProductKernel(desc, primitives, {1, desc.input(0).num_elements() / in, in, out}),
        in_(in),
        out_(out),
        bias_(std::move(bias)),
        activation_(activation) {
    PackRight(desc, "linear", {{weight.data(), in, 0, 1, in}});
  }

 private:
  void FillLeft(Inputs inputs, const LeftPiece& piece, float* to) const override {
    const float* x = static_cast<const float*>(inputs[0].data) + piece.row * in_;
    Matrix{in_, 1}.Copy(x, piece.rows, piece.begin, piece.end, to);
  }
  const float* Bias(int64_t) const override { return bias_.empty() ? nullptr : bias_.data(); }
  void Store(Inputs, void* output, int64_t, int64_t row, int64_t begin, int64_t end, const float* sums) const override {
    float* y = static_cast<float*>(output) + row * out_ + begin;
    std::copy(sums, sums + (end - begin), y);
    Activate(primitives(), activation_, y, end - begin);
  }

  const int64_t in_, out_;
  const std::vector<float> bias_;
  const Activation activation_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateLinear(const KernelDesc& desc, Table table) {
  RETURN_IF_ERROR(CheckFloats(desc));
  ASSIGN_OR_RETURN(const std::vector<float> weight, FloatsOf(desc, "weight"));
  const Shape& shape = desc.ParameterOrNull("weight")->shape();
  if (shape.size() != 2 || desc.input(0).rank() < 1 || desc.input(0).shape.back() != shape[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", ToString(desc.input(0)), " with weight ", ToString(shape)));
  }
  std::vector<float> bias;
  if (desc.ParameterOrNull("bias") != nullptr) {
    ASSIGN_OR_RETURN(bias, FloatsOf(desc, "bias"));
  }
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(desc.GetString("activation")));
  return std::make_unique<Linear>(desc, kernels::BestVariant(table, desc.isa), shape[1], shape[0], weight,
                                  std::move(bias), activation);
}

// Products of matrices that are both operands: activation(alpha * a * b + beta * c).
class Multiply final : public ProductKernel {
 public:
  struct Operands {
    ProductShape shape;
    Matrix a, b, c;
    std::vector<int64_t> a_offsets, b_offsets;  // One for each product.
    bool has_c = false;
    Activation activation;
    float alpha = 1, beta = 1;
  };

  Multiply(const KernelDesc& desc, const Primitives& primitives, Operands operands)
      : ProductKernel(desc, primitives, operands.shape), o_(std::move(operands)) {}

 private:
  void FillLeft(Inputs inputs, const LeftPiece& piece, float* to) const override {
    const int64_t offset = o_.a_offsets[piece.product] + piece.row * o_.a.row;
    o_.a.Copy(static_cast<const float*>(inputs[0].data) + offset, piece.rows, piece.begin, piece.end, to);
  }
  RightFactor Right(Inputs inputs, int64_t product) const override {
    return {static_cast<const float*>(inputs[1].data) + o_.b_offsets[product], o_.shape.depth, 0, o_.b.row,
            o_.b.column};
  }
  void Store(Inputs inputs, void* output, int64_t product, int64_t row, int64_t begin, int64_t end,
             const float* sums) const override {
    float* y = static_cast<float*>(output) + (product * o_.shape.rows + row) * o_.shape.columns;
    const float* c = o_.has_c ? static_cast<const float*>(inputs[2].data) + row * o_.c.row : nullptr;
    for (int64_t j = begin; j < end; ++j) {
      float value = o_.alpha * sums[j - begin];
      if (c != nullptr) value += o_.beta * c[j * o_.c.column];
      y[j] = value;
    }
    Activate(primitives(), o_.activation, y + begin, end - begin);
  }

  const Operands o_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const KernelDesc& desc, Table table) {
  RETURN_IF_ERROR(CheckFloats(desc));
  ASSIGN_OR_RETURN(const kernels::MatmulShape shape, kernels::MatmulShapeOf(desc));
  Multiply::Operands o;
  for (const int64_t matrix : shape.a) o.a_offsets.push_back(matrix * shape.rows * shape.depth);
  for (const int64_t matrix : shape.b) o.b_offsets.push_back(matrix * shape.depth * shape.columns);
  o.shape = {static_cast<int64_t>(shape.a.size()), shape.rows, shape.depth, shape.columns};
  o.a = {shape.depth, 1};
  o.b = {shape.columns, 1};
  return std::make_unique<Multiply>(desc, kernels::BestVariant(table, desc.isa), std::move(o));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGemm(const KernelDesc& desc, Table table) {
  RETURN_IF_ERROR(CheckFloats(desc));
  const auto matrix = [&](int operand, const char* transposed) {
    const int64_t columns = desc.input(operand).shape[1];
    return desc.GetBool(transposed) ? Matrix{1, columns} : Matrix{columns, 1};
  };
  Multiply::Operands o;
  o.a = matrix(0, "trans_a");
  o.b = matrix(1, "trans_b");
  o.shape = {1, desc.output().shape[0], desc.input(0).shape[desc.GetBool("trans_a") ? 0 : 1], desc.output().shape[1]};
  o.a_offsets = o.b_offsets = {0};
  o.alpha = static_cast<float>(desc.GetFloat("alpha"));
  o.beta = static_cast<float>(desc.GetFloat("beta"));
  o.has_c = desc.has_input(2) && o.beta != 0;
  if (o.has_c) {
    Shape c = desc.input(2).shape;
    c.insert(c.begin(), 2 - c.size(), 1);
    o.c = {c[0] == 1 ? 0 : c[1], c[1] == 1 ? 0 : 1};
  }
  ASSIGN_OR_RETURN(o.activation, ParseActivation(desc.GetString("activation")));
  return std::make_unique<Multiply>(desc, kernels::BestVariant(table, desc.isa), std::move(o));
}

}  // namespace

void RegisterLinear(Table table, kernels::KernelRegistry& registry) {
  const auto add = [&](const char* op, auto create) {
    registry.Register(
        {op, kernels::LayoutRule::kRowMajor, [=](const KernelDesc& desc) { return create(desc, table); }});
  };
  add("linear", CreateLinear);
  add("matmul", CreateMatmul);
  add("gemm", CreateGemm);
}

}  // namespace fuselage::reproducible
