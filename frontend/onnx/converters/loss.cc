// Losses over classes: what a network that was exported with its criterion ends in.
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::loss {
namespace {

using Ints = std::vector<int64_t>;

// Scores [N, C, d1...], a target [N, d1...] of i32 or i64, and perhaps a weight [C].
absl::Status CheckLoss(const Call& call) {
  const DType dtype = call.type(1).dtype;
  Shape target = call.shape(0);
  if (target.size() >= 2) target.erase(target.begin() + 1);
  if (call.rank(0) < 2 || call.shape(1) != target || (dtype != DType::kI32 && dtype != DType::kI64)) {
    return absl::InvalidArgumentError(absl::StrCat("found scores ", ToString(call.type(0)), " and a target ",
                                                   ToString(call.type(1)),
                                                   ", wanted [N, C, d1...] and i32 or i64 [N, d1...]"));
  }
  if (!call.has(2) || call.shape(2) == Shape{call.shape(0)[1]}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found the weight ", ToString(call.type(2)),
                                                 ", wanted one for each of ", call.shape(0)[1], " classes"));
}

// The target with class 0 in place of what is ignored, and where that is: absent without ignore_index.
struct Target {
  Value index, ignored;
};
absl::StatusOr<Target> ReadTarget(Call& call) {
  Target target{call.operand(1), {}};
  if (!call.HasAttribute("ignore_index")) return target;
  const DType dtype = call.type(1).dtype;
  ASSIGN_OR_RETURN(const Value ignore,
                   call.Scalar("ignore_index", dtype, static_cast<double>(call.Int("ignore_index", 0))));
  ASSIGN_OR_RETURN(const Value zero, call.Scalar("class", dtype, 0));
  ASSIGN_OR_RETURN(target.ignored, call.EmitHelper("ignored", "eq", {target.index, ignore}));
  ASSIGN_OR_RETURN(target.index, call.EmitHelper("target", "where", {target.ignored, zero, target.index}));
  return target;
}

// The weight of each target's class, 0 for what is ignored; absent where all weights are 1.
absl::StatusOr<Value> WeightOf(Call& call, const Target& target) {
  Value weight;
  if (call.has(2)) {
    ASSIGN_OR_RETURN(weight, call.EmitHelper("weight", "index_select", {call.operand(2), target.index}, {{"dim", 0}}));
  }
  if (!target.ignored.present()) return weight;
  const DType dtype = call.type(0).dtype;
  ASSIGN_OR_RETURN(const Value zero, call.Scalar("no_weight", dtype, 0));
  if (!weight.present()) {
    ASSIGN_OR_RETURN(weight, call.Scalar("full_weight", dtype, 1));
  }
  return call.EmitHelper("kept_weight", "where", {target.ignored, zero, weight});
}

// Result 0: -weight[t] * log_probabilities[t] for the target's class t, reduced.
absl::Status LossResult(Call& call, const Value& log_probabilities) {
  const std::string reduction = call.String("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'reduction': found ", Quote(reduction), ", wanted none, sum or mean"));
  }
  const Ints classes = {1};
  ASSIGN_OR_RETURN(const Target target, ReadTarget(call));
  ASSIGN_OR_RETURN(const Value index, call.EmitHelper("index", "unsqueeze", {target.index}, {{"dims", classes}}));
  ASSIGN_OR_RETURN(const Value picked, call.EmitHelper("picked", "gather", {log_probabilities, index}, {{"dim", 1}}));
  ASSIGN_OR_RETURN(Value loss, call.EmitHelper("log_likelihood", "squeeze", {picked}, {{"dims", classes}}));
  ASSIGN_OR_RETURN(const Value weight, WeightOf(call, target));
  if (weight.present()) {
    ASSIGN_OR_RETURN(loss, call.EmitHelper("weighted", "mul", {loss, weight}));
  }
  if (reduction == "none") return call.Result("neg", {loss});
  ASSIGN_OR_RETURN(loss, call.EmitHelper("losses", "neg", {loss}));
  Ints all(call.rank(1));
  std::iota(all.begin(), all.end(), 0);
  const AttributeMap attributes = {{"dims", all}, {"keepdim", false}};
  if (reduction == "sum") return call.Result("sum", {loss}, attributes);
  if (!weight.present()) return call.Result("mean", {loss}, attributes);
  ASSIGN_OR_RETURN(loss, call.EmitHelper("sum", "sum", {loss}, attributes));
  ASSIGN_OR_RETURN(const Value total, call.EmitHelper("total_weight", "sum", {weight}, attributes));
  return call.Result("div", {loss, total});
}

absl::Status ConvertNegativeLogLikelihoodLoss(Call& call) {
  RETURN_IF_ERROR(CheckLoss(call));
  return LossResult(call, call.operand(0));
}

// The same of the scores' log_softmax over the classes, which is output 1.
absl::Status ConvertSoftmaxCrossEntropyLoss(Call& call) {
  RETURN_IF_ERROR(CheckLoss(call));
  ASSIGN_OR_RETURN(const Value log_probabilities,
                   call.EmitHelper("log_prob", "log_softmax", {call.operand(0)}, {{"dim", 1}}));
  if (call.wants(1)) call.Set(1, log_probabilities);
  return LossResult(call, log_probabilities);
}

constexpr char kLoss[] = "ignore_index=INT reduction=STRING";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"NegativeLogLikelihoodLoss", 12, {2, 3}, {1, 1}, kLoss, ConvertNegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", 12, {2, 3}, {1, 2}, kLoss, ConvertSoftmaxCrossEntropyLoss},
  });
}

}  // namespace fuselage::onnx::converters::loss
