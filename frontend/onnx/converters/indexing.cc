// Operators that pick, replace or order elements.
#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/rows.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::indexing {
namespace {

using Ints = std::vector<int64_t>;

// Constant indices along one axis that ascend by one from the first (counted from the front), as [begin, end) of an
// axis.
bool IsRun(const Tensor* index, int64_t dim, int64_t* begin, int64_t* end) {
  if (index == nullptr || index->num_elements() == 0 || IsFloat(index->dtype())) return false;
  if (std::count(index->shape().begin(), index->shape().end(), 1) < index->rank() - 1) return false;
  const auto first = static_cast<int64_t>(index->At(0));
  *begin = first < 0 ? first + dim : first;
  *end = *begin + index->num_elements();
  for (int64_t i = 0; i < index->num_elements(); ++i) {
    if (index->At(i) != static_cast<double>(first + i)) return false;
  }
  return *begin >= 0 && *end <= dim && (first >= 0 || first + index->num_elements() <= 0);
}

// ONNX's names of reductions as ours; empty for one that there is not.
absl::StatusOr<std::string> Reduction(const Call& call) {
  const std::string reduction = call.String("reduction", "none");
  for (const char* name : {"none", "add", "mul", "max", "min"}) {
    if (reduction == name) return reduction;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("attribute 'reduction': found ", Quote(reduction), ", wanted none, add, mul, max or min"));
}

// What a constant run of indices picks is a slice, which is a view of few copies; a single one drops its axis, and axes
// of 1 are added (PyTorch's unfold has such indices for the axis along which there is one window).
absl::Status ConvertGather(Call& call) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 0), call.rank(0)));
  const Value &data = call.operand(0), &index = call.operand(1);
  if (const Tensor* from = index.TensorOrNull();
      from != nullptr && data.rows.count != nullptr && data.rows.axis == axis) {
    for (int64_t i = 0; i < from->num_elements(); ++i) {
      if (from->At(i) >= 0) continue;
      return absl::UnimplementedError(absl::StrCat("input 1: found index ", from->At(i),
                                                   " of as many elements as data says, wanted one from the front"));
    }
  }
  int64_t begin = 0, end = 0;
  if (data.constant == nullptr && index.at_next_batch == nullptr &&
      IsRun(index.TensorOrNull(), data.shape()[axis], &begin, &end)) {
    const AttributeMap slice = {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{axis}}};
    const Shape& shape = index.type().shape;
    if (shape.size() == 1) return call.Result("slice", {data}, slice);
    ASSIGN_OR_RETURN(const Value part, call.EmitHelper("slice", "slice", {data}, slice));
    if (shape.empty()) return call.Result("squeeze", {part}, {{"dims", Ints{axis}}});
    const auto longest = std::max_element(shape.begin(), shape.end()) - shape.begin();
    Ints added;
    for (int64_t i = 0; i < index.type().rank(); ++i) {
      if (i != longest) added.push_back(axis + i);
    }
    return call.Result("unsqueeze", {part}, {{"dims", std::move(added)}});
  }
  return call.Result("index_select", call.operands(), {{"dim", axis}});
}

absl::Status ConvertGatherElements(Call& call) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 0), call.rank(0)));
  return call.Result("gather", call.operands(), {{"dim", axis}});
}

absl::Status ConvertGatherNd(Call& call) {
  return call.Result("gather_nd", call.operands(), {{"batch_dims", call.Int("batch_dims", 0)}});
}

// A position for each row that is repeated for all of its elements (torch.Tensor.index_put, as PyTorch exports it).
bool NamesWholeRows(const Call& call, int axis) {
  const Value& index = call.operand(1);
  if (axis != 0 || index.node == nullptr || !index.node->is_call() || index.node->op()->name != "expand") return false;
  const Shape &rows = index.node->operand(0)->tensor_type().shape, &shape = index.shape(), &data = call.shape(0);
  return rows.size() == shape.size() && rows[0] == shape[0] && call.shape(2) == shape &&
         std::count(rows.begin() + 1, rows.end(), 1) == static_cast<int64_t>(rows.size()) - 1 &&
         std::equal(data.begin() + 1, data.end(), shape.begin() + 1, shape.end());
}

