#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/indexing/indexing.h"

namespace fuselage::ops::indexing {
namespace {

// A tensor of `type` whose rows of `row` elements begin at `offsets` in `input`.
Tensor CopyRows(const Tensor& input, const TensorType& type, const std::vector<int64_t>& offsets, int64_t row) {
  Tensor result(type);
  if (result.num_elements() == 0) return result;
  const int64_t size = ByteSize(type.dtype);
  const char* from = static_cast<const char*>(input.raw_data());
  char* to = static_cast<char*>(result.raw_data());
  for (const int64_t offset : offsets) {
    std::memcpy(to, from + offset * size, row * size);
    to += row * size;
  }
  return result;
}

// --- index_select.

absl::StatusOr<ir::Type> InferIndexSelect(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckIndex(call, 1));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  Shape shape(input.shape.begin(), input.shape.begin() + axis);
  shape.insert(shape.end(), call.tensor(1).shape.begin(), call.tensor(1).shape.end());
  shape.insert(shape.end(), input.shape.begin() + axis + 1, input.shape.end());
  return ResultType(input.dtype, std::move(shape), input.quant);
}

absl::StatusOr<std::vector<Tensor>> EvaluateIndexSelect(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  const int64_t outer = SizeOf(input.shape(), 0, axis), dim = input.dim(axis);
  const int64_t row = SizeOf(input.shape(), axis + 1, input.rank());
  std::vector<int64_t> positions = Integers(call.tensor(1));
  for (int64_t& position : positions) {
    ASSIGN_OR_RETURN(position, Position(position, dim));
  }
  if (call.result().num_elements() == 0) return One(Tensor(call.result()));
  std::vector<int64_t> offsets;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t position : positions) offsets.push_back((o * dim + position) * row);
  }
  return One(CopyRows(input, call.result(), offsets, row));
}

// --- gather.

absl::StatusOr<ir::Type> InferGather(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckIndex(call, 1));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int dim, AxisOf(call, "dim", input.rank()));
  RETURN_IF_ERROR(CheckRank(call, 1, input.rank()));
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (axis != dim && call.tensor(1).shape[axis] > input.shape[axis]) {
      return OperandError(call, 1, absl::StrCat("wanted at most ", input.shape[axis], " on axis ", axis));
    }
  }
  return ResultType(input.dtype, call.tensor(1).shape, input.quant);
}

absl::StatusOr<std::vector<Tensor>> EvaluateGather(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ElementOffsets(input.shape(), call.tensor(1), axis));
  return One(CopyRows(input, call.result(), offsets, 1));
}

// --- gather_nd.

absl::StatusOr<ir::Type> InferGatherNd(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  const int64_t batch_dims = call.GetInt("batch_dims");
  RETURN_IF_ERROR(CheckIndices(call, batch_dims));
  const TensorType& input = call.tensor(0);
  return ResultType(input.dtype, IndexedShape(input.shape, call.tensor(1).shape, batch_dims), input.quant);
}

absl::StatusOr<std::vector<Tensor>> EvaluateGatherNd(const ir::EvaluateCall& call) {
  const Tensor &input = call.tensor(0), &indices = call.tensor(1);
  const int batch_dims = static_cast<int>(call.GetInt("batch_dims"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, RowOffsets(input.shape(), indices, batch_dims));
  const int first = batch_dims + static_cast<int>(indices.shape().back());
  return One(CopyRows(input, call.result(), offsets, SizeOf(input.shape(), first, input.rank())));
}

}  // namespace

absl::Status CheckIndex(const ir::InferCall& call, int i) {
  const DType dtype = call.tensor(i).dtype;
  if ((dtype == DType::kI32 || dtype == DType::kI64) && !call.tensor(i).quant) return absl::OkStatus();
  return OperandError(call, i, "wanted i32 or i64");
}

absl::StatusOr<int64_t> Position(int64_t index, int64_t dim) {
  if (index < -dim || index >= dim) {
    return absl::InvalidArgumentError(absl::StrCat("found index ", index, ", wanted one in [", -dim, ", ", dim, ")"));
  }
  return index < 0 ? index + dim : index;
}

int64_t SizeOf(const Shape& shape, int begin, int end) {
  int64_t size = 1;
  for (int axis = begin; axis < end; ++axis) size *= shape[axis];
  return size;
}

