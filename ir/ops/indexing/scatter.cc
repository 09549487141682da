#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/indexing/indexing.h"

namespace fuselage::ops::indexing {
namespace {

// What operand 2 must be for operand 0 to take it; the result is operand 0's type.
absl::StatusOr<ir::Type> InferPut(const ir::InferCall& call, const Shape& shape) {
  const TensorType &input = call.tensor(0), &source = call.tensor(2);
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckDType(call, 2, input.dtype));
  RETURN_IF_ERROR(CheckShape(call, 2, shape));
  if (source.quant != input.quant) {
    return OperandError(call, 2, absl::StrCat("wanted the quantization parameters of ", ToString(input)));
  }
  RETURN_IF_ERROR(CheckOneOf(call, "reduce", {"none", "add", "mul", "max", "min"}));
  if (call.GetString("reduce") != "none") {
    RETURN_IF_ERROR(CheckNoCodes(call, 0));
    if (input.dtype == DType::kBool) return OperandError(call, 0, "wanted numbers to reduce");
  }
  return ResultType(input.dtype, input.shape, input.quant);
}

// NaN wins.
template <typename T>
T Larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T Smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
T Reduce(const std::string& reduce, T a, T b) {
  if (reduce == "add") return a + b;
  if (reduce == "mul") return a * b;
  return reduce == "max" ? Larger(a, b) : Smaller(a, b);
}

// Row i of `row` elements of the source goes to offsets[i].
Tensor Put(const ir::EvaluateCall& call, const std::vector<int64_t>& offsets, int64_t row) {
  const Tensor &input = call.tensor(0), &source = call.tensor(2);
  const std::string& reduce = call.GetString("reduce");
  const auto for_each = [&](auto put) {
    for (size_t i = 0; i < offsets.size(); ++i) {
      for (int64_t k = 0; k < row; ++k) put(offsets[i] + k, i * row + k);
    }
  };
  if (reduce == "none") {
    Tensor result = input;
    const int64_t size = ByteSize(input.dtype());
    char* to = static_cast<char*>(result.raw_data());
    const char* from = static_cast<const char*>(source.raw_data());
    for_each([&](int64_t at, int64_t i) { std::memcpy(to + at * size, from + i * size, size); });
    return result;
  }
  if (IsFloat(input.dtype())) {
    std::vector<double> values = ToDoubles(input);
    for_each([&](int64_t at, int64_t i) { values[at] = Reduce(reduce, values[at], source.At(i)); });
    return OfReals(input.type(), values);
  }
  std::vector<int64_t> values = Integers(input);
  const std::vector<int64_t> others = Integers(source);
  for_each([&](int64_t at, int64_t i) {  // Modulo 2^64.
    values[at] =
        reduce == "add" || reduce == "mul"
            ? static_cast<int64_t>(Reduce(reduce, static_cast<uint64_t>(values[at]), static_cast<uint64_t>(others[i])))
            : Reduce(reduce, values[at], others[i]);
  });
  return OfIntegers(input.type(), values);
}

absl::StatusOr<ir::Type> InferScatter(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckIndex(call, 1));
  const TensorType &input = call.tensor(0), &index = call.tensor(1);
  ASSIGN_OR_RETURN(const int dim, AxisOf(call, "dim", input.rank()));
  RETURN_IF_ERROR(CheckRank(call, 1, input.rank()));
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (axis != dim && index.shape[axis] > input.shape[axis]) {
      return OperandError(call, 1, absl::StrCat("wanted at most ", input.shape[axis], " on axis ", axis));
    }
  }
  return InferPut(call, index.shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateScatter(const ir::EvaluateCall& call) {
  const Shape& input = call.tensor(0).shape();
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", call.tensor(0).rank()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ElementOffsets(input, call.tensor(1), axis));
  return One(Put(call, offsets, 1));
}

absl::StatusOr<ir::Type> InferScatterNd(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckIndices(call, 0));
  return InferPut(call, IndexedShape(call.tensor(0).shape, call.tensor(1).shape, 0));
}

absl::StatusOr<std::vector<Tensor>> EvaluateScatterNd(const ir::EvaluateCall& call) {
  const Shape& input = call.tensor(0).shape();
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, RowOffsets(input, call.tensor(1), 0));
  const int depth = static_cast<int>(call.tensor(1).shape().back());
  return One(Put(call, offsets, SizeOf(input, depth, static_cast<int>(input.size()))));
}

}  // namespace

void RegisterScatter(ir::OpRegistry& registry) {
  ir::OpSchema scatter;
  scatter.name = "scatter";
  scatter.aliases = {"torch.scatter"};
  scatter.operands = {{"input"}, {"index"}, {"src"}};
  scatter.operands[1].positions = true;
  scatter.attributes = {{"dim", AttributeKind::kInt, 0}, {"reduce", AttributeKind::kString, "none"}};
  scatter.infer = InferScatter;
  scatter.evaluate = EvaluateScatter;
  registry.Register(std::move(scatter));

  ir::OpSchema scatter_nd;
  scatter_nd.name = "scatter_nd";
  scatter_nd.operands = {{"input"}, {"indices"}, {"updates"}};
  scatter_nd.attributes = {{"reduce", AttributeKind::kString, "none"}};
  scatter_nd.infer = InferScatterNd;
  scatter_nd.evaluate = EvaluateScatterNd;
  registry.Register(std::move(scatter_nd));
}

}  // namespace fuselage::ops::indexing
