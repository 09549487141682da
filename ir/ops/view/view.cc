#include "ir/ops/view/view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::view {
namespace {

using InferShape = absl::StatusOr<Shape> (*)(const ir::InferCall&, const Shape& input);

// The parameters of codes that now have `shape`: the quantization axis is where as many elements lie before it.
absl::StatusOr<QuantParams> Remapped(const ir::InferCall& call, const Shape& shape) {
  QuantParams quant = *call.tensor(0).quant;
  if (quant.per_tensor()) return quant;
  const Shape& from = call.tensor(0).shape;
  const auto outer = [](const Shape& dims, int axis) {
    int64_t product = 1;
    for (int i = 0; i < axis; ++i) product *= dims[i];
    return product;
  };
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (shape[axis] == from[quant.axis] && outer(shape, axis) == outer(from, quant.axis)) {
      quant.axis = axis;
      return quant;
    }
  }
  if (quant.scales.size() == 1) {
    quant.axis = QuantParams::kPerTensor;
    return quant;
  }
  return OperandError(call, 0, absl::StrCat("shape ", ToString(shape), " loses the quantization axis ", quant.axis));
}

absl::StatusOr<ir::Type> InferView(const ir::InferCall& call, InferShape infer_shape) {
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(Shape shape, infer_shape(call, input.shape));
  if (!input.quant) return ResultType(input.dtype, std::move(shape));
  ASSIGN_OR_RETURN(QuantParams quant, Remapped(call, shape));
  return ResultType(input.dtype, std::move(shape), std::move(quant));
}

absl::StatusOr<Shape> FlattenedShape(const ir::InferCall& call, const Shape& input) {
  const int rank = static_cast<int>(input.size());
  if (rank == 0) {  // A scalar counts as [1] here.
    RETURN_IF_ERROR(AxisOf(call, "start_dim", 1).status());
    RETURN_IF_ERROR(AxisOf(call, "end_dim", 1).status());
    return Shape{1};
  }
  ASSIGN_OR_RETURN(const int start, AxisOf(call, "start_dim", rank));
  ASSIGN_OR_RETURN(const int end, AxisOf(call, "end_dim", rank));
  if (start > end) {
    return AttributeError(call, "start_dim", absl::StrCat("not behind end_dim=", call.GetInt("end_dim")));
  }
  Shape shape(input.begin(), input.begin() + start);
  shape.push_back(1);
  for (int axis = start; axis <= end; ++axis) {
    if (__builtin_mul_overflow(shape.back(), input[axis], &shape.back())) {
      return OperandError(call, 0, "its size overflows 64 bits");
    }
  }
  shape.insert(shape.end(), input.begin() + end + 1, input.end());
  return shape;
}

absl::StatusOr<Shape> Reshaped(const ir::InferCall& call, const Shape& input) {
  Shape shape = call.GetInts("shape");
  int unknown = -1;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (shape[axis] == 0 && !call.GetBool("allow_zero")) {
      if (axis >= static_cast<int>(input.size())) {
        return AttributeError(call, "shape", absl::StrCat("no 0 at ", axis, ", the input has rank ", input.size()));
      }
      shape[axis] = input[axis];
    } else if (shape[axis] == -1) {
      if (unknown >= 0) return AttributeError(call, "shape", "at most one -1");
      unknown = axis;
    } else if (shape[axis] < 0) {
      return AttributeError(call, "shape", "dimensions >= -1");
    }
  }
  ASSIGN_OR_RETURN(const int64_t wanted, CheckedNumElements(input));
  if (unknown >= 0) shape[unknown] = 1;
  absl::StatusOr<int64_t> known = CheckedNumElements(shape);
  if (!known.ok()) return AttributeError(call, "shape", known.status().message());
  if (unknown >= 0) {
    if (*known == 0 || wanted % *known != 0) {
      return AttributeError(call, "shape",
                            absl::StrCat("known dimensions that divide the input's ", wanted, " elements"));
    }
    shape[unknown] = wanted / *known;
  } else if (*known != wanted) {
    return AttributeError(
        call, "shape",
        absl::StrCat("as many elements as the input ", ToString(input), ": ", wanted, ", found ", *known));
  }
  return shape;
}

absl::StatusOr<Shape> Squeezed(const ir::InferCall& call, const Shape& input) {
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", static_cast<int>(input.size())));
  Shape shape;
  for (int axis = 0; axis < static_cast<int>(input.size()); ++axis) {
    const bool named = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (named && input[axis] != 1) {
      return AttributeError(call, "dims", absl::StrCat("axes of size 1, found ", input[axis], " on axis ", axis));
    }
    if (!(named || (axes.empty() && input[axis] == 1))) shape.push_back(input[axis]);
  }
  return shape;
}

absl::StatusOr<Shape> Unsqueezed(const ir::InferCall& call, const Shape& input) {
  const int rank = static_cast<int>(input.size() + call.GetInts("dims").size());
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", rank));
  Shape shape;
  auto next = input.begin();
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(std::find(axes.begin(), axes.end(), axis) != axes.end() ? 1 : *next++);
  }
  return shape;
}

void RegisterView(ir::OpRegistry& registry, const char* name, std::vector<std::string> aliases,
                  std::vector<ir::AttributeSpec> attributes, InferShape infer_shape) {
  ir::OpSchema schema;
  schema.name = name;
  schema.aliases = std::move(aliases);
  schema.operands = {{"input"}};
  schema.attributes = std::move(attributes);
  schema.view = ir::View::kSameOrder;
  schema.infer = [infer_shape](const ir::InferCall& call) { return InferView(call, infer_shape); };
  schema.evaluate = [](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    return One(WithType(call.tensor(0), call.result()));
  };
  registry.Register(std::move(schema));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  RegisterView(registry, "flatten", {"torch.flatten"},
               {{"start_dim", AttributeKind::kInt, 1}, {"end_dim", AttributeKind::kInt, -1}}, FlattenedShape);
  RegisterView(registry, "reshape", {"torch.reshape", "view"},
               {{"shape", AttributeKind::kInts, std::nullopt}, {"allow_zero", AttributeKind::kBool, false}}, Reshaped);
  RegisterView(registry, "squeeze", {}, {{"dims", AttributeKind::kInts, std::vector<int64_t>{}}}, Squeezed);
  RegisterView(registry, "unsqueeze", {"torch.unsqueeze"}, {{"dims", AttributeKind::kInts, std::nullopt}}, Unsqueezed);
}

}  // namespace fuselage::ops::view
