#include "passes/normalize/constants.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fuselage::normalize {
namespace {

using ir::Node;

// The quantization parameters of a dequantize: from its operands, its attributes, or the type of what it reads.
absl::StatusOr<QuantParams> ParamsOf(const Node& dequantize, const Tensor& codes) {
  QuantParams params;
  const int64_t axis = dequantize.attribute("axis").as_int();
  if (dequantize.num_operands() > 1 && dequantize.operand(1) != nullptr) {
    ASSIGN_OR_RETURN(const Constant scale, ConstantOf(*dequantize.operand(1)));
    for (double value : ToDoubles(*scale.tensor)) params.scales.push_back(static_cast<float>(value));
    if (dequantize.num_operands() > 2 && dequantize.operand(2) != nullptr) {
      ASSIGN_OR_RETURN(const Constant zero_point, ConstantOf(*dequantize.operand(2)));
      for (double value : ToDoubles(*zero_point.tensor)) params.zero_points.push_back(static_cast<int32_t>(value));
    }
  } else if (!dequantize.attribute("scales").as_floats().empty()) {
    for (double value : dequantize.attribute("scales").as_floats()) params.scales.push_back(static_cast<float>(value));
    for (int64_t value : dequantize.attribute("zero_points").as_ints()) {
      params.zero_points.push_back(static_cast<int32_t>(value));
    }
  } else if (codes.type().quant) {
    return *codes.type().quant;
  }
  if (params.zero_points.empty()) params.zero_points.resize(params.scales.size());
  params.axis = params.scales.size() == 1 ? QuantParams::kPerTensor : static_cast<int>(axis);
  RETURN_IF_ERROR(CheckQuantParams(params, codes.dtype(), codes.shape()));
  return params;
}

std::string AttributeText(const Node& node) {
  std::string text;
  for (const auto& [name, attribute] : node.attributes()) absl::StrAppend(&text, ",", name, "=", attribute.ToString());
  return text;
}

absl::StatusOr<Constant> Quantized(const Node& quantize) {
  Constant result;
  std::vector<std::vector<Tensor>> values;
  for (int i = 0; i < quantize.num_operands(); ++i) {
    values.emplace_back();
    if (quantize.operand(i) == nullptr) continue;
    ASSIGN_OR_RETURN(Constant operand, ConstantOf(*quantize.operand(i)));
    values.back().push_back(*operand.tensor);
    absl::StrAppend(&result.key, i == 0 ? "" : ",", operand.key);
    if (i == 0) result.origin = operand.origin;
  }
  result.key = absl::StrCat("quantize(", result.key, AttributeText(quantize), ")");
  std::vector<const std::vector<Tensor>*> operands;
  for (const auto& value : values) operands.push_back(value.empty() ? nullptr : &value);
  ASSIGN_OR_RETURN(std::vector<Tensor> codes,
                   ir::Evaluate(*quantize.op(), quantize.attributes(), std::move(operands), quantize.type()));
  result.tensor = std::make_shared<const Tensor>(std::move(codes[0]));
  return result;
}

// u8 codes around 128 are i8 codes around 0, which is what weights are to the kernels.
bool IsOffBy128(const TensorType& type) {
  return type.dtype == DType::kU8 && absl::c_all_of(type.quant->zero_points, [](int32_t z) { return z == 128; });
}

Tensor Recentred(const Tensor& codes) {
  TensorType type = codes.type();
  type.dtype = DType::kI8;
  for (int32_t& zero_point : type.quant->zero_points) zero_point = 0;
  Tensor recentred(std::move(type));
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    recentred.data<int8_t>()[i] = static_cast<int8_t>(codes.data<uint8_t>()[i] - 128);
  }
  return recentred;
}

// Of a matrix.
bool IsTranspose(const Node& node) {
  return node.IsOp("permute") && node.attribute("dims").as_ints() == std::vector<int64_t>{1, 0};
}

