#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/rows.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::shape {
namespace {

// Each axis in [0, rank), once.
absl::StatusOr<std::vector<int64_t>> NormalizeAxes(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return absl::InvalidArgumentError(absl::StrCat("found axes ", ToString(axes), ", wanted each once"));
  }
  return axes;
}

// Always two dimensions, which only for axis 1 is what `flatten` gives; else a reshape that infers the dimension with
// the batch in it, so that the batch can change.
absl::Status ConvertFlatten(Call& call) {
  const int rank = call.rank(0);
  int64_t axis = call.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'axis': found ", axis, ", wanted a value in [", -rank, ", ", rank, "]"));
  }
  if (axis < 0) axis += rank;
  if (axis == 1 && rank >= 2) return call.Result("flatten", call.operands(), {{"start_dim", 1}});
  int64_t rows = 1, columns = 1;
  const Shape& shape = call.shape(0);
  for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= shape[i];
  if (rows * columns > 0) (axis == 0 ? columns : rows) = -1;
  return call.Result("reshape", call.operands(),
                     {{"shape", std::vector<int64_t>{rows, columns}}, {"allow_zero", true}});
}

// What the -1 of a reshape to `target`, whose 0s copy, stands for; 0 where nothing fits.
int64_t InferredSize(const Shape& input, Shape target) {
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && i < input.size()) target[i] = input[i];
    if (target[i] == -1) target[i] = 1;
  }
  const absl::StatusOr<int64_t> elements = CheckedNumElements(input), others = CheckedNumElements(target);
  if (!elements.ok() || !others.ok() || *others == 0 || *elements % *others != 0) return 0;
  return *elements / *others;
}

// A target that follows from the batch (a folded Shape(x)) => one that holds for any: what repeats the input's
// dimension is a 0, and one more size that follows from the batch is the one to infer. False where there is no such
// target.
bool FollowBatch(Call& call, std::vector<int64_t>& shape) {
  const Shape &input = call.shape(0), &next_input = call.builder().ShapeAtNextBatch(call.operand(0));
  const Tensor& target = (*call.operand(1).at_next_batch)[0];
  if (target.num_elements() != static_cast<int64_t>(shape.size())) return false;
  std::vector<int64_t> next(target.data<int64_t>(), target.data<int64_t>() + shape.size());
  int follows = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == next[i]) continue;
    if (i < input.size() && shape[i] == input[i] && next[i] == next_input[i]) {
      shape[i] = 0;
    } else if (follows >= 0) {
      return false;
    } else {
      follows = static_cast<int>(i);
    }
  }
  if (follows < 0) return true;
  const auto inferred = std::find(shape.begin(), shape.end(), -1);
  if (inferred != shape.end()) {  // Its size becomes a number, if that is the same for both batches.
    const int64_t size = InferredSize(input, shape);
    if (size < 1 || size != InferredSize(next_input, next)) return false;
    *inferred = size;
  }
  shape[follows] = -1;
  return true;
}

absl::Status ConvertReshape(Call& call) {
  ASSIGN_OR_RETURN(std::vector<int64_t> shape, call.ConstantInts(1, Call::Batch::kFollowed));
  ASSIGN_OR_RETURN(const bool allow_zero, call.Flag("allowzero", false));
  const Shape& input = call.shape(0);
  const Value& target = call.operand(1);
  RETURN_IF_ERROR(call.CheckFollowsRows(1));
  if (target.at_next_batch != nullptr &&
      (allow_zero || target.type().dtype != DType::kI64 || !FollowBatch(call, shape))) {
    call.builder().WarnOfFixedBatch(target);
    ASSIGN_OR_RETURN(shape, call.ConstantInts(1, Call::Batch::kFollowed));
  }
  // A first dimension that repeats the input's is written as "copy": an exporter may have written a number for it.
  if (!allow_zero && !shape.empty() && !input.empty() && shape[0] == input[0]) shape[0] = 0;
  return call.Result("reshape", {call.operand(0)}, {{"shape", shape}, {"allow_zero", allow_zero}});
}