absl::StatusOr<std::vector<int64_t>> ElementOffsets(const Shape& input, const Tensor& index, int axis) {
  std::vector<int64_t> strides = RowMajorStrides(input);
  const int64_t stride = strides[axis];
  strides[axis] = 0;
  std::vector<int64_t> offsets = Integers(index);
  absl::Status status;
  ForEachOffset(index.shape(), strides, 0, [&](int64_t i, int64_t offset) {
    const absl::StatusOr<int64_t> position = Position(offsets[i], input[axis]);
    if (!position.ok()) return status.Update(position.status());
    offsets[i] = offset + *position * stride;
  });
  if (!status.ok()) return status;
  return offsets;
}

absl::StatusOr<std::vector<int64_t>> RowOffsets(const Shape& input, const Tensor& indices, int batch_dims) {
  const std::vector<int64_t> values = Integers(indices), strides = RowMajorStrides(input);
  const int64_t depth = indices.shape().back(), batches = SizeOf(input, 0, batch_dims);
  const int64_t rows = SizeOf(indices.shape(), 0, indices.rank() - 1);
  const int64_t batch_size = SizeOf(input, batch_dims, static_cast<int>(input.size()));
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t offset = i / (rows / batches) * batch_size;
    for (int64_t k = 0; k < depth; ++k) {
      ASSIGN_OR_RETURN(const int64_t position, Position(values[i * depth + k], input[batch_dims + k]));
      offset += position * strides[batch_dims + k];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

absl::Status CheckIndices(const ir::InferCall& call, int64_t batch_dims) {
  RETURN_IF_ERROR(CheckIndex(call, 1));
  const TensorType &input = call.tensor(0), &indices = call.tensor(1);
  RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  RETURN_IF_ERROR(CheckMinRank(call, 1, 1));
  if (batch_dims < 0 || batch_dims >= std::min(input.rank(), indices.rank())) {
    return OperandError(call, 1, absl::StrCat("wanted more axes than batch_dims, ", batch_dims, ", as in the input"));
  }
  for (int axis = 0; axis < batch_dims; ++axis) {
    if (indices.shape[axis] != input.shape[axis]) {
      return OperandError(call, 1, absl::StrCat("wanted ", input.shape[axis], " on the batch's axis ", axis));
    }
  }
  const int64_t most = input.rank() - batch_dims;
  if (indices.shape.back() >= 1 && indices.shape.back() <= most) return absl::OkStatus();
  return OperandError(call, 1, absl::StrCat("wanted a last axis of 1 to ", most, " positions"));
}

Shape IndexedShape(const Shape& input, const Shape& indices, int64_t batch_dims) {
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), input.begin() + batch_dims + indices.back(), input.end());
  return shape;
}

void RegisterGather(ir::OpRegistry& registry) {
  ir::OpSchema select;
  select.name = "index_select";
  select.aliases = {"torch.index_select"};
  select.operands = {{"input"}, {"index"}};
  select.operands[1].positions = true;
  select.attributes = {{"dim", AttributeKind::kInt, 0}};
  select.view = ir::View::kSelects;
  select.infer = InferIndexSelect;
  select.evaluate = EvaluateIndexSelect;
  registry.Register(std::move(select));

  ir::OpSchema gather;
  gather.name = "gather";
  gather.aliases = {"torch.gather"};
  gather.operands = {{"input"}, {"index"}};
  gather.operands[1].positions = true;
  gather.attributes = {{"dim", AttributeKind::kInt, 0}};
  gather.view = ir::View::kSelects;
  gather.infer = InferGather;
  gather.evaluate = EvaluateGather;
  registry.Register(std::move(gather));

  ir::OpSchema gather_nd;
  gather_nd.name = "gather_nd";
  gather_nd.operands = {{"input"}, {"indices"}};
  gather_nd.attributes = {{"batch_dims", AttributeKind::kInt, 0}};
  gather_nd.view = ir::View::kSelects;
  gather_nd.infer = InferGatherNd;
  gather_nd.evaluate = EvaluateGatherNd;
  registry.Register(std::move(gather_nd));
}

}  // namespace fuselage::ops::indexing