absl::Status ConvertScatterElements(Call& call) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 0), call.rank(0)));
  ASSIGN_OR_RETURN(const std::string reduction, Reduction(call));
  if (NamesWholeRows(call, axis)) {
    Value rows = call.operand(1);
    rows.node = rows.node->operand(0);
    ASSIGN_OR_RETURN(rows, call.EmitHelper("rows", "reshape", {rows}, {{"shape", Ints{-1, 1}}}));
    return call.Result("scatter_nd", {call.operand(0), rows, call.operand(2)}, {{"reduce", reduction}});
  }
  return call.Result("scatter", call.operands(), {{"dim", axis}, {"reduce", reduction}});
}

absl::Status ConvertScatterNd(Call& call) {
  ASSIGN_OR_RETURN(const std::string reduction, Reduction(call));
  return call.Result("scatter_nd", call.operands(), {{"reduce", reduction}});
}

// The indices and the depth may be of any number's type.
absl::Status ConvertOneHot(Call& call) {
  ASSIGN_OR_RETURN(const double depth, call.ConstantScalar(1));
  if (!(depth >= 0 && depth <= INT32_MAX)) {
    return absl::InvalidArgumentError(absl::StrCat("input 1: found the depth ", depth, ", wanted one in [0, 2^31)"));
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", -1), call.rank(0) + 1));
  Value index = call.operand(0);
  if (index.type().dtype != DType::kI64 && index.type().dtype != DType::kI32) {
    ASSIGN_OR_RETURN(index, call.EmitHelper("index", "to", {index}, {{"dtype", DType::kI64}}));
  }
  return call.Result("one_hot", {index, call.operand(2)},
                     {{"num_classes", static_cast<int64_t>(depth)}, {"dim", axis}});
}

// k is an attribute before opset 10, an input from then on.
absl::Status ConvertTopK(Call& call) {
  int64_t k = call.Int("k", 0);
  if (call.opset() < 10 ? call.has(1) || !call.HasAttribute("k") : !call.has(1) || call.HasAttribute("k")) {
    return absl::InvalidArgumentError("wanted k as an attribute before opset 10, as an input from then on");
  }
  if (call.has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> list, call.ConstantInts(1));
    if (list.size() != 1)
      return absl::InvalidArgumentError(absl::StrCat("input 1: found ", list.size(), " numbers, wanted one"));
    k = list[0];
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", -1), call.rank(0)));
  ASSIGN_OR_RETURN(const bool largest, call.Flag("largest", true));
  ASSIGN_OR_RETURN(const bool sorted, call.Flag("sorted", true));
  ASSIGN_OR_RETURN(
      std::vector<Value> values,
      call.builder().EmitTuple(call.name(), "topk", {call.operand(0)},
                               {{"k", k}, {"dim", axis}, {"largest", largest}, {"sorted", sorted}}, call.wanted()));
  for (int i = 0; i < call.num_outputs(); ++i) call.Set(i, std::move(values[i]));
  return absl::OkStatus();
}

absl::Status ConvertCompress(Call& call) {
  Value data = call.operand(0);
  int axis = 0;
  if (call.HasAttribute("axis")) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(call.Int("axis", 0), call.rank(0)));
  } else {
    ASSIGN_OR_RETURN(data, call.EmitHelper("flat", "reshape", {data}, {{"shape", Ints{-1}}}));
  }
  ASSIGN_OR_RETURN(const Value picked,
                   EmitNonzero(call.builder(), absl::StrCat(call.name(), ".picked"), call.operand(1)));
  ASSIGN_OR_RETURN(const Value index, call.EmitHelper("index", "squeeze", {picked}, {{"dims", Ints{1}}}));
  return call.Result("index_select", {data, index}, {{"dim", axis}});
}

