#include "ir/ops/dynamic_quantize/dynamic_quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/mxfp4.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::dynamic_quantize {
namespace {

TensorType RowMajor(DType dtype, Shape shape) { return {dtype, std::move(shape), std::nullopt, Layout::kRowMajor}; }

absl::Status CheckInput(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  return CheckDType(call, 0, DType::kF32);
}

// --- dynamic_quantize_symmetric, dynamic_quantize_asymmetric.

struct Group {
  float least = 0, greatest = 0;  // With 0 among them.
  float scale = 1;
  float offset = 0;
};

// A quantizer: from a group's range to its parameters.
struct Scheme {
  DType codes;
  bool has_offset;
  float least_code, greatest_code;
  void (*parameters)(Group& group);
};

void Symmetric(Group& group) { group.scale = std::max(-group.least, group.greatest) / 127.0f; }
void Asymmetric(Group& group) { group.scale = (group.greatest - group.least) / 255.0f; }

constexpr Scheme kSymmetric = {DType::kI8, false, -127, 127, Symmetric};
constexpr Scheme kAsymmetric = {DType::kU8, true, 0, 255, Asymmetric};

absl::StatusOr<ir::Type> InferDynamic(const ir::InferCall& call, const Scheme& scheme) {
  RETURN_IF_ERROR(CheckInput(call));
  Shape shape = call.tensor(0).shape;
  ASSIGN_OR_RETURN(const std::vector<int> dims, AxesOf(call, "dims", call.tensor(0).rank()));
  for (int axis : dims) shape[axis] = 1;
  if (dims.empty()) shape.clear();
  std::vector<TensorType> types = {RowMajor(scheme.codes, call.tensor(0).shape), RowMajor(DType::kF32, shape)};
  if (scheme.has_offset) types.push_back(RowMajor(scheme.codes, shape));
  return ir::Type::Tuple(std::move(types));
}

absl::StatusOr<std::vector<Tensor>> EvaluateDynamic(const ir::EvaluateCall& call, const Scheme& scheme) {
  const Tensor& input = call.tensor(0);
  const float* x = input.data<float>();
  std::vector<Tensor> results;
  for (const TensorType& type : call.result_type->elements()) results.emplace_back(type);
  const std::vector<int64_t> strides = BroadcastStrides(results[1].shape(), input.shape());

  std::vector<Group> groups(results[1].num_elements());
  int64_t bad = -1;
  ForEachOffset(input.shape(), strides, 0, [&](int64_t i, int64_t g) {
    if (!std::isfinite(x[i])) bad = i;
    groups[g].least = std::min(groups[g].least, x[i]);
    groups[g].greatest = std::max(groups[g].greatest, x[i]);
  });
  if (bad >= 0) return absl::InvalidArgumentError(absl::StrCat("input holds ", ShortestText(x[bad])));
  for (size_t g = 0; g < groups.size(); ++g) {
    Group& group = groups[g];
    scheme.parameters(group);
    if (group.scale < std::numeric_limits<float>::min()) group.scale = 1;
    if (!std::isfinite(group.scale)) {
      return absl::InvalidArgumentError(absl::StrCat("the input's range [", ShortestText(group.least), ", ",
                                                     ShortestText(group.greatest), "] overflows f32"));
    }
    results[1].data<float>()[g] = group.scale;
    if (!scheme.has_offset) continue;
    group.offset =
        std::clamp(std::nearbyint(0.0f - group.least / group.scale), scheme.least_code, scheme.greatest_code);
    results[2].Set(static_cast<int64_t>(g), group.offset);
  }
  ForEachOffset(input.shape(), strides, 0, [&](int64_t i, int64_t g) {
    const float code = std::nearbyint(x[i] / groups[g].scale) + groups[g].offset;
    results[0].Set(i, std::clamp(code, scheme.least_code, scheme.greatest_code));
  });
  return results;
}

ir::OpSchema DynamicSchema(const char* name, const Scheme& scheme) {
  ir::OpSchema schema;
  schema.name = name;
  schema.operands = {{"input"}};
  schema.attributes = {{"dims", AttributeKind::kInts, std::vector<int64_t>{}}};
  schema.infer = [&scheme](const ir::InferCall& call) { return InferDynamic(call, scheme); };
  schema.evaluate = [&scheme](const ir::EvaluateCall& call) { return EvaluateDynamic(call, scheme); };
  return schema;
}

// --- dynamic_quantize_mxfp4.

// The shape of the scales of values of the type of operand 0.
absl::StatusOr<Shape> ScaleShape(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const int64_t group_size = call.GetInt("group_size");
  if (group_size <= 0) return AttributeError(call, "group_size", "a size > 0");
  Shape shape = call.tensor(0).shape;
  shape.back() = shape.back() / group_size + (shape.back() % group_size != 0);
  return shape;
}

// Calls f(group, first, size) for each group of the values.
template <typename F>
void ForEachGroup(const Shape& shape, int64_t group_size, F f) {
  int64_t rows = 1, group = 0;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < shape.back();) {
      const int64_t size = std::min(group_size, shape.back() - column);
      f(group++, row * shape.back() + column, size);
      column += size;
    }
  }
}

