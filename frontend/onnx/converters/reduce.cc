// Operators along axes: reductions, indices of extrema, running sums, softmax and its kin.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::reduce {
namespace {

// after(reduce(before(x))). `before` and `after` may be none; "mul" stands for x * x.
struct Reduction {
  absl::string_view name, before, target, after;
  int axes_opset = 18;  // From which on the axes are an input.
};

constexpr Reduction kReductions[] = {
    {"ReduceL1", "abs", "sum", ""},     {"ReduceL2", "mul", "sum", "sqrt"},
    {"ReduceLogSum", "", "sum", "log"}, {"ReduceLogSumExp", "", "logsumexp", ""},
    {"ReduceMax", "", "amax", ""},      {"ReduceMean", "", "mean", ""},
    {"ReduceMin", "", "amin", ""},      {"ReduceProd", "", "prod", ""},
    {"ReduceSum", "", "sum", "", 13},   {"ReduceSumSquare", "mul", "sum", ""},
};

absl::Status ConvertReduce(Call& call) {
  const Reduction& reduction = *std::find_if(std::begin(kReductions), std::end(kReductions),
                                             [&](const Reduction& r) { return r.name == call.operator_name(); });
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, ListByOpset(call, "axes", 1, reduction.axes_opset));
  ASSIGN_OR_RETURN(const bool keepdims, call.Flag("keepdims", true));
  ASSIGN_OR_RETURN(const bool noop, call.Flag("noop_with_empty_axes", false));
  if (axes.empty() && noop) return call.Result("identity", {call.operand(0)});
  if (axes.empty()) {
    axes.resize(call.rank(0));
    std::iota(axes.begin(), axes.end(), 0);
  }
  Value x = call.operand(0);
  if (!reduction.before.empty()) {
    const std::vector<Value> operands(reduction.before == "mul" ? 2 : 1, x);
    ASSIGN_OR_RETURN(x, call.EmitHelper(reduction.before, reduction.before, operands));
  }
  const AttributeMap attributes = {{"dims", axes}, {"keepdim", keepdims}};
  if (reduction.after.empty()) return call.Result(reduction.target, {x}, attributes);
  ASSIGN_OR_RETURN(x, call.EmitHelper(reduction.target, reduction.target, {x}, attributes));
  return call.Result(reduction.after, {x});
}

// ArgMax, ArgMin
absl::Status ConvertArgMax(Call& call) {
  ASSIGN_OR_RETURN(const bool keepdims, call.Flag("keepdims", true));
  ASSIGN_OR_RETURN(const bool last, call.Flag("select_last_index", false));
  return call.Result(call.target(), call.operands(),
                     {{"dim", call.Int("axis", 0)}, {"keepdim", keepdims}, {"select_last_index", last}});
}

absl::Status ConvertCumSum(Call& call) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> axis, call.ConstantInts(1));
  if (axis.size() != 1) return absl::InvalidArgumentError(absl::StrCat("found ", axis.size(), " axes, wanted one"));
  ASSIGN_OR_RETURN(const bool exclusive, call.Flag("exclusive", false));
  ASSIGN_OR_RETURN(const bool reverse, call.Flag("reverse", false));
  return call.Result("cumsum", {call.operand(0)}, {{"dim", axis[0]}, {"exclusive", exclusive}, {"reverse", reverse}});
}

// Softmax, LogSoftmax, Hardmax. Before opset 13 they are over all dimensions from `axis` on: reshape to two dimensions,
// and back.
absl::Status ConvertSoftmax(Call& call) {
  const std::string& target = call.target();
  const int rank = call.rank(0);
  const int64_t stated = call.Int("axis", call.opset() < 13 ? 1 : -1);
  if (call.opset() < 13 && stated == rank) {
    return absl::UnimplementedError(absl::StrCat("found axis ", stated, ", wanted one below the rank ", rank));
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(stated, rank));
  if (call.opset() >= 13 || axis == rank - 1) return call.Result(target, call.operands(), {{"dim", axis}});
  Shape shape = call.shape(0);
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= shape[i];
  if (rows * columns > 0) shape[0] = (axis == 0 ? columns : rows) = -1;  // Inferred: there the batch is.
  ASSIGN_OR_RETURN(const Value flat,
                   call.EmitHelper("flat", "reshape", call.operands(),
                                   {{"shape", std::vector<int64_t>{rows, columns}}, {"allow_zero", true}}));
  ASSIGN_OR_RETURN(const Value soft, call.EmitHelper(target, target, {flat}, {{"dim", 1}}));
  return call.Result("reshape", {soft}, {{"shape", shape}, {"allow_zero", true}});
}

constexpr char kArgMax[] = "axis=INT keepdims=INT select_last_index=INT";
constexpr char kReduce[] = "axes=INTS keepdims=INT noop_with_empty_axes=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"ArgMax", 1, {1, 1}, {1, 1}, kArgMax, ConvertArgMax},
      {"ArgMin", 1, {1, 1}, {1, 1}, kArgMax, ConvertArgMax},
      {"CumSum", 11, {2, 2}, {1, 1}, "exclusive=INT reverse=INT", ConvertCumSum},
      {"Hardmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax},
      {"LogSoftmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax, "log_softmax"},
      {"ReduceL1", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceL2", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceLogSum", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceLogSumExp", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceMax", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceMean", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceMin", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceProd", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceSum", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"ReduceSumSquare", 1, {1, 2}, {1, 1}, kReduce, ConvertReduce},
      {"Softmax", 1, {1, 1}, {1, 1}, "axis=INT", ConvertSoftmax},
  });
}

}  // namespace fuselage::onnx::converters::reduce
