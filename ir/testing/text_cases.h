// Text cases: a rewrite's tests as IR text, rewrite, IR text. A file holds cases separated by "// ====" lines:
//
//   // Says what the case shows.
//   // step: { pass { [type.googleapis.com/fuselage.ConvBnOptions] {} } }
//   graph @before { ... }
//   // ----
//   graph @before { ... }          or the one line "// unchanged", or "// error: <part of the message>"
//   // remark: missed %bn: the conv has a second user
//
// For each case the runner checks: the printed result is the expected text, the input and the result print and parse
// back to themselves, the changed bit is right, a second run changes nothing, every expected remark is among those
// made, and input and result agree under `compare` (the interpreter on seeded inputs).
// With FUSELAGE_UPDATE_CASES=<workspace root> in the environment the expected graphs are written anew instead.
#ifndef FUSELAGE_IR_TESTING_TEXT_CASES_H_
#define FUSELAGE_IR_TESTING_TEXT_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::testing {

struct RewriteResult {
  bool changed = false;
  std::vector<std::string> remarks;  // "missed %bn: ..."
};

struct TextCaseHooks {
  const ir::OpRegistry* ops = nullptr;
  // Applies the case's step (the text after "// step:", lines joined) to the graph.
  std::function<absl::StatusOr<RewriteResult>(const std::string& step, ir::Graph& graph)> rewrite;
  // An error where the two graphs do not compute the same by the step's contract.
  std::function<absl::Status(const std::string& step, const ir::Graph& before, const ir::Graph& after)> compare;
};

// Registers one gtest for each case of each file; call before RUN_ALL_TESTS. Aborts where a file cannot be read.
void RegisterTextCases(const std::vector<std::string>& files, const TextCaseHooks& hooks);

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_TEXT_CASES_H_