absl::Status ConvertReverseSequence(Call& call) {
  return call.Result("reverse_sequence", call.operands(),
                     {{"batch_dim", call.Int("batch_axis", 1)}, {"time_dim", call.Int("time_axis", 0)}});
}

absl::Status ConvertTrilu(Call& call) {
  ASSIGN_OR_RETURN(const bool upper, call.Flag("upper", true));
  int64_t diagonal = 0;
  if (call.has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> list, call.ConstantInts(1));
    if (list.size() != 1)
      return absl::InvalidArgumentError(absl::StrCat("input 1: found ", list.size(), " numbers, wanted one"));
    diagonal = list[0];
  }
  return call.Result(upper ? "triu" : "tril", {call.operand(0)}, {{"diagonal", diagonal}});
}

absl::Status ConvertNonZero(Call& call) {
  ASSIGN_OR_RETURN(const Value rows, EmitNonzero(call.builder(), absl::StrCat(call.name(), ".rows"), call.operand(0)));
  return call.Result("permute", {rows}, {{"dims", Ints{1, 0}}});
}

// A threshold or a number of boxes, or what it is where absent.
absl::StatusOr<double> Limit(Call& call, int i, double otherwise) {
  if (!call.has(i)) return otherwise;
  return call.ConstantScalar(i);
}

absl::Status ConvertNonMaxSuppression(Call& call) {
  ASSIGN_OR_RETURN(const double most, Limit(call, 2, 0));
  ASSIGN_OR_RETURN(const double iou, Limit(call, 3, 0));
  ASSIGN_OR_RETURN(const double score, Limit(call, 4, -std::numeric_limits<double>::infinity()));
  ASSIGN_OR_RETURN(const bool center, call.Flag("center_point_box", false));
  const auto number = static_cast<int64_t>(std::clamp(most, 0.0, 0x1p31));  // Of boxes there are less.
  ASSIGN_OR_RETURN(Value rows, EmitNms(call.builder(), call.name(), call.operand(0), call.operand(1),
                                       {{"max_output_boxes_per_class", number},
                                        {"iou_threshold", iou},
                                        {"score_threshold", score},
                                        {"center_point_box", center}}));
  call.Set(0, std::move(rows));
  return absl::OkStatus();
}

absl::Status ConvertDataDependent(Call&) {
  return absl::UnimplementedError(
      "found a result whose shape depends on data, wanted shapes that are known at import: take values before it as "
      "the "
      "network's outputs");
}

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Compress", 9, {2, 2}, {1, 1}, "axis=INT", ConvertCompress},
      {"GatherElements", 11, {2, 2}, {1, 1}, "axis=INT", ConvertGatherElements},
      {"GatherND", 11, {2, 2}, {1, 1}, "batch_dims=INT", ConvertGatherNd},
      {"Gather", 1, {2, 2}, {1, 1}, "axis=INT", ConvertGather},
      {"NonMaxSuppression", 10, {2, 5}, {1, 1}, "center_point_box=INT", ConvertNonMaxSuppression},
      {"NonZero", 9, {1, 1}, {1, 1}, "", ConvertNonZero},
      {"OneHot", 9, {3, 3}, {1, 1}, "axis=INT", ConvertOneHot},
      {"ReverseSequence", 10, {2, 2}, {1, 1}, "batch_axis=INT time_axis=INT", ConvertReverseSequence},
      {"Scatter", 9, {3, 3}, {1, 1}, "axis=INT", ConvertScatterElements},
      {"ScatterElements", 11, {3, 3}, {1, 1}, "axis=INT reduction=STRING", ConvertScatterElements},
      {"ScatterND", 11, {3, 3}, {1, 1}, "reduction=STRING", ConvertScatterNd},
      {"TopK", 1, {1, 2}, {2, 2}, "axis=INT k=INT largest=INT sorted=INT", ConvertTopK},
      {"Trilu", 14, {1, 2}, {1, 1}, "upper=INT", ConvertTrilu},
      {"Unique", 11, {1, 1}, {1, 4}, "axis=INT sorted=INT", ConvertDataDependent},
  });
}

}  // namespace fuselage::onnx::converters::indexing