absl::StatusOr<Constant> Dequantize(const Node& dequantize) {
  ASSIGN_OR_RETURN(Constant codes, ConstantOf(*dequantize.operand(0)));
  ASSIGN_OR_RETURN(QuantParams params, ParamsOf(dequantize, *codes.tensor));
  TensorType type = codes.tensor->type();
  const bool as_stored = type.quant == params;
  type.quant = std::move(params);
  const std::string key = absl::StrCat("dequantize(", codes.key, ToString(*type.quant), ")");
  const bool off = IsOffBy128(type);
  if (as_stored && !off) return codes;
  auto tensor = std::make_shared<Tensor>(*codes.tensor);
  tensor->set_type(std::move(type));
  if (off) *tensor = Recentred(*tensor);
  return Constant{std::move(tensor), key, codes.origin, /*as_stored=*/false};
}

}  // namespace

bool IsConstant(const Node& node) {
  if (node.kind() == ir::NodeKind::kGetAttr) return true;
  if (!node.IsOp("dequantize") && !node.IsOp("quantize") && !IsTranspose(node)) return false;
  for (const Node* operand : node.operands()) {
    if (operand != nullptr && !IsConstant(*operand)) return false;
  }
  return true;
}

absl::StatusOr<Constant> ConstantOf(const Node& node) {
  if (node.kind() == ir::NodeKind::kGetAttr) {
    const ir::Parameter* parameter = node.graph().FindParameterOrNull(node.target());
    return Constant{parameter->tensor, node.target(), node.target(), /*as_stored=*/true};
  }
  if (IsTranspose(node)) {
    ASSIGN_OR_RETURN(const Constant matrix, ConstantOf(*node.operand(0)));
    return Transposed(matrix);
  }
  absl::StatusOr<Constant> constant = node.IsOp("dequantize") ? Dequantize(node) : Quantized(node);
  if (!constant.ok()) return Annotate(constant.status(), absl::StrCat("%", node.name()));
  return constant;
}

Constant Transposed(const Constant& matrix) {
  const Tensor& from = *matrix.tensor;
  TensorType type = from.type();
  std::swap(type.shape[0], type.shape[1]);
  if (type.quant && !type.quant->per_tensor()) type.quant->axis = 1 - type.quant->axis;
  auto to = std::make_shared<Tensor>(std::move(type));
  const int64_t rows = from.dim(0), columns = from.dim(1);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      to->Set(column * rows + row, from.At(row * columns + column));
    }
  }
  return Constant{std::move(to), absl::StrCat("transposed(", matrix.key, ")"), matrix.origin};
}

Constant Scaled(const Constant& constant, double factor) {
  auto scaled = std::make_shared<Tensor>(*constant.tensor);
  float* values = scaled->data<float>();
  for (int64_t i = 0; i < scaled->num_elements(); ++i) values[i] = static_cast<float>(values[i] * factor);
  return Constant{std::move(scaled), absl::StrCat("scaled(", constant.key, ",", ShortestText(factor), ")"),
                  constant.origin};
}

Constant Reshaped(const Constant& constant, const Shape& shape) {
  const Tensor& from = *constant.tensor;
  if (from.shape() == shape) return constant;
  TensorType type = from.type();
  type.shape = shape;
  auto reshaped = std::make_shared<Tensor>(std::move(type));
  if (reshaped->byte_size() == from.byte_size()) {
    std::memcpy(reshaped->raw_data(), from.raw_data(), from.byte_size());
  } else {
    for (int64_t i = 0; i < reshaped->num_elements(); ++i) reshaped->Set(i, from.At(0));
  }
  return Constant{std::move(reshaped), absl::StrCat("reshaped(", constant.key, ",", absl::StrJoin(shape, "x"), ")"),
                  constant.origin};
}

std::string ParameterTable::Intern(const Constant& constant, const std::string& wish) {
  if (constant.as_stored) return constant.origin;
  std::string& name = by_key_[constant.key];
  if (name.empty()) name = graph_.AddParameter(wish, constant.tensor);
  return name;
}

}  // namespace fuselage::normalize
