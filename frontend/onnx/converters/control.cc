// If, Loop and Scan, whose subgraphs take their place: what decides must be
// known at import, but for an If whose branches give results of the same shapes.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::control {
namespace {

using Ints = std::vector<int64_t>;

absl::Status CheckCount(absl::string_view what, size_t found, size_t wanted) {
  if (found == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", found, " ", what, ", wanted ", wanted));
}

// The values side by side along a new axis.
absl::StatusOr<Value> Stack(Call& call, int output, const std::vector<Value>& values, int64_t axis) {
  if (values.empty()) {
    return absl::UnimplementedError(
        "found no iteration, wanted at least one: "
        "the shape of what it would put out");
  }
  std::vector<Value> rows;
  for (const Value& value : values) {
    ASSIGN_OR_RETURN(Value row,
                     call.EmitHelper(absl::StrCat("row", output), "unsqueeze", {value}, {{"dims", Ints{axis}}}));
    rows.push_back(std::move(row));
  }
  return call.EmitHelper(absl::StrCat("stack", output), "cat", rows, {{"dim", axis}});
}

// State after state, and what each iteration puts out beside it.
struct Iterations {
  std::vector<Value> state;
  std::vector<std::vector<Value>> rows;  // One list for each output beyond the state.

  // `results`: the state, then a row for each further output; the first `skip`
  // are something else.
  absl::Status Take(std::vector<Value> results, size_t skip) {
    RETURN_IF_ERROR(CheckCount("outputs of the body", results.size(), skip + state.size() + rows.size()));
    std::move(results.begin() + skip, results.begin() + skip + state.size(), state.begin());
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(std::move(results[skip + state.size() + k]));
    return absl::OkStatus();
  }
};

absl::StatusOr<Iterations> Start(Call& call, std::vector<Value> state) {
  if (call.num_outputs() < static_cast<int>(state.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", call.num_outputs(), " outputs, wanted at least the ", state.size(), " of the state"));
  }
  Iterations iterations{std::move(state), {}};
  iterations.rows.resize(call.num_outputs() - iterations.state.size());
  return iterations;
}

absl::StatusOr<std::vector<Value>> Branch(Call& call, absl::string_view name) {
  ASSIGN_OR_RETURN(std::vector<Value> results, call.Inline(name, {}));
  RETURN_IF_ERROR(CheckCount("outputs of the branch", results.size(), call.num_outputs()));
  return results;
}

// Both branches are computed, and one's results are taken: branches have no effects.
absl::Status SelectBranch(Call& call) {
  const TensorType& type = call.operand(0).type();
  if (type.dtype != DType::kBool || type.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0: found ", ToString(type), ", wanted one element of type bool"));
  }
  ASSIGN_OR_RETURN(const std::vector<Value> taken, Branch(call, "then_branch"));
  ASSIGN_OR_RETURN(const std::vector<Value> otherwise, Branch(call, "else_branch"));
  ASSIGN_OR_RETURN(const Value condition,
                   call.EmitHelper("condition", "reshape", {call.operand(0)}, {{"shape", Ints{}}}));
  for (int i = 0; i < call.num_outputs(); ++i) {
    const TensorType &a = taken[i].type(), &b = otherwise[i].type();
    if (a.dtype != b.dtype || a.shape != b.shape) {
      return absl::UnimplementedError(absl::StrCat("output ", i, ": found ", ToString(a), " of one branch and ",
                                                   ToString(b),
                                                   " of the other, wanted the same where the condition is computed"));
    }
    ASSIGN_OR_RETURN(Value result,
                     call.EmitHelper(absl::StrCat("branch", i), "where", {condition, taken[i], otherwise[i]}));
    call.Set(i, std::move(result));
  }
  return absl::OkStatus();
}

absl::Status ConvertIf(Call& call) {
  if (call.operand(0).TensorOrNull() == nullptr) return SelectBranch(call);
  // Where data says how many rows there are, the branch for some is right for none.
  const bool follows_rows = call.operand(0).follows != nullptr;
  ASSIGN_OR_RETURN(const double condition,
                   call.ConstantScalar(0, follows_rows ? Call::Batch::kFollowed : Call::Batch::kFixed));
  ASSIGN_OR_RETURN(std::vector<Value> results, Branch(call, condition != 0 ? "then_branch" : "else_branch"));
  for (int i = 0; i < call.num_outputs(); ++i) call.Set(i, std::move(results[i]));
  return absl::OkStatus();
}

// Inputs: the number of iterations and the first condition, where present, then
// the state. Outputs: the state, then what every iteration puts out, stacked.
absl::Status ConvertLoop(Call& call) {
  int64_t trips = INT64_MAX;
  if (call.has(0)) {
    ASSIGN_OR_RETURN(const Ints list, call.ConstantInts(0));
    RETURN_IF_ERROR(CheckCount("numbers of iterations", list.size(), 1));
    trips = list[0];
  }
  double more = 1;
  if (call.has(1)) {
    ASSIGN_OR_RETURN(more, call.ConstantScalar(1));
  }
  const size_t first = std::min<size_t>(2, call.num_operands());
  ASSIGN_OR_RETURN(Iterations iterations, Start(call, {call.operands().begin() + first, call.operands().end()}));
  for (int64_t i = 0; more != 0 && i < trips; ++i) {
    ASSIGN_OR_RETURN(Value iteration, call.builder().ChargedConstant("", Tensor::Scalar(i)));
    ASSIGN_OR_RETURN(Value condition, call.builder().ChargedConstant("", Tensor::Scalar(true)));
    std::vector<Value> inputs = {std::move(iteration), std::move(condition)};
    inputs.insert(inputs.end(), iterations.state.begin(), iterations.state.end());
    ASSIGN_OR_RETURN(std::vector<Value> results, call.Inline("body", std::move(inputs)));
    if (results.empty() || results[0].TensorOrNull() == nullptr || results[0].type().num_elements() != 1) {
      return absl::UnimplementedError(
          absl::StrCat("iteration ", i, ": found a computed condition, wanted one known at import"));
    }
    more = results[0].TensorOrNull()->At(0);
    RETURN_IF_ERROR(iterations.Take(std::move(results), 1));
  }
  const int states = static_cast<int>(iterations.state.size());
  for (int i = 0; i < call.num_outputs(); ++i) {
    if (i < states) {
      call.Set(i, std::move(iterations.state[i]));
    } else if (call.wants(i)) {
      ASSIGN_OR_RETURN(Value stacked, Stack(call, i, iterations.rows[i - states], 0));
      call.Set(i, std::move(stacked));
    }
  }
  return absl::OkStatus();
}

// A list attribute with one entry for each of `count` values; absent: zeros.
absl::StatusOr<Ints> PerValue(const Call& call, absl::string_view name, size_t count) {
  if (!call.HasAttribute(name)) return Ints(count, 0);
  RETURN_IF_ERROR(CheckCount(name, call.Ints(name).size(), count));
  return call.Ints(name);
}

// Element `i` of an axis, which vanishes.
absl::StatusOr<Value> ElementAt(Call& call, const Value& value, int64_t axis, int64_t i) {
  ASSIGN_OR_RETURN(
      const Value part,
      call.EmitHelper("slice", "slice", {value}, {{"starts", Ints{i}}, {"ends", Ints{i + 1}}, {"axes", Ints{axis}}}));
  return call.EmitHelper("element", "squeeze", {part}, {{"dims", Ints{axis}}});
}

// Inputs: the state, then num_scan_inputs values of which every iteration sees
// one element of an axis. Outputs: the state, then what every iteration puts
// out, stacked.
absl::Status ConvertScan(Call& call) {
  const int64_t scanned = call.Int("num_scan_inputs", 0), states = call.num_operands() - scanned;
  if (scanned < 1 || states < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'num_scan_inputs': found ", scanned, ", wanted one in [1, ", call.num_operands(), "]"));
  }
  ASSIGN_OR_RETURN(Ints axes, PerValue(call, "scan_input_axes", scanned));
  ASSIGN_OR_RETURN(const Ints backward, PerValue(call, "scan_input_directions", scanned));
  ASSIGN_OR_RETURN(Iterations iterations, Start(call, {call.operands().begin(), call.operands().begin() + states}));
  ASSIGN_OR_RETURN(const Ints out_axes, PerValue(call, "scan_output_axes", iterations.rows.size()));
  ASSIGN_OR_RETURN(const Ints out_backward, PerValue(call, "scan_output_directions", iterations.rows.size()));
  int64_t length = 0;
  for (int64_t k = 0; k < scanned; ++k) {
    ASSIGN_OR_RETURN(axes[k], NormalizeAxis(axes[k], call.rank(static_cast<int>(states + k))));
    const int64_t size = call.shape(static_cast<int>(states + k))[axes[k]];
    if (k > 0) RETURN_IF_ERROR(CheckCount("elements to scan", size, length));
    length = size;
  }
  for (int64_t i = 0; i < length; ++i) {
    std::vector<Value> inputs = iterations.state;
    for (int64_t k = 0; k < scanned; ++k) {
      ASSIGN_OR_RETURN(Value element, ElementAt(call, call.operand(static_cast<int>(states + k)), axes[k],
                                                backward[k] != 0 ? length - 1 - i : i));
      inputs.push_back(std::move(element));
    }
    ASSIGN_OR_RETURN(std::vector<Value> results, call.Inline("body", std::move(inputs)));
    RETURN_IF_ERROR(iterations.Take(std::move(results), 0));
  }
  for (int64_t i = 0; i < states; ++i) call.Set(static_cast<int>(i), std::move(iterations.state[i]));
  for (size_t k = 0; k < iterations.rows.size(); ++k) {
    const int output = static_cast<int>(states + k);
    if (!call.wants(output)) continue;
    if (out_backward[k] != 0) std::reverse(iterations.rows[k].begin(), iterations.rows[k].end());
    ASSIGN_OR_RETURN(Value stacked, Stack(call, output, iterations.rows[k], out_axes[k]));
    call.Set(output, std::move(stacked));
  }
  return absl::OkStatus();
}

constexpr char kScan[] =
    "body=GRAPH num_scan_inputs=INT scan_input_axes=INTS scan_input_directions=INTS scan_output_axes=INTS "
    "scan_output_directions=INTS";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"If", 1, {1, 1}, {1, kAnyNumber}, "else_branch=GRAPH then_branch=GRAPH", ConvertIf},
      {"Loop", 1, {0, kAnyNumber}, {1, kAnyNumber}, "body=GRAPH", ConvertLoop},
      {"Scan", 9, {1, kAnyNumber}, {1, kAnyNumber}, kScan, ConvertScan},
  });
}

}  // namespace fuselage::onnx::converters::control
