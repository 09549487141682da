#include "kernels/int8/recurrent/products.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/recurrent.h"
#include "kernels/core/variant.h"
#include "kernels/recurrent/recurrent.h"

namespace fuselage::int8::recurrent {
namespace {

using fuselage::recurrent::Cell;
using fuselage::recurrent::Sizes;
using kernels::KernelDesc;

TensorType Floats(Shape shape) { return {DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}; }

// Rows of it as a matrix, borrowed.
Tensor Rows(const Tensor& weight, const Product& product) {
  const int64_t depth = weight.dim(2), first = product.direction * weight.dim(1) + product.begin;
  QuantParams quant = weight.type().quant.value_or(PerTensor(1));
  if (quant.axis == 1) {
    quant.axis = 0;
    quant.scales = {quant.scales.begin() + product.begin, quant.scales.begin() + product.end};
    quant.zero_points.resize(quant.scales.size());
  }
  TensorType type{DType::kI8, {product.end - product.begin, depth}, std::move(quant), Layout::kRowMajor};
  int8_t* data = const_cast<int8_t*>(weight.data<int8_t>()) + first * depth;  // Nobody writes.
  return Tensor::Borrow(std::move(type), data, std::shared_ptr<const void>(std::shared_ptr<const void>(), data));
}

}  // namespace

absl::StatusOr<Cell> CellOf(const KernelDesc& desc) {
  const auto& activate = kernels::BestVariant(fuselage::recurrent::Variants(), desc.isa).activate;
  ASSIGN_OR_RETURN(Cell cell, Cell::Of(desc, activate));
  for (const char* name : {"weight", "recurrent_weight"}) {
    const TensorType& type = desc.ParameterOrNull(name)->type();
    if (type.dtype != DType::kI8 || !type.quant || (!type.quant->per_tensor() && type.quant->axis != 1)) {
      return absl::UnimplementedError(
          absl::StrCat(desc.op, ": ", name, " is ", ToString(type), ", wanted i8 with one scale, or along axis 1"));
    }
  }
  return cell;
}

TensorType StateCodes(int64_t rows, const Sizes& s) {
  return {DType::kI8, {rows, s.units}, PerTensor(fuselage::recurrent::kStateScale), Layout::kRowMajor};
}

std::vector<Product> ProductsOf(const KernelDesc& desc, const Cell& cell, int64_t direction) {
  const Sizes& s = cell.sizes();
  TensorType x = desc.input(fuselage::recurrent::kX), states = StateCodes(s.sequences, s);
  x.shape = {s.rows(), s.inputs};
  const int64_t rows = s.gates * s.units, of_state = cell.resets_first() ? rows - s.units : rows;
  std::vector<Product> products = {{"weight", 0, x, direction, 0, rows},
                                   {"recurrent_weight", 1, states, direction, 0, of_state}};
  if (cell.resets_first()) products.push_back({"recurrent_weight", 1, states, direction, of_state, rows});
  return products;
}

LinearOf::RowsOfWeight::RowsOfWeight(const KernelDesc& layer, const Product& product)
    : layer_(layer),
      weight_(product.weight),
      rows_(absl::StrCat("direction ", product.direction, " rows ", product.begin, " to ", product.end, " ")) {}

std::shared_ptr<const Tensor> LinearOf::RowsOfWeight::Get(const kernels::Parameter&, const std::string& layout,
                                                          absl::FunctionRef<Tensor()> pack) {
  return layer_.weights->Get(layer_.parameters.at(weight_), absl::StrCat(rows_, layout), pack);
}

LinearOf::LinearOf(const KernelDesc& layer, const Product& product)
    : rows_(Rows(*layer.ParameterOrNull(product.weight), product)), packed_(layer, product), desc_(layer) {
  const int64_t count = product.end - product.begin;
  desc_.op = "int8.linear";
  desc_.attributes = {{"activation", Attribute("none")}};
  desc_.inputs = {product.x};
  desc_.outputs = {Floats({product.x.shape[0], count})};
  desc_.parameters = {{"weight", &rows_}};
  desc_.weights = layer.weights == nullptr ? nullptr : &packed_;
  const Tensor* biases = layer.ParameterOrNull("bias");
  if (biases == nullptr) return;
  bias_ = Tensor(DType::kF32, {count});
  const int64_t rows = layer.ParameterOrNull(product.weight)->dim(1);
  const float* half = biases->data<float>() + (2 * product.direction + product.bias) * rows;
  std::copy(half + product.begin, half + product.end, bias_.data<float>());
  desc_.parameters.emplace("bias", &bias_);
}

}  // namespace fuselage::int8::recurrent
