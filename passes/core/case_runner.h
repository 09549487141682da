// The main of a pass's text cases: see ir/testing/text_cases.h for the format. A case's step is a PipelineConfig.Step.
#ifndef FUSELAGE_PASSES_CORE_CASE_RUNNER_H_
#define FUSELAGE_PASSES_CORE_CASE_RUNNER_H_

#include "passes/core/registry.h"

namespace fuselage::passes {

// argv names the case files. Input and result are compared through the interpreter within the pass's contract.
int RunCases(int argc, char** argv, const PassRegistry& passes, const PassEnvironment& environment);

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_CASE_RUNNER_H_