absl::Status ConvertSqueeze(Call& call) {
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, ListByOpset(call, "axes", 1, 13));
  const Shape& shape = call.shape(0);
  if (!call.has(1) && !call.HasAttribute("axes")) {  // Dimensions of 1, but for a batch that happens to be.
    for (int i = 0; i < call.rank(0); ++i) {
      if (shape[i] == 1 && call.builder().ShapeAtNextBatch(call.operand(0))[i] == 1) axes.push_back(i);
    }
  }
  ASSIGN_OR_RETURN(axes, NormalizeAxes(std::move(axes), call.rank(0)));
  if (axes.empty()) return call.Result("identity", {call.operand(0)});  // Without dims, `squeeze` takes the batch too.
  return call.Result("squeeze", {call.operand(0)}, {{"dims", axes}});
}

absl::Status ConvertUnsqueeze(Call& call) {
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, ListByOpset(call, "axes", 1, 13));
  if (!call.has(1) && !call.HasAttribute("axes")) return absl::InvalidArgumentError("found no axes, wanted some");
  if (axes.size() > 64) {
    return absl::UnimplementedError(absl::StrCat("found ", axes.size(), " axes, wanted 64 at most"));
  }
  const int rank = call.rank(0) + static_cast<int>(axes.size());
  ASSIGN_OR_RETURN(axes, NormalizeAxes(std::move(axes), rank));
  std::sort(axes.begin(), axes.end());
  return call.Result("unsqueeze", {call.operand(0)}, {{"dims", axes}});
}

absl::Status ConvertTranspose(Call& call) {
  std::vector<int64_t> perm = call.Ints("perm");
  const int rank = call.rank(0);
  if (!call.HasAttribute("perm")) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != static_cast<size_t>(rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute 'perm': found ", ToString(perm), ", wanted a permutation of ", rank, " axes"));
    }
  }
  return call.Result("permute", call.operands(), {{"dims", perm}});
}

// Codes of one tensor have one scale and zero point in the IR, which ONNX has in the nodes beside them: constants take
// those of the first codes that have any.
absl::Status ShareQuantParams(Call& call, std::vector<Value>* values) {
  const auto first =
      std::find_if(values->begin(), values->end(), [](const Value& v) { return v.type().quant.has_value(); });
  if (first == values->end()) return absl::OkStatus();
  TensorType type = first->type();
  for (Value& value : *values) {
    if (value.constant == nullptr || value.type().dtype != type.dtype || value.type().quant) continue;
    RETURN_IF_ERROR(call.builder().budget().Charge(value.type().byte_size(), "its codes"));
    Tensor tensor = *value.TensorOrNull();
    type.shape = value.shape();
    tensor.set_type(type);
    value = Builder::Constant(value.name, std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status ConvertConcat(Call& call) {
  if (!call.HasAttribute("axis")) return absl::InvalidArgumentError("found no attribute 'axis', wanted it");
  for (int i = 0; i < call.num_operands(); ++i) {
    if (!call.has(i)) return absl::InvalidArgumentError(absl::StrCat("found input ", i, " absent, wanted it"));
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 0), call.rank(0)));
  std::vector<Value> values = call.operands();
  RETURN_IF_ERROR(ShareQuantParams(call, &values));
  return call.Result("cat", values, {{"dim", axis}});
}

// Attributes before opset 10, inputs from then on.
absl::Status ConvertSlice(Call& call) {
  ASSIGN_OR_RETURN(std::vector<int64_t> starts, ListByOpset(call, "starts", 1, 10));
  ASSIGN_OR_RETURN(std::vector<int64_t> ends, ListByOpset(call, "ends", 2, 10));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, ListByOpset(call, "axes", 3, 10));
  std::vector<int64_t> steps(starts.size(), 1);
  if (call.has(4)) {
    ASSIGN_OR_RETURN(steps, call.ConstantInts(4));
  }
  if (!call.has(3) && !call.HasAttribute("axes")) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const size_t count = starts.size();
  if (count == 0 || ends.size() != count || axes.size() != count || steps.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("found ", count, " starts, ", ends.size(), " ends, ", axes.size(),
                                                   " axes, ", steps.size(), " steps, wanted as many of each, > 0"));
  }
  return call.Result("slice", {call.operand(0)},
                     {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
}

// Sizes are an attribute before opset 13, an input from then on; without them, the outputs say how many equal parts.
absl::Status ConvertSplit(Call& call) {
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ListByOpset(call, "split", 1, 13));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 0), call.rank(0)));
  const int64_t size = call.shape(0)[axis], parts = call.num_outputs();
  if (call.HasAttribute("num_outputs") && call.Int("num_outputs", 0) != parts) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'num_outputs': found ", call.Int("num_outputs", 0),
                                                   ", wanted ", parts, ", the number of outputs"));
  }
  if (!call.has(1) && !call.HasAttribute("split")) {
    const int64_t part = size / parts + (size % parts != 0);
    if (size % parts != 0 && !call.HasAttribute("num_outputs")) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", parts, " outputs, wanted a divisor of the dimension ", size));
    }
    for (int64_t i = 0, left = size; i < parts; ++i, left -= part) {
      sizes.push_back(std::clamp<int64_t>(left, 0, part));
    }
  }
  if (static_cast<int64_t>(sizes.size()) != parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", sizes.size(), " sizes, wanted ", parts, ", one an output"));
  }
  ASSIGN_OR_RETURN(std::vector<Value> values,
                   call.builder().EmitTuple(call.name(), "split", {call.operand(0)}, {{"sizes", sizes}, {"dim", axis}},
                                            call.wanted()));
  for (int i = 0; i < call.num_outputs(); ++i) call.Set(i, std::move(values[i]));
  return absl::OkStatus();
}