absl::StatusOr<ir::Type> InferQuantizeMxfp4(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckInput(call));
  ASSIGN_OR_RETURN(Shape scale, ScaleShape(call));
  return ir::Type::Tuple({RowMajor(DType::kU8, call.tensor(0).shape), RowMajor(DType::kU8, std::move(scale))});
}

absl::StatusOr<std::vector<Tensor>> EvaluateQuantizeMxfp4(const ir::EvaluateCall& call) {
  const absl::Span<const float> x = call.tensor(0).values<float>();
  std::vector<Tensor> results;
  for (const TensorType& type : call.result_type->elements()) results.emplace_back(type);
  uint8_t* codes = results[0].data<uint8_t>();
  ForEachGroup(call.tensor(0).shape(), call.GetInt("group_size"), [&](int64_t group, int64_t first, int64_t size) {
    const uint8_t scale = mxfp4::SharedScale(x.subspan(first, size));
    results[1].data<uint8_t>()[group] = scale;
    if (scale == mxfp4::kE8M0NaN) return;
    for (int64_t i = first; i < first + size; ++i) codes[i] = mxfp4::ToE2M1(x[i] / mxfp4::FromE8M0(scale));
  });
  return results;
}

// --- dequantize_mxfp4, dequantize_groups.

absl::StatusOr<ir::Type> InferDequantize(const ir::InferCall& call, DType codes, DType scales) {
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  RETURN_IF_ERROR(CheckDType(call, 0, codes));
  RETURN_IF_ERROR(CheckDType(call, 1, scales));
  ASSIGN_OR_RETURN(const Shape scale, ScaleShape(call));
  RETURN_IF_ERROR(CheckShape(call, 1, scale));
  return ResultType(DType::kF32, call.tensor(0).shape);
}

// value(i) is the real value of code i, scale(g) that of the scale of a group.
template <typename Value, typename Scale>
std::vector<Tensor> Dequantize(const ir::EvaluateCall& call, Value value, Scale scale) {
  Tensor result(call.result());
  ForEachGroup(result.shape(), call.GetInt("group_size"), [&](int64_t group, int64_t first, int64_t size) {
    const double factor = scale(group);
    for (int64_t i = first; i < first + size; ++i) result.data<float>()[i] = static_cast<float>(value(i) * factor);
  });
  return One(std::move(result));
}

absl::StatusOr<std::vector<Tensor>> EvaluateDequantizeMxfp4(const ir::EvaluateCall& call) {
  const uint8_t *codes = call.tensor(0).data<uint8_t>(), *scales = call.tensor(1).data<uint8_t>();
  return Dequantize(
      call, [&](int64_t i) { return mxfp4::FromE2M1(codes[i]); },
      [&](int64_t g) { return mxfp4::FromE8M0(scales[g]); });
}

absl::StatusOr<std::vector<Tensor>> EvaluateDequantizeGroups(const ir::EvaluateCall& call) {
  const int8_t* codes = call.tensor(0).data<int8_t>();
  const float* scales = call.tensor(1).data<float>();
  return Dequantize(
      call, [&](int64_t i) -> double { return codes[i]; }, [&](int64_t g) -> double { return scales[g]; });
}

ir::OpSchema DequantizeSchema(const char* name, DType codes, DType scales) {
  ir::OpSchema schema;
  schema.name = name;
  schema.operands = {{"codes"}, {"scale"}};
  schema.attributes = {{"group_size", AttributeKind::kInt, 32}};
  schema.infer = [codes, scales](const ir::InferCall& call) { return InferDequantize(call, codes, scales); };
  return schema;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  registry.Register(DynamicSchema("dynamic_quantize_symmetric", kSymmetric));
  ir::OpSchema asymmetric = DynamicSchema("dynamic_quantize_asymmetric", kAsymmetric);
  asymmetric.aliases = {"dynamic_quantize_linear"};
  registry.Register(std::move(asymmetric));

  ir::OpSchema quantize;
  quantize.name = "dynamic_quantize_mxfp4";
  quantize.operands = {{"input"}};
  quantize.attributes = {{"group_size", AttributeKind::kInt, 32}};
  quantize.infer = InferQuantizeMxfp4;
  quantize.evaluate = EvaluateQuantizeMxfp4;
  registry.Register(std::move(quantize));

  ir::OpSchema mxfp4 = DequantizeSchema("dequantize_mxfp4", DType::kU8, DType::kU8);
  mxfp4.evaluate = EvaluateDequantizeMxfp4;
  registry.Register(std::move(mxfp4));
  ir::OpSchema groups = DequantizeSchema("dequantize_groups", DType::kI8, DType::kF32);
  groups.evaluate = EvaluateDequantizeGroups;
  registry.Register(std::move(groups));
}

}  // namespace fuselage::ops::dynamic_quantize
