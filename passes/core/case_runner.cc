#include "passes/core/case_runner.h"

#include <gtest/gtest.h>

#include "absl/strings/str_format.h"
#include "google/protobuf/text_format.h"
#include "interpreter/interpreter.h"
#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "ir/testing/text_cases.h"
#include "passes/core/pipeline.h"

namespace fuselage::passes {
namespace {

absl::StatusOr<std::unique_ptr<Pass>> MakePass(const std::string& text, const PassRegistry& passes,
                                               const PassEnvironment& environment) {
  PipelineConfig::Step step;
  // The step's text may stand in braces, as it does in a pipeline.
  std::string body = text;
  const size_t open = body.find('{'), close = body.rfind('}');
  if (open != std::string::npos && body.find_first_not_of(" \n") == open)
    body = body.substr(open + 1, close - open - 1);
  if (!google::protobuf::TextFormat::ParseFromString(body, &step) || !step.has_pass()) {
    return absl::InvalidArgumentError(absl::StrCat("not a pipeline step with a pass: ", text));
  }
  return passes.Create(step.pass(), environment);
}

absl::StatusOr<std::vector<Tensor>> Outputs(const ir::Graph& graph) {
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  for (const ir::Node* node : graph.placeholders()) inputs.push_back(SeededTensor(node->tensor_type(), seed++));
  return interpreter::Run(graph, inputs);
}

absl::Status Compare(const NumericContract& contract, const ir::Graph& before, const ir::Graph& after) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> wanted, Outputs(before));
  ASSIGN_OR_RETURN(const std::vector<Tensor> found, Outputs(after));
  if (wanted.size() != found.size()) return absl::InternalError("the number of outputs changed");
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (contract.kind == NumericContract::kBitExact) {
      if (!wanted[i].SameBytes(found[i])) return absl::InternalError(absl::StrCat("output ", i, " changed its bits"));
      continue;
    }
    if (wanted[i].shape() != found[i].shape()) {
      return absl::InternalError(absl::StrCat("output ", i, " changed its shape"));
    }
    const Difference difference = fuselage::Compare(wanted[i], found[i]);
    const double error = difference.max_abs_error, size = difference.magnitude;
    const double code = found[i].type().quant ? found[i].type().quant->scales[0] : 0;
    double allowed = 0;
    switch (contract.kind) {
      case NumericContract::kTolerance: allowed = contract.tolerance * size; break;
      // A code of a quantized output; in a float output, what a code of rounding upstream moves.
      case NumericContract::kOneCode: allowed = code > 0 ? 1.001 * code : size / 32; break;
      case NumericContract::kQuantizes: allowed = contract.tolerance * size; break;
      case NumericContract::kBitExact: break;
    }
    if (!(error <= allowed)) {
      return absl::InternalError(
          absl::StrFormat("output %d of up to %g moved by %g, allowed is %g", i, size, error, allowed));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int RunCases(int argc, char** argv, const PassRegistry& passes, const PassEnvironment& environment) {
  ::testing::InitGoogleTest(&argc, argv);
  static ir::OpRegistry ops;
  ops::RegisterAll(ops);

  testing::TextCaseHooks hooks;
  hooks.ops = &ops;
  hooks.rewrite = [&](const std::string& step, ir::Graph& graph) -> absl::StatusOr<testing::RewriteResult> {
    ASSIGN_OR_RETURN(const std::unique_ptr<Pass> pass, MakePass(step, passes, environment));
    Remarks remarks;
    testing::RewriteResult result;
    ASSIGN_OR_RETURN(result.changed, pass->Run(graph, remarks));
    for (const Remark& remark : remarks.list()) {
      result.remarks.push_back(absl::StrCat(RemarkKindName(remark.kind), remark.node.empty() ? "" : " %", remark.node,
                                            ": ", remark.message));
    }
    return result;
  };
  hooks.compare = [&](const std::string& step, const ir::Graph& before, const ir::Graph& after) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Pass> pass, MakePass(step, passes, environment));
    return Compare(pass->numeric_contract(), before, after);
  };
  testing::RegisterTextCases(std::vector<std::string>(argv + 1, argv + argc), hooks);
  return RUN_ALL_TESTS();
}

}  // namespace fuselage::passes