// Pads are an attribute before opset 11, an input from then on; opset 18 adds axes.
absl::Status ConvertPad(Call& call) {
  ASSIGN_OR_RETURN(std::vector<int64_t> pads, ListByOpset(call, "pads", 1, 11));
  const std::string mode = call.String("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'mode': found ", Quote(mode), ", wanted constant, reflect, edge or wrap"));
  }
  double value = call.Float("value", 0);
  if (call.opset() >= 11 && call.has(2)) {
    ASSIGN_OR_RETURN(value, call.ConstantScalar(2));
  }
  const int rank = call.rank(0);
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) {
    ASSIGN_OR_RETURN(axes, call.ConstantInts(3));
    ASSIGN_OR_RETURN(axes, NormalizeAxes(std::move(axes), rank));
  }
  const size_t count = axes.size();
  if (pads.size() != 2 * count) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", pads.size(), " pads, wanted ", 2 * count, ", a begin and an end for each axis"));
  }
  std::vector<int64_t> full(2 * rank);
  for (size_t i = 0; i < count; ++i) {
    full[axes[i]] = pads[i];
    full[axes[i] + rank] = pads[i + count];
  }
  Value x = call.operand(0);
  if (const int axis = x.rows.axis; x.rows.count != nullptr && mode == "constant") {
    // As many more rows as there are less: a result of so many.
    const Value& list = call.operand(1);
    const auto k = std::find(axes.begin(), axes.end(), axis) - axes.begin() + static_cast<int64_t>(count);
    if (list.follows == x.rows.count && k < static_cast<int64_t>(2 * count) &&
        (*list.at_next_row)[0].At(k) == static_cast<double>(full[axis + rank] - 1)) {
      ASSIGN_OR_RETURN(x, FillRows(call.builder(), call.name(), x, value));
    }
  }
  return call.Result("pad", {x}, {{"pads", full}, {"mode", mode}, {"value", value}});
}

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Concat", 4, {1, kAnyNumber}, {1, 1}, "axis=INT", ConvertConcat},
      {"Flatten", 1, {1, 1}, {1, 1}, "axis=INT", ConvertFlatten},
      {"Pad", 2, {1, 4}, {1, 1}, "mode=STRING pads=INTS value=FLOAT", ConvertPad},
      {"Reshape", 5, {2, 2}, {1, 1}, "allowzero=INT", ConvertReshape},
      {"Slice", 1, {1, 5}, {1, 1}, "axes=INTS ends=INTS starts=INTS", ConvertSlice},
      {"Split", 2, {1, 2}, {1, kAnyNumber}, "axis=INT num_outputs=INT split=INTS", ConvertSplit},
      {"Squeeze", 1, {1, 2}, {1, 1}, "axes=INTS", ConvertSqueeze},
      {"Transpose", 1, {1, 1}, {1, 1}, "perm=INTS", ConvertTranspose},
      {"Unsqueeze", 1, {1, 2}, {1, 1}, "axes=INTS", ConvertUnsqueeze},
  });
}

}  // namespace fuselage::onnx::converters::shape
